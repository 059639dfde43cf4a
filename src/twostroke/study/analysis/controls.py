"""The two comparisons that must show nothing, and the noise floor they give.

*different-prefix* has the cache on and nothing to reuse.  If it is faster than `neither`, then what the cache arms gain
is not (only) reuse: the load differs between arms, a warm-up reached only some of them, or text is shared after all.
*neither-again* is `neither` once more: whatever separates the two is what this study takes for an effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from twostroke.study.analysis.estimate import Sample, ratio
from twostroke.study.analysis.result import Control, Estimate, Finding, Phase
from twostroke.study.analysis.table import Outcomes
from twostroke.study.analysis.words import interval, number
from twostroke.study.arms import DIFFERENT_PREFIX, NEITHER, NEITHER_AGAIN


def controls(outcomes: Mapping[Phase, Outcomes], sample: Sample, margin: float) -> tuple[Control, ...]:
    """Different-prefix on prefill; neither-again on every phase."""
    return (_different_prefix(outcomes["prefill"], sample, margin), *_again(outcomes, sample, margin))


def floors(found: tuple[Control, ...]) -> dict[Phase, float | None]:
    """Per phase, how far from 1 the same arm may be from itself: the far end of its interval, as a ratio above 1."""
    return {control.phase: _floor(control.ratio) for control in found if control.name == "neither-again"}


def failures(found: tuple[Control, ...]) -> Iterator[Finding]:
    """A control that failed makes the study invalid; one that was not run is worth a note."""
    for control in found:
        if control.passed is False:
            yield Finding("invalid", "study", control.sentence)
        elif control.passed is None:
            yield Finding("note", control.name, control.sentence)


def _floor(found: Estimate | None) -> float | None:
    return math.exp(max(abs(math.log(found.low)), abs(math.log(found.high)))) if found else None


def _different_prefix(outcomes: Outcomes, sample: Sample, margin: float) -> Control:
    found = ratio(outcomes, {DIFFERENT_PREFIX.name: 1, NEITHER.name: -1}, sample)
    if found is None:
        return Control("different-prefix", "prefill", None, None, "Different-prefix was not measured.")
    passed = not _outside(found, margin) or found.value > 1
    return Control("different-prefix", "prefill", found, passed, _said_of_different_prefix(found, passed))


def _said_of_different_prefix(found: Estimate, passed: bool) -> str:
    said = f"Different-prefix ÷ neither, time to first token: {number(found.value)} ({interval(found)})"
    if not passed:
        return (
            f"{said}: a gain with nothing to reuse.  The gain of the cache arms is then not reuse alone: look for text "
            "that prompts share, a warm-up that only some arms had, or a load that differs between arms."
        )
    return f"{said}: a cache without hits costs time." if found.low > 1 else f"{said}: no gain, as it should be."


def _again(outcomes: Mapping[Phase, Outcomes], sample: Sample, margin: float) -> Iterator[Control]:
    for phase, of_phase in outcomes.items():
        found = ratio(of_phase, {NEITHER_AGAIN.name: 1, NEITHER.name: -1}, sample)
        passed = not _differs(found, margin) if found else None
        yield Control("neither-again", phase, found, passed, _said_of_again(phase, found, passed))


def _said_of_again(phase: Phase, found: Estimate | None, passed: bool | None) -> str:
    if found is None:
        return f"Neither-again was not measured in {phase}: the noise floor is unknown."
    said = f"Neither-again ÷ neither, {phase}: {number(found.value)} ({interval(found)})"
    if not passed:
        return f"{said}: the same arm differs from itself, so no difference between arms can be trusted."
    if found.low > 1 or found.high < 1:
        return f"{said}: the same arm differs a little from itself; smaller effects mean nothing."
    return f"{said}: the noise floor."


def _differs(found: Estimate, margin: float) -> bool:
    """As `_outside`, at 97.5 %: three phases are tested, and noise alone should seldom spoil a study."""
    return (found.low_97_5 > 1 or found.high_97_5 < 1) and abs(math.log(found.value)) > math.log1p(margin)


def _outside(found: Estimate, margin: float) -> bool:
    """Shown to differ from 1, and by more than the margin."""
    return (found.low > 1 or found.high < 1) and abs(math.log(found.value)) > math.log1p(margin)
