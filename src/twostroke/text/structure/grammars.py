"""Grammars in llguidance's dialect of Lark that refer to each other by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from twostroke.text.reasoning import Thinking
from twostroke.text.rules import opening, passage

_GAP = r"GAP: /[ \r\n]{0,4}/"  # what models write between a thought and the answer


@dataclass(frozen=True, slots=True)
class Grammars:
    """(name, Lark text) each; an answer begins in the first, which may use the others as `@name`."""

    members: tuple[tuple[str, str], ...]

    def or_else(self, other: Grammars) -> Grammars:
        """These, or the others: an answer is wholly of one kind.  Their names differ."""
        either = f"start: @{self.members[0][0]} | @{other.members[0][0]}"
        return Grammars((("either", either), *self.members, *other.members))

    @property
    def text(self) -> str:
        """As the parser reads them."""
        return json.dumps({"grammars": [{"name": name, "lark_grammar": lark} for name, lark in self.members]})

    def after(self, thinking: Thinking, special: Mapping[str, int], *, opened: bool) -> Grammars:
        """These, for what follows a thought.  Without `opened` (the prompt began it) the thought may be left out."""
        first = self.members[0][0]
        begin = "" if opened else f"({opening(thinking.begin, special)})"
        lines = (
            f"start: thought{'' if opened else '?'} @{first}",
            f"thought: {begin} inside ({opening(thinking.end, special)}) GAP",
            *passage("inside", (thinking.end,)),
            _GAP,
        )
        return Grammars((("thinking", "\n".join(lines)), *self.members))
