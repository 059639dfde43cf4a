"""What speculation gains, from three numbers.

`alpha` is the probability that a draft token is accepted, `cost` what drafting it takes and `verify` what verifying it
adds, both in units of one plain decode step; k is the number of drafts per step.  With independent acceptance a step
yields E(k) = (1 - alpha^(k+1)) / (1 - alpha) tokens and is S(k) = E(k) / (1 + k (cost + verify)) times as fast as plain
decoding (Leviathan et al., arXiv 2211.17192, section 3, with the verification term added).  Pure functions; the
governor itself uses measured curves and survival by position instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from twostroke.errors import InvalidParameter
from twostroke.govern.cost import CostCurves

MOST_DRAFTS = 64


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The answer of `whatif`; its fields are the keys of the JSON document."""

    expected_tokens: float
    speedup: float
    best_k: int
    break_even_alpha: float


def expected_tokens(alpha: float, draft_tokens: int) -> float:
    """Tokens per step with `draft_tokens` drafts: the accepted ones and the one the target always adds."""
    if alpha == 1.0:
        return draft_tokens + 1.0
    return float((1 - alpha ** (draft_tokens + 1)) / (1 - alpha))


def speedup(alpha: float, cost: float, verify: float, draft_tokens: int) -> float:
    """Plain decode time over speculative decode time; above 1 speculation pays."""
    return expected_tokens(alpha, draft_tokens) / (1 + draft_tokens * (cost + verify))


def best_k(alpha: float, cost: float, verify: float, most: int = MOST_DRAFTS) -> int:
    """The number of drafts, 0 to `most`, with the highest speed-up; the smallest of equals."""
    return max(range(most + 1), key=lambda k: (speedup(alpha, cost, verify, k), -k))


def break_even_alpha(cost: float, verify: float) -> float:
    """The acceptance above which one draft pays; below it no number of drafts does.

    S(1) > 1 needs alpha > cost + verify, and more drafts need more: the mean of alpha, alpha², … is at most alpha.
    A value of 1 or more says that drafting never pays.
    """
    return cost + verify


def whatif(alpha: float, cost: float, verify: float, draft_tokens: int | None = None) -> WhatIf:
    """What `draft_tokens` drafts per step would gain; without a number, the best one.

    Raises `InvalidParameter` for an `alpha` outside 0…1, a negative `cost` or `verify`, or a depth outside 0…64.
    """
    in_range("alpha", alpha, 1.0)
    in_range("cost", cost, math.inf)
    in_range("verify", verify, math.inf)
    best = best_k(alpha, cost, verify)
    if draft_tokens is not None:
        in_range("draft_tokens", draft_tokens, MOST_DRAFTS)
    k = best if draft_tokens is None else draft_tokens
    return WhatIf(expected_tokens(alpha, k), speedup(alpha, cost, verify, k), best, break_even_alpha(cost, verify))


def measured_terms(curves: CostCurves, draft_tokens: int = 4, context: int = 0) -> tuple[float, float]:
    """`cost` and `verify` of this machine, `verify` as the mean over the first `draft_tokens` drafts of a sequence."""
    plain = curves.step(1, context)
    verify = (curves.step(1 + draft_tokens, context) - plain) / draft_tokens
    return curves.draft(1) / plain, verify / plain


def in_range(name: str, value: float, most: float) -> None:
    if not (math.isfinite(value) and 0 <= value <= most):
        wanted = "0 or more" if most == math.inf else f"from 0 to {most:g}"
        raise InvalidParameter(f"{name} is {value}, must be {wanted}", param=name)
