"""What an estimate with its intervals shows: independent, help, fight or inconclusive.

*Independent* is a claim and needs evidence, not a lack of it: the 90 % interval lies within the margin, which is the
test of equivalence by two one-sided tests at 5 % each (Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987).
*Help* and *fight*: the 95 % interval excludes "no difference".  A difference that is real and yet within the margin is
independent, with the difference stated: nobody would notice it.  Everything else is inconclusive.

Error rates.  Where the switches do not interact, a phase is said to help or fight in at most 5 % of studies; where they
interact by the margin or more, it is said to be independent in at most 5 %.  The overall verdict reads two phases:
independent means both are, which holds at 5 % without a correction (an intersection-union test: Berger, Technometrics
24, 1982); help or fight means that either shows it, so each is tested at 2.5 % (Bonferroni), the two together at 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from twostroke.study.analysis import student
from twostroke.study.analysis.result import Estimate, Kind, Needed
from twostroke.study.analysis.table import MINIMUM_CLUSTERS

ARMS = 4
POWER = 0.8


@dataclass(frozen=True, slots=True)
class Scaled:
    """An estimate on the scale on which it is symmetric (logarithms, or milliseconds): no difference is 0."""

    value: float
    at_95: tuple[float, float]
    at_90: tuple[float, float]
    at_97_5: tuple[float, float]
    standard_error: float
    margin: float  # within ± this, a difference does not matter
    prompts: int
    clusters: int


def of_ratio(found: Estimate, margin: float) -> Scaled:
    """A ratio by its logarithm; `margin` 0.1 is [1 / 1.1, 1.1]."""
    pairs = ((found.low, found.high), (found.low_90, found.high_90), (found.low_97_5, found.high_97_5))
    at_95, at_90, at_97_5 = ((math.log(low), math.log(high)) for low, high in pairs)
    bound = math.log1p(margin)
    return Scaled(
        math.log(found.value), at_95, at_90, at_97_5, found.standard_error, bound, found.prompts, found.clusters
    )


def of_difference(found: Estimate, margin_ms: float) -> Scaled:
    """Milliseconds as they are."""
    return Scaled(
        found.value,
        (found.low, found.high),
        (found.low_90, found.high_90),
        (found.low_97_5, found.high_97_5),
        found.standard_error,
        margin_ms,
        found.prompts,
        found.clusters,
    )


def judge(found: Scaled, phases: Literal[1, 2] = 1) -> Kind:
    """The verdict on one comparison, or on one of two `phases` that are read together."""
    if found.clusters < MINIMUM_CLUSTERS:
        return "inconclusive"
    if -found.margin <= found.at_90[0] and found.at_90[1] <= found.margin:
        return "independent"
    low, high = found.at_95 if phases == 1 else found.at_97_5
    return "fight" if low > 0 else "help" if high < 0 else "inconclusive"


def negligible(found: Scaled) -> bool:
    """Whether an independent comparison still shows a difference: real, and within the margin."""
    return judge(found) == "independent" and not found.at_95[0] <= 0 <= found.at_95[1]


def judge_overall(kinds: Sequence[Kind], end_to_end: Kind) -> Kind:
    """One verdict from those of the phases, each judged with `phases=2`.

    Where one phase helps and the other fights, the milliseconds end to end decide.
    """
    directions = {kind for kind in kinds if kind in ("help", "fight")}
    if len(directions) == 2:
        return end_to_end if end_to_end in directions else "inconclusive"
    if directions:
        return directions.pop()
    return "independent" if kinds and all(kind == "independent" for kind in kinds) else "inconclusive"


def needed(found: Scaled, repeats: int, phases: Literal[1, 2] = 1) -> Needed:
    """How many requests would show equivalence or a difference, whichever takes fewer, with a power of 80 %.

    Chow, Shao & Wang, "Sample Size Calculations in Clinical Research" (2008), section 3.1, for paired samples:
    difference n = ((z_a/2 + z_b) s / d)², equivalence n = ((z_a + z_b/2) s / (margin - |d|))².  A standard error falls
    with the root of the number of prompts, so s² / n is taken from the present one; d is the present estimate.
    """
    if found.clusters < MINIMUM_CLUSTERS:
        prompts = math.ceil(found.prompts * MINIMUM_CLUSTERS / max(found.clusters, 1))
        return _needed("interval", prompts, repeats)
    away = abs(found.value)
    equivalence = _prompts(found, student.z(0.95) + student.z(0.5 + POWER / 2), found.margin - away)
    decision = _prompts(found, student.z(1 - 0.025 / phases) + student.z(POWER), away)
    if equivalence <= decision:
        return _needed("equivalence", equivalence, repeats)
    return _needed("decision", decision, repeats)


MOST_PROMPTS = 10**9  # where the estimate sits where no number of requests would decide


def _prompts(found: Scaled, quantiles: float, distance: float) -> int:
    if distance <= 0:
        return MOST_PROMPTS
    wanted = found.prompts * (quantiles * found.standard_error / distance) ** 2
    return max(found.prompts + 1, math.ceil(min(wanted, MOST_PROMPTS)))


def _needed(purpose: Literal["equivalence", "decision", "interval"], prompts: int, repeats: int) -> Needed:
    return Needed(purpose, prompts, repeats, prompts * repeats, prompts * repeats * ARMS)
