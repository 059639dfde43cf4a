"""What each switch does to each phase, the other switch being off and on.

A cache should shorten prefill and speculation should shorten decode; the cross effects (a cache on decode, speculation
on prefill) should be nothing, and are measured because an engine may well show some.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

from twostroke.study.analysis.estimate import Sample, difference, ratio
from twostroke.study.analysis.result import Effect, Estimate, Phase
from twostroke.study.analysis.table import Outcomes
from twostroke.study.analysis.words import factor, interval, number
from twostroke.study.arms import BOTH, CACHE, NEITHER, SPECULATION

Switch = Literal["cache", "speculation"]

COMPARISONS: tuple[tuple[Switch, bool, str, str], ...] = (
    ("cache", False, CACHE.name, NEITHER.name),
    ("cache", True, BOTH.name, SPECULATION.name),
    ("speculation", False, SPECULATION.name, NEITHER.name),
    ("speculation", True, BOTH.name, CACHE.name),
)
EXPECTED: Mapping[Phase, Switch] = {"prefill": "cache", "decode": "speculation"}


def effects(
    outcomes: Mapping[Phase, Outcomes], floors: Mapping[Phase, float | None], invalid: Collection[str], sample: Sample
) -> tuple[Effect, ...]:
    """Four comparisons for each phase; those of an arm in `invalid`, or all if "study" is, say so."""
    return tuple(_effects(outcomes, floors, invalid, sample))


def _effects(
    outcomes: Mapping[Phase, Outcomes], floors: Mapping[Phase, float | None], invalid: Collection[str], sample: Sample
) -> Iterator[Effect]:
    for phase, of_phase in outcomes.items():
        for switch, other_on, arm, over in COMPARISONS:
            contrast = {arm: 1, over: -1}
            found = ratio(of_phase, contrast, sample)
            below = within_floor(found, floors[phase])
            valid = not {"study", arm, over} & set(invalid)
            yield Effect(
                switch=switch,
                phase=phase,
                other_on=other_on,
                arm=arm,
                over=over,
                expected=EXPECTED.get(phase) == switch,
                ratio=found,
                difference_ms=difference(of_phase, contrast, sample),
                below_noise_floor=below,
                valid=valid,
                sentence=_sentence(found, below, valid, f"{arm} ÷ {over}"),
            )


def within_floor(found: Estimate | None, floor: float | None) -> bool:
    """Whether a ratio is no farther from 1 than the noise floor (a ratio of at least 1)."""
    return found is not None and floor is not None and abs(math.log(found.value)) <= math.log(floor)


def _sentence(found: Estimate | None, below: bool, valid: bool, name: str) -> str:
    if found is None:
        return f"{name}: not measured; fewer than two prompts were answered under both arms."
    said = f"{name}: {number(found.value)} ({interval(found)}), {factor(found.value)}"
    if not valid:
        return f"{said}; not to be used, see the findings."
    if below:
        return f"{said}; smaller than the noise floor."
    return f"{said}." if found.low > 1 or found.high < 1 else f"{said}; no difference shown."
