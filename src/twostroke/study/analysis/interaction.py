"""Whether the two switches change each other's effect: the question the study is made for.

Per phase the effects are factors, and independent factors multiply: (both / cache) / (speculation / neither) is 1.

End to end they are sums, and there the ratio misleads.  Say a request takes P + D milliseconds, the cache turns P into
a·P and speculation turns D into b·D, each knowing nothing of the other.  Then both / cache = (aP + bD) / (aP + D), and
speculation / neither = (P + bD) / (P + D).  With P = D = 1000, a = 0.1 and b = 0.5 these are 0.55 and 0.75: end to end,
speculation looks far better on a hit, by arithmetic alone, since the cache made decode a larger part of what is left.
In milliseconds the same request shows nothing: (both - cache) = (b - 1) D = (speculation - neither).  So end to end is
judged by milliseconds, and its ratio is given for those who expect one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from twostroke.study.analysis import verdict
from twostroke.study.analysis.effects import within_floor
from twostroke.study.analysis.estimate import Sample, difference, ratio
from twostroke.study.analysis.result import Estimate, Interaction, Kind, Needed, Phase, Verdict
from twostroke.study.analysis.table import Outcomes
from twostroke.study.analysis.verdict import Scaled
from twostroke.study.analysis.words import interval, interval_90, number, percent
from twostroke.study.arms import BOTH, CACHE, FACTORIAL, NEITHER, SPECULATION

CONTRAST = {BOTH.name: 1, CACHE.name: -1, SPECULATION.name: -1, NEITHER.name: 1}
NOT_MEASURED = "Not measured: fewer than two prompts were answered under all four arms."


def interactions(
    outcomes: Mapping[Phase, Outcomes],
    floors: Mapping[Phase, float | None],
    invalid: Collection[str],
    sample: Sample,
    margin: float,
    repeats: int,
) -> tuple[Interaction, ...]:
    """One for each phase, in their order."""
    spoilt = _of_factorial(invalid)
    return tuple(
        _interaction(phase, of_phase, floors[phase], spoilt, sample, margin, repeats)
        for phase, of_phase in outcomes.items()
    )


def overall(interactions: tuple[Interaction, ...], invalid: Collection[str], margin: float, repeats: int) -> Verdict:
    """The verdict over prefill and decode together, as `twostroke.study.analysis.verdict` explains."""
    if spoilt := _of_factorial(invalid):
        return _spoilt(spoilt)
    phases = [interaction for interaction in interactions if interaction.phase != "end to end"]
    scaled = [scale for interaction in phases if (scale := _scaled(interaction, margin)) is not None]
    if len(scaled) < len(phases):
        return Verdict("inconclusive", "Inconclusive: not every phase was measured.")
    kinds = [verdict.judge(scale, 2) for scale in scaled]
    kind = verdict.judge_overall(kinds, interactions[-1].verdict.kind)
    said = ", ".join(f"{one.phase} {_estimate(one)}" for one in phases)
    open_phases = (scale for scale, of_phase in zip(scaled, kinds, strict=True) if of_phase == "inconclusive")
    more = max((verdict.needed(scale, repeats, 2) for scale in open_phases), key=lambda n: n.requests, default=None)
    small = kind == "independent" and any(verdict.negligible(scale) for scale in scaled)
    return Verdict(kind, f"{_OVERALL[kind]} ({said}).", more if kind == "inconclusive" else None, small)


_OVERALL: Mapping[Kind, str] = {
    "independent": "Independent: each switch works the same with the other on, in both phases",
    "help": "They help each other: both on are faster than the two effects together predict",
    "fight": "They fight: both on are slower than the two effects together predict",
    "inconclusive": "Inconclusive: neither independence nor an interaction is shown in both phases together",
}


def _estimate(interaction: Interaction) -> str:
    assert interaction.ratio is not None
    return f"{number(interaction.ratio.value)}, {interval(interaction.ratio)}"


def _scaled(interaction: Interaction, margin: float) -> Scaled | None:
    return verdict.of_ratio(interaction.ratio, margin) if interaction.ratio is not None else None


def _interaction(
    phase: Phase,
    outcomes: Outcomes,
    floor: float | None,
    spoilt: list[str],
    sample: Sample,
    margin: float,
    repeats: int,
) -> Interaction:
    by_ratio, by_difference = ratio(outcomes, CONTRAST, sample), difference(outcomes, CONTRAST, sample)
    if phase == "end to end":
        typical_ms = {arm: _mean(outcomes, arm) for arm in (BOTH.name, NEITHER.name)}
        below = _within_floor_ms(by_difference, floor, typical_ms[NEITHER.name])
        said = _of_difference(by_difference, spoilt, margin, typical_ms[BOTH.name], repeats)
    else:
        below = within_floor(by_ratio, floor)
        said = _of_ratio(phase, by_ratio, spoilt, margin, repeats)
    return Interaction(phase, by_ratio, by_difference, below, said)


def _mean(outcomes: Outcomes, arm: str) -> float:
    values = outcomes.get(arm, np.array([]))
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else 0.0


def _within_floor_ms(found: Estimate | None, floor: float | None, typical_ms: float) -> bool:
    return found is not None and floor is not None and abs(found.value) <= (floor - 1) * typical_ms


def _of_ratio(phase: Phase, found: Estimate | None, spoilt: list[str], margin: float, repeats: int) -> Verdict:
    if spoilt:
        return _spoilt(spoilt)
    if found is None:
        return Verdict("inconclusive", NOT_MEASURED)
    size = f"both on take {number(found.value)} times what the two effects predict for {phase}"
    within = f"±{100 * margin:.0f} %"
    return _verdict(verdict.of_ratio(found, margin), found, size, within, repeats, percent(found.value))


def _of_difference(
    found: Estimate | None, spoilt: list[str], margin: float, typical_ms: float, repeats: int
) -> Verdict:
    """Equivalent within the margin's share of what a request takes with both switches on."""
    if spoilt:
        return _spoilt(spoilt)
    if found is None:
        return Verdict("inconclusive", NOT_MEASURED)
    margin_ms = margin * typical_ms
    away = f"{number(abs(found.value))} ms"
    size = f"both on take {away} {'more' if found.value > 0 else 'less'} than the two effects predict"
    return _verdict(verdict.of_difference(found, margin_ms), found, size, f"±{number(margin_ms)} ms", repeats, away)


