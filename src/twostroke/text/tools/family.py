"""A model family's way of calling tools, as a value: how calls are read and what they look like.

Invariant: a call that is told names a tool that was offered; all else is words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from twostroke.text.conversation import Tool
from twostroke.text.pieces import Piece, Reader, Words
from twostroke.text.tools.parameters import schema_of
from twostroke.text.tools.scan import ScriptReader, Source, Steps

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Family:
    """`script` reads an answer; `opening` and `closing` stand around the arguments of a call of the tool named.

    `trigger` is what only a call begins with, "" where nothing announces one.  `shown` are special tokens that calls
    are written with: a reader must be given their names as text.  `arguments` says what stands between opening and
    closing: a JSON schema, a Lark grammar, or None where no grammar is known.
    """

    name: str
    script: Callable[[Source, Mapping[str, Tool]], Steps[None]]
    opening: Callable[[str], str]
    closing: str
    trigger: str
    separator: str = ""
    shown: frozenset[str] = frozenset()
    arguments: Callable[[Tool], Mapping[str, Any] | str] | None = schema_of

    def reader(self, tools: Sequence[Tool]) -> Reader:
        """Reads an answer that may call `tools`; without any, everything is words."""
        offered = {tool.name: tool for tool in tools}
        return ScriptReader(lambda source: self.script(source, offered)) if offered else PlainReader()

    def tags(self, tools: Sequence[Tool], tag: Callable[[str, Mapping[str, Any] | str, str, str], T]) -> tuple[T, ...]:
        """`tag(begin, arguments, end, trigger)` of a call of each tool, to make a grammar of; none where none is known.

        Arguments are a JSON schema or a Lark grammar with a `start` rule.

        Raises:
            InvalidParameter: a tool's parameters are no schema of an object; `param` is the tool's path.
        """
        arguments = self.arguments
        if arguments is None:
            return ()
        return tuple(tag(self.opening(each.name), arguments(each), self.closing, self.trigger) for each in tools)


class PlainReader:
    """Everything is words."""

    def feed(self, text: str) -> Sequence[Piece]:
        return (Words(text),) if text else ()

    def flush(self) -> Sequence[Piece]:
        return ()
