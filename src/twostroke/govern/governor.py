"""The governor: measured costs, survival and accounts in, the next step's limits out.

Each step it takes the drafts that raise tokens per second (`depth`), as far as nobody in the step loses more than its
share by them (`account`), and sizes a prompt's chunk by time (`admission`).  It follows the machine (`cost`) and keeps
count of why nothing was drafted and of what was promised and came.  It needs no probes: drafters score their guesses on
the tokens that come whether or not they were verified, so a text that becomes predictable shows.  Has no clock: time is
in the reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from twostroke.engine.protocols import SequenceView, View
from twostroke.govern.account import GRANT, MODEL_GRANT, Accounts
from twostroke.govern.admission import step_tokens
from twostroke.govern.cost import SEED, SETTLED, CostCurves
from twostroke.govern.depth import Depths, Load, choose, least_paying
from twostroke.govern.tally import Tally
from twostroke.types import Limits, Proposal, Report, SequenceReport

PLAIN_EVERY = 100  # steps with drafts on end, after which one goes without: what a plain step costs must stay known
TOGETHER = 8  # steps that refine the curves at once, when they are settled: in cold caches each visit costs the most


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person may choose about steps."""

    step_ms: float = 150.0  # how long a step with a prompt's chunk should take beside running answers
    tokens: int = 512  # positions of a step when nobody is writing
    sequences: int = 16  # running at once
    drafts: int = 128  # in one step, over all sequences: what the runner has room for beside `tokens`


class CostGovernor:
    """Prices drafts by measured cost.  `explain()` says what it did and why."""

    def __init__(self, curves: CostCurves = SEED, settings: Settings | None = None) -> None:
        self.curves = curves
        self.settings = settings or Settings()
        self.accounts = Accounts(MODEL_GRANT if curves.draft_ms else GRANT)
        self.tally = Tally()
        self._drafted = 0  # steps with drafts since the last without
        self._promised: dict[int, Proposal] = {}
        self._steps: list[tuple[int, int, float]] = []  # rows, context, seconds: not yet in the curves

    def price(self, proposals: Sequence[Proposal], view: View) -> Limits:
        answering = [s for s in view.running if s.ready]
        budget = step_tokens(
            self.curves, len(answering), attended(answering), self.settings.step_ms, self.settings.tokens
        )
        load = self._load(answering, view, budget)
        depths = self._choose([p for p in proposals if p.tokens], load, view)
        self._drafted = self._drafted + 1 if depths.by_sequence else 0
        paying = least_paying(load.context // max(1, load.answering), self.curves)
        drafts = {p.sequence: cut(p, depths, paying) for p in proposals}
        self._promised = {sequence: draft for sequence, draft in drafts.items() if draft.tokens}
        return Limits(budget + sum(depths.by_sequence.values()), self.settings.sequences, drafts)

    def observe(self, report: Report) -> None:
        rows = sum(row.computed for row in report.rows)
        context = sum(row.context for row in report.rows)
        if rows:
            self._book(report, rows, context)
            self._steps.append((rows, context, report.executed_s - report.planned_s))
            self._refine()
        for sequence in [row.sequence for row in report.rows if row.finished] + [end.sequence for end in report.ended]:
            self.accounts.close(sequence)

    def spend(self, passes_s: float, checks_s: float) -> bool:
        """Charge a draft model's passes, if they and the verification of what they say may all be in vain."""
        step_s = self.curves.step(1)
        if passes_s + checks_s > self.accounts.most(step_s, step_s):
            return False
        self.accounts.machine -= passes_s
        return True

    def explain(self) -> dict[str, object]:
        """What was decided so far and why, for metrics: plain numbers by plain names."""
        return self.tally.explain() | {"machine_scale": self.curves.scale}

    def _refine(self) -> None:
        if self.curves.seen >= SETTLED and len(self._steps) < TOGETHER:
            return
        for rows, context, seconds in self._steps:
            self.curves = self.curves.refine(rows, context, seconds)
        self._steps.clear()

    def _load(self, answering: Sequence[SequenceView], view: View, budget: int) -> Load:
        reading = len(view.running) - len(answering) + view.prefilling
        if len(view.running) < self.settings.sequences:
            reading += view.entering  # as if nothing of it were cached: what is, shows when it is admitted
        chunk = min(reading, max(0, budget - len(answering)))
        return Load(len(answering) + chunk, attended(view.running), len(answering), self.settings.drafts)

    def _choose(self, proposals: Sequence[Proposal], load: Load, view: View) -> Depths:
        if not proposals or self._drafted >= PLAIN_EVERY:
            return Depths()
        step_s = self.curves.step(load.rows, load.context)
        plain_s = self.curves.step(load.answering, load.context)
        running = {s.id: s for s in view.running}
        for proposal in proposals:
            if (s := running.get(proposal.sequence)) is not None:
                self.accounts.trust(s.id, s.remaining, plain_s)
        poorest_first = sorted(proposals, key=lambda p: self.accounts.free(p.sequence))
        draft_budget = self.accounts.draft_budget(running, step_s, plain_s)
        return choose(poorest_first, load, self.curves, draft_budget, self._drafted > 0)

    def _book(self, report: Report, rows: int, context: int) -> None:
        """Charge the step's drafts to everyone in it, and credit what each has saved."""
        drafted = sum(row.drafted for row in report.rows)
        step_s = self.curves.step(rows - drafted, context)
        drafts_s = self.curves.step(rows, context) - step_s
        answering = [row for row in report.rows if row.emitted]
        plain_s = min(step_s, self.curves.step(len(answering), context))
        for row in report.rows:
            self.accounts.book(row.sequence, step_s, drafts_s, row.accepted * plain_s)
            self._count(row, drafts_s * row.drafted / drafted if drafted else 0.0, plain_s)
        accepted = sum(row.accepted for row in answering) / max(1, len(answering))
        self.accounts.book_machine(step_s, drafts_s, accepted * plain_s)

    def _count(self, row: SequenceReport, cost_s: float, plain_s: float) -> None:
        promised = self._promised.get(row.sequence)
        expected = sum(promised.survival[: row.drafted]) if promised else 0.0
        self.tally.count(row, expected, cost_s, plain_s)


def attended(sequences: Iterable[SequenceView]) -> int:
    return sum(len(s.tokens) for s in sequences)


def cut(proposal: Proposal, depths: Depths, paying: float) -> Proposal:
    """The proposal to the depth decided; where that is none, with the reason.  `paying` is what would pay alone."""
    depth = depths.by_sequence.get(proposal.sequence, 0)
    if depth:
        return replace(proposal, tokens=proposal.tokens[:depth], survival=proposal.survival[:depth])
    if not proposal.tokens:
        return proposal
    if not depths.step_s:
        return Proposal(proposal.sequence, source=proposal.source, reason="measuring")
    reason = "load" if proposal.survival[0] > paying else "low_acceptance"
    return Proposal(proposal.sequence, source=proposal.source, reason=reason)
