"""Measurements that alternate, so that a machine whose speed drifts compares like with like.

A round takes every measurement once, in an order that changes from round to round; a ratio is formed inside each round
and only then summarised.  What is measured is a callable that returns named positive numbers; nothing here knows what
it does.
"""

from __future__ import annotations

import math
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


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """Bounds between which the true median lies with 95 % confidence, whatever the distribution; at least 6 samples.

    Source: the sign test's interval between order statistics (Conover, Practical Nonparametric Statistics, 3.2).
    """
    ordered, count = sorted(samples), len(samples)
    if not count:
        raise ValueError("no samples to summarise")
    outside, below = 0, 0.5**count  # samples left out at either end, and how likely the median lies among them
    while below + math.comb(count, outside + 1) * 0.5**count <= 0.025:
        outside += 1
        below += math.comb(count, outside) * 0.5**count
    return ordered[outside], ordered[-1 - outside]


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
    dropped, what it gave before included.  An interrupt ends the rounds early: those that are whole are kept, and only
    where there is none it goes on.
    """
    order = list(measures)
    whole: list[Mapping[str, Mapping[str, float]]] = []
    missing: dict[str, str] = {}
    shuffle = random.Random(seed).shuffle
    try:
        while len(whole) < rounds:
            shuffle(order)
            whole.append(_round(measures, [name for name in order if name not in missing], missing))
            print(f"  round {len(whole)} of {rounds}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        if not whole:
            raise
        print(f"  interrupted; {len(whole)} rounds count", file=sys.stderr, flush=True)
    return Samples(_columns([name for name in measures if name not in missing], whole), missing)


def _round(
    measures: Mapping[str, Measure], order: Sequence[str], missing: dict[str, str]
) -> Mapping[str, Mapping[str, float]]:
    """One turn of every measurement; those that fail are added to `missing`."""
    taken: dict[str, Mapping[str, float]] = {}
    for name in order:
        try:
            taken[name] = measures[name]()
        except Unmeasured as reason:
            missing[name] = str(reason)
    return taken


def _columns(names: Sequence[str], rounds: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, list[float]]:
    return {f"{name} {key}": [taken[name][key] for taken in rounds] for name in names for key in rounds[0][name]}
