"""Drafts that come true at rates you set: for tests and benchmarks, where any acceptance curve is wanted.

An oracle (the recorded answers of a run without speculation) says what is right; draft i of a proposal is right with
probability `rates[i]` if those before it were, and wrong for certain otherwise.  The choice is a hash of the seed, the
text's place and i, so a run can be repeated and two runs compared.  Knows the answers in advance, so it is of no use to
anyone else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from twostroke.engine.protocols import SequenceView
from twostroke.speculate.lookup import NO_MATCH, Guess
from twostroke.types import Report

Rates = Callable[["SequenceView"], Sequence[float]]
Oracle = Callable[["SequenceView"], Sequence[int]]
MASK = (1 << 64) - 1


def always(*rates: float) -> Rates:
    """The same rates for every sequence at every time; the last goes on for deeper positions."""
    return lambda sequence: rates


def recorded(answers: Mapping[tuple[tuple[int, ...], int], Sequence[int]]) -> Oracle:
    """An oracle from recorded outputs, by prompt and choice; silent about prompts it has not seen."""

    def answer(sequence: SequenceView) -> Sequence[int]:
        return answers.get((tuple(sequence.tokens[: sequence.prompt_length]), sequence.choice), ())

    return answer


def uniform(*key: int) -> float:
    """A number in 0…1 that depends on the key alone (splitmix64: Steele, Lea, Flood, OOPSLA 2014)."""
    state = 0
    for part in key:
        state = (state + part + 0x9E3779B97F4A7C15) & MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
        state ^= state >> 31
    return state / (1 << 64)


def wrong(token: int) -> int:
    """Another token of the same vocabulary."""
    return token - 1 if token else 1


class Synthetic:
    """The lookup named `synthetic`."""

    name = "synthetic"

    def __init__(self, oracle: Oracle, rates: Rates, seed: int = 0) -> None:
        self.oracle = oracle
        self.rates = rates
        self.seed = seed
        self._answers: dict[int, Sequence[int]] = {}

    def guess(self, sequence: SequenceView, limit: int) -> Guess:
        if sequence.id not in self._answers:
            self._answers[sequence.id] = self.oracle(sequence)
        done = len(sequence.tokens) - sequence.prompt_length
        coming = self._answers[sequence.id][done : done + limit]
        rates = self.rates(sequence)
        if not coming or not rates:
            return NO_MATCH
        return Guess(tuple(self._draft(sequence, done, coming, rates)))

    def read(self, sequence: SequenceView) -> None:
        pass

    def observe(self, report: Report) -> None:
        pass

    def forget(self, sequence: int) -> None:
        self._answers.pop(sequence, None)

    def purge(self, namespace: str) -> None:
        pass

    def _draft(self, sequence: SequenceView, done: int, coming: Sequence[int], rates: Sequence[float]) -> list[int]:
        drafts = []
        right = True
        for i, token in enumerate(coming):
            rate = rates[min(i, len(rates) - 1)]
            right = right and uniform(self.seed, sequence.id, done, i) < rate
            drafts.append(token if right else wrong(token))
        return drafts
