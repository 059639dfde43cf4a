"""Measurements that alternate, so that a machine whose speed drifts compares like with like.

A round takes every measurement once, in an order that changes from round to round; a ratio is formed inside each round
and only then summarised.  What is measured is a callable that returns named positive numbers; nothing here knows what
it does.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

Measure = Callable[[], Mapping[str, float]]
Job = Callable[[], float]


class Unmeasured(Exception):
    """A measurement that could not be taken; the run goes on without it.  The message says why."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of some samples and how far they scatter."""

    median: float
    p10: float
    p90: float
    samples: int

    @staticmethod
    def of(samples: Sequence[float]) -> Spread:
        """Raises ValueError for no samples at all."""
        if not samples:
            raise ValueError("no samples to summarise")
        return Spread(median(samples), quantile(samples, 0.1), quantile(samples, 0.9), len(samples))


def quantile(samples: Sequence[float], share: float) -> float:
    """The value below which `share` (0…1) of the samples lie, linear between neighbours."""
    ordered = sorted(samples)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(frozen=True, slots=True)
class Samples:
    """What the rounds gave: per name one number a round, aligned by round; what failed is in `missing`."""

    taken: Mapping[str, Sequence[float]]
    missing: Mapping[str, str]  # measurement -> why

    def __contains__(self, name: object) -> bool:
        return name in self.taken

    def spread(self, name: str) -> Spread:
        """KeyError for a name that was not measured."""
        return Spread.of(self.taken[name])

    def ratio(self, above: str, below: str) -> Spread:
        """above ÷ below, round by round."""
        return self.combine(lambda a, b: a / b, above, below)

    def combine(self, formula: Callable[..., float], *names: str) -> Spread:
        """A formula over the numbers of one round, for every round."""
        return Spread.of([formula(*values) for values in zip(*(self.taken[name] for name in names), strict=True)])


def cycle(jobs: Mapping[str, Job], repeats: int) -> Mapping[str, float]:
    """The median of each job's number over `repeats` turns in which every job runs once, so that neighbours compare."""
    turns = [{name: job() for name, job in jobs.items()} for _ in range(repeats)]
    return {name: median(turn[name] for turn in turns) for name in jobs}


def interleave(measures: Mapping[str, Measure], rounds: int, seed: int = 1) -> Samples:
    """Take every measurement once a round, in an order drawn anew each round from `seed`.

    A number is called by its measurement and its own name, "steps 8".  A measurement that raises `Unmeasured` is
    dropped, what it gave before included.
    """
    order = list(measures)
    taken: dict[str, list[Mapping[str, float]]] = {name: [] for name in order}
    missing: dict[str, str] = {}
    shuffle = random.Random(seed).shuffle
    for round_ in range(rounds):
        shuffle(order)
        for name in [name for name in order if name not in missing]:
            try:
                taken[name].append(measures[name]())
            except Unmeasured as reason:
                missing[name] = str(reason)
        print(f"  round {round_ + 1} of {rounds}", file=sys.stderr, flush=True)
    return Samples(_columns({name: rows for name, rows in taken.items() if name not in missing}), missing)


def _columns(taken: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, list[float]]:
    return {f"{name} {key}": [row[key] for row in rows] for name, rows in taken.items() if rows for key in rows[0]}
