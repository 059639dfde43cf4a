"""Folds step reports into the account of every answer: what was reused, computed, drafted and saved, phase by phase.

The wall times of one answer add up by construction: queue + prefill = time to first token, and prefill ends where
decode begins.  Shares (`own_ms`) of one step add up to that step.  Every emitted token is a step's own or an accepted
draft: steps + accepted = output tokens.  Knows nothing about clocks but the times in the reports, and nothing about
HTTP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from twostroke.observe.rates import Rates
from twostroke.types import Admission, DecodePhase, FinishReason, Phases, PrefillPhase, Report, Request, SequenceReport

NOT_COUNTED = frozenset({"", "disabled"})  # reasons for no drafts that cost no time to find


@dataclass(frozen=True, slots=True)
class Finished:
    """One choice of one request, closed."""

    request: str
    choice: int
    reason: FinishReason
    phases: Phases
    arrived_s: float
    ended_s: float
    max_tokens: int
    error: str | None = None

    @property
    def total_s(self) -> float:
        """Seconds from arrival to the end."""
        return self.ended_s - self.arrived_s


@dataclass(slots=True)
class _Tab:
    """What is known of one choice so far; times in seconds."""

    request: Request
    admitted_s: float | None = None
    first_s: float | None = None  # the end of the step that emitted the first token
    cached: int = 0
    miss_reason: str | None = None
    computed: int = 0  # prompt positions
    output: int = 0
    steps: int = 0
    prefill_own_s: float = 0.0
    decode_own_s: float = 0.0
    draft_s: float = 0.0
    saved_s: float = 0.0
    drafted_steps: int = 0
    per_position: list[int] = field(default_factory=list)
    drafted_by: Counter[str] = field(default_factory=Counter)
    accepted_by: Counter[str] = field(default_factory=Counter)
    undrafted: Counter[str] = field(default_factory=Counter)

    def admit(self, admission: Admission, at_s: float) -> None:
        if self.admitted_s is None:
            self.admitted_s = at_s
            self.cached = admission.cached
            self.miss_reason = admission.miss_reason

    def arrived_s(self, ended_s: float) -> float:
        """When the request came; where nobody noted that, it never waited."""
        return self.request.arrived_s or (ended_s if self.admitted_s is None else self.admitted_s)

    def row(self, row: SequenceReport, own_s: float, ended_s: float) -> None:
        if self.first_s is None:
            self.prefill_own_s += own_s
            self.computed += row.computed - row.drafted
        else:
            self.decode_own_s += own_s
        if not row.emitted:
            return
        if self.first_s is None:
            self.first_s = ended_s
        self.output += len(row.emitted)
        self.steps += 1
        self._drafts(row)

    def _drafts(self, row: SequenceReport) -> None:
        if row.drafted == 0:
            if row.reason:
                self.undrafted[row.reason] += 1
            return
        accepted = accepted_drafts(row)
        self.drafted_steps += 1
        self.drafted_by[row.source] += row.drafted
        self.accepted_by[row.source] += accepted
        self.per_position += [0] * (row.drafted - len(self.per_position))
        for position in range(accepted):
            self.per_position[position] += 1


def accepted_drafts(row: SequenceReport) -> int:
    """Drafts that made the answer longer than one token a step.

    A stop can cut the emitted tokens inside the drafts; the last one delivered then counts as the step's own.
    """
    return min(row.accepted, max(len(row.emitted) - 1, 0))


class Accounts:
    """The observer that keeps one account per answer.

    `accept` opens the accounts of a request before its first step.  Those that the latest report closed are in
    `closed`, and are handed to each of `sinks` in turn.  All calls come from the engine's thread.
    """

    def __init__(self, rates: Rates, sinks: Sequence[Callable[[Finished], None]] = ()) -> None:
        self._rates = rates
        self._sinks = tuple(sinks)
        self._tabs: dict[tuple[str, int], _Tab] = {}
        self.closed: dict[tuple[str, int], Finished] = {}

    def accept(self, request: Request) -> None:
        """Open one account for each of the request's choices."""
        for choice in range(request.choices):
            self._tabs[request.id, choice] = _Tab(request)

    def forget(self, request: Request) -> None:
        """Drop the accounts of a request that the engine did not take."""
        for choice in range(request.choices):
            self._tabs.pop((request.id, choice), None)

    def phases(self, request: str, choice: int) -> Phases | None:
        """The account of a choice that the latest report closed."""
        finished = self.closed.get((request, choice))
        return finished.phases if finished else None

    def __call__(self, report: Report) -> None:
        self.closed = {}
        for admission in report.admitted:
            if tab := self._tabs.get((admission.request, admission.choice)):
                tab.admit(admission, report.started_s)
        self._charge(report)
        for row in report.rows:
            if row.finished is not None:
                self._close(row.request, row.choice, row.finished, report.ended_s)
        for end in report.ended:
            self._close(end.request, end.choice, end.reason, report.ended_s, end.error)

    def _charge(self, report: Report) -> None:
        step_s = report.ended_s - report.started_s
        positions = sum(row.computed for row in report.rows)
        drafts = sum(row.drafted for row in report.rows)
        plain_s = self._plain_s(positions, drafts, step_s)
        draft_s = _draft_s(report)
        for row in report.rows:
            if tab := self._tabs.get((row.request, row.choice)):
                decoding = tab.first_s is not None
                tab.row(row, step_s * row.computed / positions if positions else 0.0, report.ended_s)
                if decoding and row.emitted:
                    tab.saved_s += (1 + accepted_drafts(row)) * plain_s - step_s
                if _looked(row):
                    tab.draft_s += draft_s
                    tab.saved_s -= draft_s

    def _plain_s(self, positions: int, drafts: int, step_s: float) -> float:
        """What this step would have taken without anyone's drafts; never more than it took.

        The rates give the proportion and the step itself the scale, so that a slow moment is slow in both.
        """
        if drafts == 0:
            return step_s
        plain, real = self._rates.step_s(positions - drafts), self._rates.step_s(positions)
        return step_s * min(plain / real, 1.0) if plain and real else step_s

    def _close(self, request: str, choice: int, reason: FinishReason, at_s: float, error: str | None = None) -> None:
        if (tab := self._tabs.pop((request, choice), None)) is None:
            return
        arrived_s = tab.arrived_s(at_s)
        finished = Finished(
            request, choice, reason, self._account(tab, at_s), arrived_s, at_s, tab.request.max_tokens, error
        )
        self.closed[request, choice] = finished
        for sink in self._sinks:
            sink(finished)

    def _account(self, tab: _Tab, ended_s: float) -> Phases:
        admitted_s = ended_s if tab.admitted_s is None else tab.admitted_s
        first_s = ended_s if tab.first_s is None else tab.first_s
        queue_ms = max(admitted_s - tab.arrived_s(ended_s), 0.0) * 1000
        prefill_ms, decode_ms = (first_s - admitted_s) * 1000, (ended_s - first_s) * 1000
        return Phases(
            queue_ms=queue_ms,
            ttft_ms=queue_ms + prefill_ms,
            tpot_ms=decode_ms / (tab.output - 1) if tab.output > 1 else 0.0,
            prefill=PrefillPhase(
                prompt_tokens=len(tab.request.prompt),
                cached_tokens=tab.cached,
                computed_tokens=tab.computed,
                ms=prefill_ms,
                own_ms=tab.prefill_own_s * 1000,
                saved_ms=self._rates.prefill_s(tab.cached) * 1000,
                miss_reason=tab.miss_reason,
            ),
            decode=_decode(tab, decode_ms),
        )


