"""A prompt's ids, and which part of the conversation each of them belongs to.

Parts stand in the order of the prompt; what the template writes between two parts belongs to the later one.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartEnd:
    """A part ends before token `end`.  `ttl_s`: the client put a cache breakpoint there."""

    end: int
    path: str  # "tools[2]", "system[0]", "messages[3].content[1]"
    ttl_s: float | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids and the ends of the parts, in order."""

    ids: tuple[int, ...]
    parts: tuple[PartEnd, ...] = ()

    def part_at(self, position: int) -> str:
        """The path of the part that token `position` belongs to, "" where nothing is known of it."""
        index = bisect_right([part.end for part in self.parts], position)
        return self.parts[index].path if index < len(self.parts) else ""

    @property
    def breakpoints(self) -> tuple[PartEnd, ...]:
        """The parts that end with a cache breakpoint."""
        return tuple(part for part in self.parts if part.ttl_s is not None)
