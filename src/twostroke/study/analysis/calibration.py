"""The server's `saved_ms` beside the truth: what the same calls took with the switch really off.

Both are summed over the calls before they are compared.  A single request is noise; a statement of savings is read as a
sum.  The measured saving is the client's: the time to the first token for prefill, the time after it for decode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from twostroke.study.analysis.estimate import Sample, difference, error_percent
from twostroke.study.analysis.result import Calibration, Estimate
from twostroke.study.analysis.table import Array, Measure, Table
from twostroke.study.analysis.words import number
from twostroke.study.arms import BOTH, CACHE, NEITHER, SPECULATION
from twostroke.study.records import Record, ServerAccount


@dataclass(frozen=True, slots=True)
class _Phase:
    name: Literal["prefill", "decode"]
    pairs: tuple[tuple[str, str], ...]  # arms with the switch on, and the same with it off
    claimed: Callable[[ServerAccount], float]
    time: Measure


_PHASES = (
    _Phase(
        "prefill",
        ((CACHE.name, NEITHER.name), (BOTH.name, SPECULATION.name)),
        lambda account: account.prefill_saved_ms,
        lambda record: record.ttft_ms,
    ),
    _Phase(
        "decode",
        ((SPECULATION.name, NEITHER.name), (BOTH.name, CACHE.name)),
        lambda account: account.decode_saved_ms,
        lambda record: record.total_ms - record.ttft_ms,
    ),
)


def calibration(table: Table, sample: Sample) -> tuple[Calibration, ...]:
    """Per phase: each arm with the switch on, then both together; nothing where the server keeps no accounts."""
    return tuple(row for phase in _PHASES for row in _rows(phase, table, sample))


def _rows(phase: _Phase, table: Table, sample: Sample) -> list[Calibration]:
    arms = [(arm, over, *_savings(phase, arm, over, table)) for arm, over in phase.pairs]
    known = [row for row in arms if np.isfinite(row[2]).any()]
    rows = [_row(phase, arm, over, claimed, measured, sample) for arm, over, claimed, measured in known]
    if len(known) < 2:
        return rows
    claimed, measured = (np.concatenate([row[part] for row in known], axis=1) for part in (2, 3))
    return [*rows, _row(phase, "all", "all", claimed, measured, sample)]


def _savings(phase: _Phase, arm: str, over: str, table: Table) -> tuple[Array, Array]:
    """Claimed and measured milliseconds, both (calls, repeats), NaN where either is unknown."""

    def claimed(record: Record) -> float | None:
        return phase.claimed(record.account) if record.account else None

    measured = table.values(over, phase.time) - table.values(arm, phase.time)
    claims = table.values(arm, claimed)
    known = np.isfinite(measured) & np.isfinite(claims)
    return np.where(known, claims, np.nan), np.where(known, measured, np.nan)


def _row(phase: _Phase, arm: str, over: str, claimed: Array, measured: Array, sample: Sample) -> Calibration:
    sums = float(np.nansum(claimed)), float(np.nansum(measured))
    real = difference({"measured": measured}, {"measured": 1}, sample)
    clear = real is not None and not real.low <= 0 <= real.high
    error = error_percent(claimed, measured, sample) if clear else None
    pairs = int(np.isfinite(measured).sum())
    return Calibration(phase.name, arm, over, *sums, error, pairs, _sentence(phase.name, arm, sums, error))


def _sentence(phase: str, arm: str, sums: tuple[float, float], error: Estimate | None) -> str:
    who = "both arms" if arm == "all" else arm
    said = f"{phase}, {who}: {number(sums[0])} ms claimed, {number(sums[1])} ms measured"
    if error is None:
        return f"{said}; the measured saving may be zero, so an error in percent would mean nothing."
    return f"{said}, an error of {error.value:+.1f} % (95 % interval {error.low:+.1f} to {error.high:+.1f})."