def _looked(row: SequenceReport) -> bool:
    """Whether a drafter was asked for this row, found something or not."""
    return row.drafted > 0 or row.reason not in NOT_COUNTED


def _draft_s(report: Report) -> float:
    """Each row's share of the time it took to make the drafts of this step, among those that were looked for."""
    looked = sum(_looked(row) for row in report.rows)
    return report.draft_s / looked if looked else 0.0


def _decode(tab: _Tab, wall_ms: float) -> DecodePhase:
    return DecodePhase(
        output_tokens=tab.output,
        steps=tab.steps,
        drafted=sum(tab.drafted_by.values()),
        accepted=sum(tab.per_position),
        accepted_per_position=tuple(tab.per_position),
        ms=wall_ms,
        own_ms=tab.decode_own_s * 1000,
        draft_ms=tab.draft_s * 1000,
        saved_ms=tab.saved_s * 1000,
        undrafted=dict(tab.undrafted),
        drafted_steps=tab.drafted_steps,
        drafted_by=dict(tab.drafted_by),
        accepted_by=dict(tab.accepted_by),
    )


def total(accounts: Sequence[Phases]) -> Phases:
    """Several choices of one request as one account: work and savings add up, wall times are the longest.

    Raises ValueError for no accounts at all.
    """
    if not accounts:
        raise ValueError("no accounts to add up")
    prefills, decodes = [a.prefill for a in accounts], [a.decode for a in accounts]
    return Phases(
        queue_ms=max(a.queue_ms for a in accounts),
        ttft_ms=min(a.ttft_ms for a in accounts),
        tpot_ms=max(a.tpot_ms for a in accounts),
        prefill=PrefillPhase(**_added(prefills, longest=("ms",), first=("miss_reason",))),
        decode=DecodePhase(**_added(decodes, longest=("ms",))),
    )


def _added(parts: Sequence[Any], *, longest: tuple[str, ...], first: tuple[str, ...] = ()) -> dict[str, Any]:
    """Field by field over records of one dataclass."""
    columns = {f.name: [getattr(part, f.name) for part in parts] for f in fields(parts[0])}
    return {
        name: max(column) if name in longest else column[0] if name in first else _sum(column)
        for name, column in columns.items()
    }


def _sum(column: list[Any]) -> Any:
    if isinstance(column[0], Mapping):
        return {key: sum(part.get(key, 0) for part in column) for part in column for key in part}
    if isinstance(column[0], tuple):
        width = max(map(len, column))
        return tuple(sum(part[i] for part in column if i < len(part)) for i in range(width))
    return sum(column)


def as_json(value: Any) -> Any:
    """Phases as plain JSON values, times rounded to a microsecond."""
    if is_dataclass(value):
        return {f.name: as_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return list(value)
    return round(value, 3) if isinstance(value, float) else value
