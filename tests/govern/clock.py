"""A virtual machine: steps cost what a curve says, answers are known, so what a governor decides is shown exactly.

Batch, prompts in chunks, arrivals and a queue, and no engine: sequences, a drafter, a governor and a sum of seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from twostroke.govern.cost import CostCurves
from twostroke.speculate.lookup import LookupDrafter
from twostroke.speculate.synthetic import Rates, Synthetic
from twostroke.types import FinishReason, Limits, Proposal, Report, Sampling, SequenceReport

TRUTH = CostCurves(
    step_ms={1: 50.0, 2: 51.5, 4: 54.0, 8: 72.0, 16: 120.0, 32: 230.0, 64: 450.0}, prefill_tokens_per_s=140.0
)


@dataclass
class Job:
    """A request: so many prompt tokens to compute, so many to write; implements `SequenceView` while it runs."""

    id: int
    prompt: int = 20
    output: int = 200
    arrives_s: float = 0.0
    speculate: str | None = None
    draft_tokens: int | None = None
    namespace: str = ""
    computed: int = 0
    tokens: list[int] = field(default_factory=list)
    first_s: float | None = None
    done_s: float | None = None
    cached: int = 0
    prefix_cache: bool = True
    sampling: Sampling = field(default_factory=Sampling)
    choice: int = 0
    prediction: Sequence[int] = ()

    def __post_init__(self) -> None:
        self.tokens = [1] * self.prompt

    @property
    def prompt_length(self) -> int:
        return self.prompt

    @property
    def written(self) -> int:
        return len(self.tokens) - self.prompt

    @property
    def remaining(self) -> int:
        return self.output - self.written

    @property
    def ready(self) -> bool:
        return self.computed == len(self.tokens) - 1

    def answer(self, place: int) -> int:
        return (self.id * 131 + place * 7) % 1000 + 2


@dataclass
class Machine:
    """Runs jobs; `seats` at once.  `truth(now)` is the cost of steps at a time."""

    governor: object
    drafter: object
    truth: Callable[[float], CostCurves] = lambda now: TRUTH
    seats: int = 16
    now: float = 0.0
    steps: list[tuple[float, int, int]] = field(default_factory=list)  # when, rows, drafts
    queue: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)
    model: SyntheticModel | None = None  # whose passes take time
    draft_s: float = 0.0

    @property
    def prefilling(self) -> int:
        return sum(len(job.tokens) - job.computed - 1 for job in self.running)

    @property
    def entering(self) -> int:
        return len(self.queue[0].tokens) if self.queue and len(self.running) < self.seats else 0

    def run(self, jobs: Sequence[Job]) -> float:
        """Until all are done; the time that took."""
        coming = sorted(jobs, key=lambda job: job.arrives_s)
        limits = self.governor.price([], self)
        while coming or self.running:
            if not self.running and coming[0].arrives_s > self.now:
                self.now = coming[0].arrives_s
            while coming and coming[0].arrives_s <= self.now and len(self.running) < self.seats:
                self.running.append(coming.pop(0))
            self.queue = [job for job in coming if job.arrives_s <= self.now]
            limits = self._step(limits)
        return self.now

    def _step(self, limits: Limits) -> Limits:
        rows: list[tuple[Job, int, Proposal | None]] = []
        budget = limits.tokens
        for job in sorted(self.running, key=lambda job: not job.ready):
            draft = limits.drafts.get(job.id) if job.ready else None
            count = min(budget, len(job.tokens) - job.computed + (len(draft.tokens) if draft else 0))
            if count:
                rows.append((job, count, draft))
                budget -= count
        computed = sum(count for _, count, _ in rows)
        context = sum(job.computed + count for job, count, _ in rows)
        started, seconds = self.now, self.truth(self.now).step(computed, context)
        self.now += seconds
        lines = [self._commit(*row) for row in rows]
        self.steps.append((started, computed, sum(line.drafted for line in lines)))
        report = Report(
            started, started, self.now, self.now, tuple(lines), waiting=len(self.queue), draft_s=self.draft_s
        )
        self.running = [job for job in self.running if job.done_s is None]
        self.drafter.observe(report)
        self.governor.observe(report)
        for line in lines:
            if line.finished:
                self.drafter.forget(line.sequence)
        before = self.model.spent_s if self.model else 0.0
        proposals = self.drafter.propose(self.running)
        self.draft_s = self.model.spent_s - before if self.model else 0.0
        self.now += self.draft_s
        return self.governor.price(proposals, self)

    def _commit(self, job: Job, count: int, draft: Proposal | None) -> SequenceReport:
        start, known = job.computed, len(job.tokens) - job.computed
        drafts = draft.tokens[: count - known] if draft and count > known else ()
        emitted: list[int] = []
        kept = 0
        if count >= known:
            while kept < len(drafts) and drafts[kept] == job.answer(job.written + kept):
                kept += 1
            emitted = [job.answer(job.written + i) for i in range(min(kept + 1, job.remaining))]
        job.computed += min(count, known) + max(0, len(emitted) - 1)
        job.tokens += emitted
        if emitted and job.first_s is None:
            job.first_s = self.now
        if not job.remaining:
            job.done_s = self.now
        return SequenceReport(
            sequence=job.id,
            request=str(job.id),
            choice=0,
            namespace=job.namespace,
            start=start,
            computed=count,
            context=start + count,
            drafted=len(drafts),
            accepted=max(0, len(emitted) - 1),
            source=draft.source if draft and drafts else "",
            emitted=tuple(emitted),
            logprobs=(),
            finished=None if job.remaining else FinishReason.LENGTH,
            reason="" if draft is None or drafts else draft.reason,
        )


def synthetic(rates: Rates, draft_tokens: int = 16) -> LookupDrafter:
    """A drafter whose guesses come true at these rates."""

    def oracle(job: Job) -> list[int]:
        return [job.answer(i) for i in range(job.output)]

    return LookupDrafter(Synthetic(oracle, rates), draft_tokens)


class SyntheticModel:
    """A draft model: its guesses come true at these rates, and each of its passes takes time."""

    name = "draft"
    groups = ()

    def __init__(self, rates: Rates, curves: CostCurves, deepest: int = 12) -> None:
        self.inner = synthetic(rates, deepest)
        self.curves, self.deepest, self.spent_s = curves, deepest, 0.0

    def catch_up(self, jobs: Sequence[Job]) -> frozenset[int]:
        return frozenset()

    def expect(self, job: Job) -> tuple[float, ...]:
        acceptance, depth = self.inner.acceptance, min(self.deepest, job.remaining - 1)
        return acceptance.optimistic(job.id, 0, acceptance.survival(job.id, job.namespace, 0, depth))

    def draft(self, wanted: Sequence[tuple[Job, int]]) -> list[Proposal]:
        deepest = max((depth for _, depth in wanted), default=0)
        for layer in range(deepest):
            self.spent_s += self.curves.draft(sum(depth > layer for _, depth in wanted))
        proposals = []
        for job, depth in wanted:
            self.inner.draft_tokens = depth
            proposals += [replace(p, source=self.name) for p in self.inner.propose([job])]
        return proposals

    def observe(self, report: Report) -> None:
        self.inner.observe(report)

    def forget(self, sequence: int) -> None:
        self.inner.forget(sequence)
