"""Find fixed strings in a text: leftmost first, the longest where several start at one place.

The cost of a text does not grow with the number of strings, only with the number of their distinct lengths: at each
place where one could start, one dictionary look-up per length.  Knows nothing about tokens.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator


class Literals:
    """A set of non-empty strings to look for; the empty ones are left out."""

    def __init__(self, strings: Collection[str]) -> None:
        self.strings = frozenset(s for s in strings if s)
        lengths: dict[str, set[int]] = {}
        for string in self.strings:
            lengths.setdefault(string[0], set()).add(len(string))
        self._lengths = {first: tuple(sorted(found, reverse=True)) for first, found in lengths.items()}
        self._first = re.compile("[" + re.escape("".join(sorted(lengths))) + "]") if lengths else None

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """The (start, end) of occurrences from left to right, leaving out those that overlap one already found."""
        position = 0
        for start, end in self.find_all(text):
            if start >= position:
                yield start, end
                position = end

    def find_all(self, text: str) -> Iterator[tuple[int, int]]:
        """The (start, end) of the longest occurrence at every place where one starts, overlapping or not."""
        for candidate in self._first.finditer(text) if self._first else ():
            start = candidate.start()
            end = self._longest(text, start)
            if end > start:
                yield start, end

    def _longest(self, text: str, start: int) -> int:
        for length in self._lengths[text[start]]:
            piece = text[start : start + length]  # shorter than asked at the end of the text
            if piece in self.strings:
                return start + len(piece)
        return start

    def __contains__(self, text: str) -> bool:
        return text in self.strings
