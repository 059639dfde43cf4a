"""Grammars of calls of tools: free text in which calls are constrained once they open, or calls and nothing else.

A trigger is met in the text, however it is cut into tokens; one that is a special token is met as that token too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twostroke.text.rules import opening, passage, symbols
from twostroke.text.structure.grammars import Grammars
from twostroke.text.structure.lark import judged
from twostroke.text.structure.schemas import schema_text


@dataclass(frozen=True, slots=True)
class Tag:
    """A call of one tool: `begin`, arguments, `end`.  `begin` starts with `trigger`, which only calls start with.

    `schema`: a JSON schema of the arguments, or a Lark text with a `start` rule.  `path`: where the client wrote the
    tool.  `lenient`: keywords that no grammar expresses are left out, not refused.
    """

    begin: str
    schema: Mapping[str, Any] | bool | str
    end: str
    trigger: str
    path: str = "tools"
    lenient: bool = False

    @property
    def lark(self) -> str:
        """A grammar of the arguments.  Raises `InvalidParameter`."""
        if isinstance(self.schema, str):
            return judged(self.schema, self.path, lenient=self.lenient)
        return f"start: %json {schema_text(self.schema, self.path, lenient=self.lenient)}"


def free_text_then(tags: Sequence[Tag], special: Mapping[str, int], *, at_most: int | None = None) -> Grammars:
    """Any text, in which a trigger opens a call; every tag needs one.  After `at_most` calls the answer ends.

    `special`: the special tokens by name.  Raises `InvalidParameter`.
    """
    triggers = list(dict.fromkeys(tag.trigger for tag in tags))
    calls = [
        f"call{i}: ({opening(trigger, special)}) ({_choice(k for k, tag in enumerate(tags) if tag.trigger == trigger)})"
        for i, trigger in enumerate(triggers)
    ]
    called = f"words ({' | '.join(f'call{i}' for i in range(len(triggers)))})"
    start = f"start: ({called})* words" if at_most is None else f"start: words | ({called}){_times(1, at_most)}"
    rules = [_rule(k, tag.begin.removeprefix(tag.trigger), tag, special) for k, tag in enumerate(tags)]
    return _grammars((start, *calls, *rules, *passage("words", triggers)), tags)


def only(
    tags: Sequence[Tag], special: Mapping[str, int], *, separator: str = "", at_most: int | None = None
) -> Grammars:
    """At least one call and nothing else.  Raises `InvalidParameter`."""
    more = "" if at_most == 1 else f"({symbols(separator, special)} call)" + _times(0, at_most and at_most - 1)
    start = f"start: call {more}"
    rules = [_rule(k, tag.begin, tag, special) for k, tag in enumerate(tags)]
    return _grammars((start, f"call: {_choice(range(len(tags)))}", *rules), tags)


def _times(least: int, most: int | None) -> str:
    return f"{{{least},{'' if most is None else most}}}"


def _choice(indices: Iterable[int]) -> str:
    return " | ".join(f"tag{k}" for k in indices)


def _rule(index: int, begin: str, tag: Tag, special: Mapping[str, int]) -> str:
    return f"tag{index}: {symbols(begin, special)} @arguments{index} {symbols(tag.end, special)}"


def _grammars(lines: Sequence[str], tags: Sequence[Tag]) -> Grammars:
    arguments = ((f"arguments{k}", tag.lark) for k, tag in enumerate(tags))
    return Grammars((("calls", "\n".join(lines)), *arguments))