def _of_factorial(invalid: Collection[str]) -> list[str]:
    """What a verdict depends on and cannot use."""
    return sorted({"study", *(arm.name for arm in FACTORIAL)} & set(invalid))


def _spoilt(subjects: list[str]) -> Verdict:
    """The findings on these subjects are the reason."""
    return Verdict("invalid", f"No verdict: see what is found of {', '.join(subjects)}.")


def _verdict(scale: Scaled, found: Estimate, size: str, margin: str, repeats: int, away: str) -> Verdict:
    kind, small = verdict.judge(scale), verdict.negligible(scale)
    if kind == "inconclusive":
        more = verdict.needed(scale, repeats)
        return Verdict(kind, f"Inconclusive: {size} ({interval(found)}); {_more(more)}.", more)
    if kind == "independent":
        real = f"; a difference of {away} is real, and too small to matter" if small else ""
        return Verdict(kind, f"Independent: {size} ({interval_90(found)}, within {margin}){real}.", negligible=small)
    return Verdict(kind, f"{'They fight' if kind == 'fight' else 'They help each other'}: {size} ({interval(found)}).")


def _more(needed: Needed) -> str:
    if needed.prompts >= verdict.MOST_PROMPTS:
        return "no number of requests would decide a value on the margin itself"
    count = f"{needed.prompts} prompts × {needed.repeats} repeats = {needed.requests_per_arm} requests per arm"
    if needed.purpose == "interval":
        return f"a verdict takes at least {count}"
    aim = "equivalence" if needed.purpose == "equivalence" else "a difference"
    return f"about {count} would show {aim}, if the spread stays what it is"
