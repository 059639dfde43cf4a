"""How figures are said in the sentences of an analysis."""

from __future__ import annotations

from twostroke.study.analysis.result import Estimate


def number(value: float) -> str:
    """Two decimals, three digits below 1, none from 100 on: 0.0125, 0.987, 1.03, 41.20, 412."""
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    digits = 2
    while digits < 6 and abs(value) < 10 ** (2 - digits):
        digits += 1
    return f"{value:.{digits}f}"


def factor(ratio: float) -> str:
    """A ratio of times as a person says it: "4.00 times as fast", "1.25 times as long", "the same time"."""
    if 0.995 < ratio < 1.005:
        return "the same time"
    return f"{number(1 / ratio)} times as fast" if ratio < 1 else f"{number(ratio)} times as long"


def percent(ratio: float) -> str:
    """How far a ratio is from 1: "7.0 %"."""
    return f"{100 * abs(ratio - 1):.1f} %"


def interval(found: Estimate) -> str:
    """The 95 % interval."""
    return f"95 % interval {number(found.low)} to {number(found.high)}"


def interval_90(found: Estimate) -> str:
    """The 90 % interval, which an equivalence is read from."""
    return f"90 % interval {number(found.low_90)} to {number(found.high_90)}"
