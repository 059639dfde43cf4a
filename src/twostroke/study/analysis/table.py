"""Pairs records by (call, repeat) under one load, and counts what could not be paired.

Every comparison of arms is made inside one call and one block of arms, so that a slow hour or a long prompt is in both
of its terms.  A call that failed or was never sent is NaN here and takes its pairs out of the comparisons it is in, not
out of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twostroke.study.analysis.result import Phase
from twostroke.study.records import Record

Array = NDArray[np.float64]
Outcomes = Mapping[str, Array]  # by arm: (calls, repeats), NaN where there is none
Measure = Callable[[Record], float | None]

MINIMUM_CLUSTERS = 10  # fewer say too little about the spread between clusters for a verdict


def _positive(measure: Measure) -> Measure:
    """Times that are not above zero are no measurement: an answer in one piece has no time per token."""

    def positive(record: Record) -> float | None:
        value = measure(record)
        return value if value is not None and value > 0 else None

    return positive


PHASES: Mapping[Phase, Measure] = {
    "prefill": _positive(lambda record: record.ttft_ms),
    "decode": _positive(lambda record: record.tpot_ms),
    "end to end": _positive(lambda record: record.total_ms),
}


@dataclass(frozen=True)
class Table:
    """The records of one load.  `calls` and `repeats` are sorted by first appearance and by number."""

    calls: tuple[str, ...]
    repeats: tuple[int, ...]
    clusters: NDArray[np.intp]  # (calls,): which cluster a call belongs to
    clustered_by_session: bool
    sessions: int
    by_arm: Mapping[str, Mapping[tuple[str, int], Record]]  # whole records
    sent: Mapping[str, tuple[Record, ...]]  # all of an arm's records, failed ones included

    def values(self, arm: str, measure: Measure) -> Array:
        """One arm's measure, (calls, repeats), NaN where the call failed, is missing or has no such measure."""
        values = np.full((len(self.calls), len(self.repeats)), np.nan)
        row = {call: index for index, call in enumerate(self.calls)}
        column = {repeat: index for index, repeat in enumerate(self.repeats)}
        for (call, repeat), record in self.by_arm.get(arm, {}).items():
            if (value := measure(record)) is not None:
                values[row[call], column[repeat]] = value
        return values

    def outcomes(self, phase: Phase) -> Outcomes:
        """The phase's time in milliseconds for every arm that was sent."""
        return {arm: self.values(arm, PHASES[phase]) for arm in self.sent}

    def pairs(self, arm: str, over: str) -> tuple[tuple[Record, Record], ...]:
        """Records of both arms to the same call in the same block."""
        other = self.by_arm.get(over, {})
        return tuple((record, other[key]) for key, record in self.by_arm.get(arm, {}).items() if key in other)

    def missing(self, arm: str) -> int:
        """Calls that some arm was sent in a block and this one was not."""
        keys = {(record.call, record.repeat) for records in self.sent.values() for record in records}
        return len(keys - {(record.call, record.repeat) for record in self.sent.get(arm, ())})


def tabulate(records: Sequence[Record]) -> Table:
    """A table of records that share one load.  Of two whole records of one call, arm and block the later one stands."""
    session = {record.call: record.session for record in records}
    by_arm: dict[str, dict[tuple[str, int], Record]] = {}
    sent: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.place):
        sent.setdefault(record.arm, []).append(record)
        if record.error is None:
            by_arm.setdefault(record.arm, {})[record.call, record.repeat] = record
    clusters, by_session = _clusters(tuple(session.values()))
    return Table(
        calls=tuple(session),
        repeats=tuple(sorted({record.repeat for record in records})),
        clusters=clusters,
        clustered_by_session=by_session,
        sessions=len(set(session.values())),
        by_arm=by_arm,
        sent={arm: tuple(of_arm) for arm, of_arm in sent.items()},
    )


def errors(records: Iterable[Record]) -> tuple[tuple[str, int], ...]:
    """Each reason for a failure and how often, most frequent first."""
    return tuple(Counter(record.error for record in records if record.error is not None).most_common())


def _clusters(sessions: Sequence[str]) -> tuple[NDArray[np.intp], bool]:
    """Sessions, or calls where there are too few sessions to judge how sessions differ.

    The calls of a session share text, lengths and a growing prefix, so their ratios resemble one another: they are no
    independent sample of prompts, and a session is resampled whole.  With fewer than ten sessions that would say
    nothing at all; then calls are resampled, and the intervals speak of these sessions alone.
    """
    number = {session: index for index, session in enumerate(dict.fromkeys(sessions))}
    if len(number) >= MINIMUM_CLUSTERS:
        return np.array([number[session] for session in sessions], dtype=np.intp), True
    return np.arange(len(sessions), dtype=np.intp), False
