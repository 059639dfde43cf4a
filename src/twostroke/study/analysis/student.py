"""Quantiles of the normal and of Student's distribution, from the standard library alone."""

from __future__ import annotations

import math
from statistics import NormalDist

_NORMAL = NormalDist()


def z(p: float) -> float:
    """The normal quantile of probability `p`."""
    return _NORMAL.inv_cdf(p)


def phi(x: float) -> float:
    """The normal distribution function."""
    return _NORMAL.cdf(x)


def t(p: float, df: int) -> float:
    """Student's quantile of probability `p` with `df` >= 1 degrees of freedom.

    Closed forms for one and two degrees; above, the expansion of Abramowitz & Stegun (1964) 26.7.5, which is within
    1 % from three degrees on for the levels used here.
    """
    if df == 1:
        return math.tan(math.pi * (p - 0.5))
    if df == 2:
        return (2 * p - 1) * math.sqrt(2 / (4 * p * (1 - p)))
    x = z(p)
    terms = (
        x,
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return math.fsum(term / float(df) ** power for power, term in enumerate(terms))
