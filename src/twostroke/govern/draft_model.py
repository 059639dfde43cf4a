"""Whether a draft model is worth its time, and to which depth.

Its passes are paid before anyone knows what it will say, so the decision rests on what it has been worth so far: the
survival that it expects, against the proposals that are to be had for nothing, at the measured cost of its passes and
of verifying, and on whether the machine can afford it: drafts that nobody could verify would be lost for certain.
Where it is not worth it, it is asked now and then all the same, for at most `PROBES` of the time, since
only its own guesses show whether that has changed.  Knows no tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from twostroke.govern.cost import CostCurves

PROBES = 0.007  # of the time, spent on asking where it does not pay
PROBE_DEPTH = 2
MARGIN = 1.02  # the gain in tokens per second from which it pays


class DepthChooser:
    """Decides for all sequences at once; `curves` gives the costs as they are now.

    `spend` is asked, and charged, before passes that pay by expectation: seconds of passes, and of verifying.
    """

    def __init__(
        self, curves: Callable[[], CostCurves], spend: Callable[[float, float], bool] = lambda passes, checks: True
    ) -> None:
        self.curves = curves
        self.spend = spend
        self._credit_s = 0.0
        self._probed = -1

    def __call__(self, survivals: Mapping[int, tuple[float, ...]], rivals: Mapping[int, float]) -> dict[int, int]:
        """By sequence, how many tokens the model should draft; sequences without are absent.

        `survivals` is the survival it expects by position, `rivals` the drafts expected to come true without it.
        """
        curves = self.curves()
        depths = best_depths(survivals, rivals, curves)
        if depths:
            return depths if self.spend(passes_s(depths, curves), checks_s(depths, len(survivals), curves)) else {}
        self._credit_s += PROBES * curves.step(max(1, len(survivals)))
        return self._probe(survivals, curves)

    def _probe(self, survivals: Mapping[int, tuple[float, ...]], curves: CostCurves) -> dict[int, int]:
        """One sequence, in turn, once its cost has been saved up."""
        plain = curves.step(max(1, len(survivals)))
        cost_s = PROBE_DEPTH * curves.draft(1) + curves.step(len(survivals) + PROBE_DEPTH) - plain
        if not survivals or self._credit_s < cost_s:
            return {}
        self._credit_s = 0.0
        later = [sequence for sequence in survivals if sequence > self._probed]
        self._probed = min(later or survivals)
        return {self._probed: min(PROBE_DEPTH, len(survivals[self._probed]))}


def best_depths(
    survivals: Mapping[int, tuple[float, ...]], rivals: Mapping[int, float], curves: CostCurves
) -> dict[int, int]:
    """The common depth with the most tokens per second, for those sequences that gain by it; {} where none does."""
    gains = {sequence: list(accumulate(survival)) for sequence, survival in survivals.items()}
    best: dict[int, int] = {}
    best_rate = rate(best, gains, rivals, curves) * MARGIN
    for most in range(1, max(map(len, gains.values()), default=0) + 1):
        depths = {sequence: min(most, len(gain)) for sequence, gain in gains.items() if gain}
        depths = {s: depth for s, depth in depths.items() if gains[s][depth - 1] > rivals.get(s, 0.0)}
        if depths and (reached := rate(depths, gains, rivals, curves)) > best_rate:
            best, best_rate = depths, reached
    return best


def rate(
    depths: Mapping[int, int], gains: Mapping[int, list[float]], rivals: Mapping[int, float], curves: CostCurves
) -> float:
    """Tokens per second of a step in which the model drafts to `depths` and the others keep their rivals' drafts."""
    if not gains:
        return 0.0
    tokens, rows = float(len(gains)), len(gains)
    for sequence, gain in gains.items():
        depth = depths.get(sequence, 0)
        rival = rivals.get(sequence, 0.0)
        tokens += gain[depth - 1] if depth else rival
        rows += depth or math.ceil(rival)
    return tokens / (curves.step(rows) + passes_s(depths, curves))


def passes_s(depths: Mapping[int, int], curves: CostCurves) -> float:
    """What the model's passes take: one per draft, for all sequences that want one more."""
    passes = [sum(depth > layer for depth in depths.values()) for layer in range(max(depths.values(), default=0))]
    return sum(map(curves.draft, passes))


def checks_s(depths: Mapping[int, int], answering: int, curves: CostCurves) -> float:
    """What verifying all those drafts adds to a step of so many answers."""
    return curves.step(answering + sum(depths.values())) - curves.step(answering)


def gain(survival: Sequence[float], curves: CostCurves) -> float:
    """The share of a lone answer's time that a draft model of this survival should save."""
    survivals = {0: tuple(survival)}
    gains = {0: list(accumulate(survival))}
    plain = rate({}, gains, {}, curves)
    best = rate(best_depths(survivals, {}, curves), gains, {}, curves)
    return 1.0 - plain / best if best else 0.0
