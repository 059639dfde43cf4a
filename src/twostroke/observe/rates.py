"""What a step takes on this machine, learned from the steps themselves.

Two figures answer "what would the skipped work have cost?": seconds per prompt position in large steps, and seconds of
a step by the number of positions it computes.  Both forget old steps at a fixed rate, so they follow the machine's
load.  Knows nothing about who computed what.
"""

from __future__ import annotations

from typing import Protocol

from twostroke.types import Report

LARGE = 32  # positions from which a step counts as prefill: the sweep over the weights is then a minor part
KEEP = 0.95  # weight of the past at each new step


class Rates(Protocol):
    """The counterfactual prices the accounts need; the cost curves of the governor can stand here as well."""

    def prefill_s(self, tokens: int) -> float:
        """Seconds to compute `tokens` prompt positions here, now; 0 while unknown."""
        ...

    def step_s(self, positions: int) -> float | None:
        """Seconds of a decoding step that computes `positions`; None while unknown."""
        ...


class MeasuredRates:
    """Decayed means over step reports: one for prefill, one for each power of two of positions in a step."""

    def __init__(self) -> None:
        self._prefill_s = 0.0
        self._prefill_tokens = 0.0
        self._steps: dict[int, float] = {}  # bit length of positions -> seconds

    def __call__(self, report: Report) -> None:
        positions = sum(row.computed for row in report.rows)
        seconds = report.ended_s - report.started_s
        if positions == 0 or seconds <= 0:
            return
        if positions >= LARGE:
            self._prefill_s = KEEP * self._prefill_s + seconds
            self._prefill_tokens = KEEP * self._prefill_tokens + positions
        bucket = positions.bit_length()
        self._steps[bucket] = KEEP * self._steps.get(bucket, seconds) + (1 - KEEP) * seconds

    def prefill_s(self, tokens: int) -> float:
        """Seconds for `tokens` positions at the decayed mean rate of large steps; 0 before the first."""
        return tokens * self._prefill_s / self._prefill_tokens if self._prefill_tokens else 0.0

    def step_s(self, positions: int) -> float | None:
        """The mean of steps of about so many positions; the nearest smaller or larger size seen, else None."""
        if not self._steps:
            return None
        bucket = positions.bit_length()
        return self._steps[min(self._steps, key=lambda seen: (abs(seen - bucket), seen))]
