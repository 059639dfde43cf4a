"""An answer's text, read: words, thoughts and calls, as they become certain.

Wire formats render these and nothing else; which markers a model family writes is known below (`text/tools`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Words:
    """Text for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """Text of a reasoning block."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call of the tool `name` begins; calls of one answer count from 0."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The next piece of a call's arguments; the pieces of a call add up to JSON text."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The call is complete."""

    index: int


Piece = Words | Thought | CallStart | CallArguments | CallEnd


class Reader(Protocol):
    """Reads one answer.  However the text is cut into feeds, the pieces add up to the same."""

    def feed(self, text: str) -> Sequence[Piece]:
        """The pieces that are certain now and were not before."""
        ...

    def flush(self) -> Sequence[Piece]:
        """The rest, when the answer has ended; an unfinished call is ended as it stands."""
        ...
