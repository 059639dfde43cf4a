"""Grammars in llguidance's dialect of Lark that refer to each other by name, and the pieces they are written with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from twostroke.text.literals import Literals
from twostroke.text.reasoning import Thinking

ANY_TEXT = "TEXT: /(?s:.*)/"
_GAP = r"GAP: /[ \r\n]{0,4}/"  # what models write between a thought and the answer


@dataclass(frozen=True, slots=True)
class Grammars:
    """(name, Lark text) each; an answer begins in the first, which may use the others as `@name`."""

    members: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """As the parser reads them."""
        return json.dumps({"grammars": [{"name": name, "lark_grammar": lark} for name, lark in self.members]})

    def after(self, thinking: Thinking, special: Mapping[str, int], *, opened: bool) -> Grammars:
        """These, for what follows a thought.  Without `opened` (the prompt began it) the thought may be left out."""
        first = self.members[0][0]
        begin = "" if opened else symbols(thinking.begin, special)
        lines = (
            f"start: thought{'' if opened else '?'} @{first}",
            f"thought: {begin} until GAP",
            until("until", thinking.end, special),
            ANY_TEXT,
            _GAP,
        )
        return Grammars((("thinking", "\n".join(lines)), *self.members))


def until(rule: str, marker: str, special: Mapping[str, int]) -> str:
    """The rule for any text up to the first `marker`, that included."""
    if marker in special:
        return f"{rule}: TEXT <[{special[marker]}]>"
    return f"{rule}[lazy]: TEXT {quoted(marker)}"


def symbols(text: str, special: Mapping[str, int]) -> str:
    """The text in a rule: special tokens by id, all else as strings; "" for no text."""
    return " ".join(_symbols(text, special))


def _symbols(text: str, special: Mapping[str, int]) -> Iterator[str]:
    position = 0
    for start, end in Literals(special).find(text):
        if start > position:
            yield quoted(text[position:start])
        yield f"<[{special[text[start:end]]}]>"
        position = end
    if rest := text[position:]:
        yield quoted(rest)


def quoted(text: str) -> str:
    """A string of Lark."""
    return json.dumps(text, ensure_ascii=False)
