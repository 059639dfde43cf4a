"""Prompt lookup: what followed the last time the text ended like this.

The longest match of the last n tokens (n from `longest` down to `shortest`) in prompt and output, the most recent one,
continued by up to `limit` tokens (Saxena, "Prompt Lookup Decoding", 2023).  The index grows with the text, so a step
costs what the step added.  The invariant: the index holds every n-gram that ends before the last token, and only those,
so the end of the text never matches itself.  Knows one sequence at a time and no other request's text.
"""

from __future__ import annotations

from collections.abc import Sequence

from twostroke.engine.protocols import SequenceView
from twostroke.speculate.lookup import NO_MATCH, Guess
from twostroke.types import Report

LONGEST, SHORTEST = 4, 2
MOST = 65_536  # of a longer prompt only the last so many tokens are indexed


class NgramIndex:
    """Where each n-gram of one growing text ended last, for every n in `shortest`…`longest`."""

    def __init__(self, longest: int = LONGEST, shortest: int = SHORTEST) -> None:
        self.sizes = range(longest, shortest - 1, -1)
        self.indexed = 0  # n-grams ending at a position up to this one are known
        self._ends: dict[int, dict[tuple[int, ...], int]] = {n: {} for n in self.sizes}

    def extend(self, tokens: Sequence[int]) -> None:
        """Take in the text up to its last token, which stays out."""
        end = len(tokens) - 1
        known = self.indexed or max(0, end - MOST)
        if end <= known:
            return
        for n in self.sizes:
            first = max(known + 1, n)  # the first new end position
            new = tokens[first - n : end]
            # One pass in C: later n-grams overwrite earlier ones, so the most recent stays.
            self._ends[n].update(
                zip(zip(*(new[i:] for i in range(n)), strict=False), range(first, end + 1), strict=False)
            )
        self.indexed = end

    def match(self, tokens: Sequence[int]) -> tuple[int, int]:
        """The position after the most recent longest match of the text's end, and its n; (0, 0) if there is none."""
        for n in self.sizes:
            if len(tokens) > n and (end := self._ends[n].get(tuple(tokens[-n:]), 0)):
                return end, n
        return 0, 0


def continuation(tokens: Sequence[int], start: int, limit: int) -> tuple[int, ...]:
    """`limit` tokens from `start` on; where the text ends first, it is taken to repeat with the period of the match."""
    known = tuple(tokens[start : start + limit])
    return tuple(known[i % len(known)] for i in range(limit))


class Ngram:
    """The lookup named `ngram`."""

    name = "ngram"

    def __init__(self, longest: int = LONGEST, shortest: int = SHORTEST) -> None:
        self.longest, self.shortest = longest, shortest
        self._indexes: dict[int, NgramIndex] = {}

    def guess(self, sequence: SequenceView, limit: int) -> Guess:
        tokens = sequence.tokens
        index = self._index(sequence)
        index.extend(tokens)
        end, n = index.match(tokens)
        return Guess(continuation(tokens, end, limit), strength=n) if n else NO_MATCH

    def read(self, sequence: SequenceView) -> None:
        self._index(sequence).extend(sequence.tokens)

    def observe(self, report: Report) -> None:
        pass

    def forget(self, sequence: int) -> None:
        self._indexes.pop(sequence, None)

    def purge(self, namespace: str) -> None:
        pass  # keeps nothing beyond the sequences that run

    def _index(self, sequence: SequenceView) -> NgramIndex:
        index = self._indexes.get(sequence.id)
        if index is None:
            index = self._indexes[sequence.id] = NgramIndex(self.longest, self.shortest)
        return index
