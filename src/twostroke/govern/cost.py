"""What a step costs on this machine: the one object that calibration writes and everyone else reads.

`step_ms` says how long a step of so many rows takes on short contexts, `step_ms_by_context` what one row takes as the
context grows.  The invariant: a step never gets cheaper with more rows or more context.  Curves are values; refining
them with a real step gives new ones.  Nothing here has a clock or knows why a step was run.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from twostroke.errors import ConfigError

DRIFT_GAIN = 0.08  # how far one step moves the common scale: a drift by a third is followed within some forty steps
SHAPE_GAIN = 0.04  # how far one step moves the points it lies between, by what sets it apart from other steps
CLIP = 0.25  # a step further off than this (in natural log) moves no more than one that is off by this
OUTLIER = 1.5  # a step off by more than this is a hiccup of the machine, not a cost: it moves nothing …
PATIENCE = 8  # … unless so many in a row say the same …
SETTLED = 30  # … or the curves rest on fewer steps than this
PASSING = ("seen", "bias", "outliers")  # fields that make no sense in a file


@dataclass(frozen=True)
class CostCurves:
    """Measured costs.  Times are ms, rows are positions computed in a step, context is positions attended.

    For a step of several sequences `context` is the sum over sequences of the positions their last row attends to:
    the keys and values of one sequence are read once, however many of its rows are in the step.
    """

    step_ms: Mapping[int, float]
    step_ms_by_context: Mapping[int, float] = field(default_factory=dict)  # one row
    prefill_tokens_per_s: float = 100.0
    draft_ms: Mapping[int, float] = field(
        default_factory=dict
    )  # one pass of the draft model by rows; empty: none loaded
    read_bandwidth_gb_s: float = 0.0
    bytes_per_step: int = 0
    kernels: str = ""  # the path in use
    seen: int = 1000  # steps behind the curves: the scale of those that rest on few is learned faster
    scale: float = 1.0  # the machine now, over the machine when the curves were measured
    bias: float = 0.0  # mean error (natural log) of recent steps: what all of them share is no matter of shape
    outliers: int = 0  # steps in a row that looked like hiccups

    def __post_init__(self) -> None:
        if not self.step_ms:
            raise ConfigError("cost curves hold no step_ms: run `twostroke calibrate`", param="step_ms")
        for name in ("step_ms", "step_ms_by_context", "draft_ms"):
            object.__setattr__(self, name, rising(name, getattr(self, name)))
        for name in ("prefill_tokens_per_s", "scale"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ConfigError(f"cost curves: {name} is {getattr(self, name)}, must be above 0", param=name)

    def step(self, rows: int, context: int = 0) -> float:
        """Seconds that a step of `rows` rows over `context` attended positions takes here, now; 0 for no rows."""
        if rows < 1:
            return 0.0
        return (self._by_rows(rows) + self._attention(context)) * self.scale / 1000

    def draft(self, rows: int) -> float:
        """Seconds that one pass of the draft model takes for `rows` sequences; 0 when none is loaded."""
        return self._draft.at(rows) * self.scale / 1000 if self.draft_ms and rows else 0.0

    def cheapest_row(self) -> float:
        """Seconds that one more row adds at the least, wherever it is added."""
        return self._cheapest * self.scale / 1000

    def added(self, rows: int, most: int) -> Iterator[float]:
        """Seconds that 1, 2, … `most` rows add to a step of `rows` rows (at least 1), over any context."""
        points, values = self._rows.points, self._rows.values
        unit = self.scale / 1000
        beyond = unit * 1000 / self.prefill_tokens_per_s
        added = 0.0
        right = bisect_right(points, rows)
        for row in range(rows, rows + most):
            if right < len(points) and row >= points[right]:
                right += 1
            if right == len(points):
                added += beyond
            elif right:
                added += unit * (values[right] - values[right - 1]) / (points[right] - points[right - 1])
            yield added

    def rows_within(self, seconds: float, context: int = 0, most: int = 512) -> int:
        """The largest number of rows, up to `most`, whose step takes at most `seconds`; at least 1."""
        ms = seconds * 1000 / self.scale - self._attention(context)
        points, values = self._rows.points, self._rows.values
        i = bisect_right(values, ms)  # the first point that takes longer
        if i == len(points):
            rows = points[-1] + int((ms - values[-1]) * self.prefill_tokens_per_s / 1000)
        elif i:
            share = (ms - values[i - 1]) / (values[i] - values[i - 1])
            rows = points[i - 1] + int(share * (points[i] - points[i - 1]))
        else:
            rows = 1
        return max(1, min(rows, most))

    def refine(self, rows: int, context: int, seconds: float) -> CostCurves:
        """These curves after a real step of `rows` rows took `seconds`.

        The error in log time moves the common scale (the whole machine drifts) and, more slowly, the points next to
        `rows` and `context`.  Large errors count as small ones, and hiccups not at all.
        """
        expected = self.step(rows, context)
        if expected <= 0 or not (math.isfinite(seconds) and seconds > 0):
            return self
        error = math.log(seconds / expected)
        if abs(error) > OUTLIER and self.seen >= SETTLED and self.outliers < PATIENCE:
            return replace(self, outliers=self.outliers + 1)
        drift = max(DRIFT_GAIN, 1 / (self.seen + 2))
        most = CLIP if self.seen >= SETTLED else math.inf
        error = max(-most, min(most, error))
        apart = SHAPE_GAIN * (error - self.bias)
        attention = self._attention(context) * self.scale / 1000 / expected
        return replace(
            self,
            seen=self.seen + 1,
            scale=self.scale * math.exp(drift * error),
            bias=self.bias + DRIFT_GAIN * (error - self.bias),
            outliers=0 if abs(error) < most else self.outliers,
            step_ms=nudged(self.step_ms, rows, math.exp(apart * (1 - attention))),
            step_ms_by_context=nudged(self.step_ms_by_context, context, math.exp(apart * attention)),
        )

    def to_json(self) -> str:
        """One JSON document; `from_json` reads it back equal."""
        return json.dumps(
            {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.name not in PASSING}, indent=1
        )

    @classmethod
    def from_json(cls, text: str) -> CostCurves:
        """Raises `ConfigError` when the text is not what `to_json` writes."""
        try:
            return cls(**{name: curve(value) for name, value in json.loads(text).items()})
        except (ValueError, TypeError, AttributeError) as error:
            raise ConfigError(f"not a calibration: {error}; run `twostroke calibrate` again") from error

    def _by_rows(self, rows: int) -> float:
        last = self._rows.last
        beyond = max(0, rows - last) * 1000 / self.prefill_tokens_per_s
        return self._rows.at(min(rows, last)) + beyond

    def _attention(self, context: int) -> float:
        return max(0.0, self._context.at(context) - self._context.values[0]) if self.step_ms_by_context else 0.0

    @cached_property
    def _rows(self) -> Line:
        return Line.through(self.step_ms)

    @cached_property
    def _cheapest(self) -> float:
        points, values = self._rows.points, self._rows.values
        slopes = [(values[i] - values[i - 1]) / (points[i] - points[i - 1]) for i in range(1, len(points))]
        return min([*slopes, 1000 / self.prefill_tokens_per_s])

    @cached_property
    def _context(self) -> Line:
        return Line.through(self.step_ms_by_context)

    @cached_property
    def _draft(self) -> Line:
        return Line.through(self.draft_ms)


@dataclass(frozen=True, slots=True)
class Line:
    """Straight lines between measured points, continued beyond the last with its slope and level before the first."""

    points: tuple[int, ...]
    values: tuple[float, ...]

    @staticmethod
    def through(curve: Mapping[int, float]) -> Line:
        return Line(tuple(curve), tuple(curve.values()))

    @property
    def last(self) -> int:
        return self.points[-1]

    def at(self, x: int) -> float:
        points, values = self.points, self.values
        if x <= points[0] or len(points) == 1:
            return values[0]
        i = min(bisect_left(points, x), len(points) - 1)
        slope = (values[i] - values[i - 1]) / (points[i] - points[i - 1])
        return values[i - 1] + slope * (x - points[i - 1])


def rising(name: str, curve: Mapping[int, float]) -> dict[int, float]:
    """The curve in order of its points, and the nearest one (least squares) that never falls."""
    points = sorted(curve)
    if any(point < 0 for point in points) or any(not (math.isfinite(v) and v > 0) for v in curve.values()):
        raise ConfigError(
            f"cost curves: {name} holds {dict(curve)}; points count from 0, times must be above 0", param=name
        )
    return dict(zip(points, isotonic([curve[point] for point in points]), strict=True))


def isotonic(values: Sequence[float]) -> list[float]:
    """The non-decreasing sequence nearest to `values` in least squares, by pooling adjacent violators.

    Source: Barlow et al., "Statistical Inference under Order Restrictions" (1972).
    """
    pools: list[tuple[float, int]] = []  # mean, how many values share it
    for value in values:
        mean, size = value, 1
        while pools and pools[-1][0] > mean:
            other, count = pools.pop()
            mean, size = (other * count + mean * size) / (count + size), count + size
        pools.append((mean, size))
    return [mean for mean, size in pools for _ in range(size)]


def nudged(curve: Mapping[int, float], x: int, factor: float) -> Mapping[int, float]:
    """The curve with the two points around `x` moved toward `factor` times their value, by their nearness."""
    if not curve or factor == 1.0:
        return curve
    points = list(curve)
    right = min(bisect_left(points, x), len(points) - 1)
    left = max(right - 1, 0) if points[right] > x else right
    share = (x - points[left]) / (points[right] - points[left]) if points[right] > points[left] else 1.0
    share = min(1.0, max(0.0, share))
    moved = dict(curve)
    moved[points[left]] *= factor ** (1 - share)
    moved[points[right]] *= factor**share
    return moved


def plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def curve(value: Any) -> Any:
    """JSON turns the points of a curve into strings; turn them back."""
    return {int(point): float(y) for point, y in value.items()} if isinstance(value, dict) else value


# A guess for a machine nobody measured: the ratios of a memory-bound step (8 rows cost 1.6 of one), 60 ms a sweep.
# Some dozen real steps make it this machine's own.
SEED = CostCurves(
    step_ms={1: 60.0, 2: 63.0, 4: 70.0, 8: 96.0, 16: 160.0, 32: 300.0, 64: 580.0},
    step_ms_by_context={0: 60.0, 4096: 72.0},
    prefill_tokens_per_s=110.0,
    seen=0,
)
