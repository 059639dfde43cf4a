"""A governor that drafts to a fixed depth and backs off where nothing comes true.

The depth of a sequence is halved, down to none, each time two drafts in a row are rejected whole, and returns to full
with the first that is kept.  From none it tries a single token again after a pause, and the pause doubles up to
`LONGEST_PAUSE` steps.  Knows no costs but the step budget's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from twostroke.engine.protocols import View
from twostroke.govern.admission import step_tokens
from twostroke.govern.cost import SEED, CostCurves
from twostroke.types import Limits, Proposal, Report, SequenceReport

TOLERATED = 2  # whole rejections in a row before the depth is halved
FIRST_PAUSE, LONGEST_PAUSE = 8, 64  # steps


@dataclass(slots=True)
class Backoff:
    """Where one sequence stands."""

    depth: int
    rejected: int = 0  # whole rejections in a row
    pause: int = FIRST_PAUSE
    waited: int = 0  # steps without drafts since the depth fell to none

    def learn(self, drafted: int, accepted: int, full: int) -> None:
        if accepted:
            self.depth, self.rejected, self.pause = full, 0, FIRST_PAUSE
            return
        self.rejected += 1
        if self.rejected >= TOLERATED:
            self.depth, self.rejected, self.waited = min(self.depth, drafted) // 2, 0, 0

    def admitted(self) -> int:
        """How deep to draft now; counts the step when that is nothing."""
        if self.depth:
            return self.depth
        self.waited += 1
        if self.waited < self.pause:
            return 0
        self.depth, self.rejected = 1, TOLERATED - 1
        self.pause = min(self.pause * 2, LONGEST_PAUSE)
        return 1


class FixedDepth:
    """At most `draft_tokens` drafts for each sequence and step."""

    def __init__(
        self,
        draft_tokens: int = 8,
        *,
        curves: CostCurves = SEED,
        step_ms: float = 150.0,
        tokens: int = 512,
        sequences: int = 16,
    ) -> None:
        self.draft_tokens = draft_tokens
        self.curves = curves
        self.step_ms = step_ms
        self.tokens = tokens
        self.sequences = sequences
        self._backoffs: dict[int, Backoff] = {}

    def price(self, proposals: Sequence[Proposal], view: View) -> Limits:
        drafts = {p.sequence: self._cut(p) for p in proposals}
        answering = [s for s in view.running if s.ready]
        budget = step_tokens(
            self.curves, len(answering), sum(len(s.tokens) for s in answering), self.step_ms, self.tokens
        )
        return Limits(budget + sum(len(p.tokens) for p in drafts.values()), self.sequences, drafts)

    def observe(self, report: Report) -> None:
        rows = sum(row.computed for row in report.rows)
        self.curves = self.curves.refine(
            rows, sum(row.context for row in report.rows), report.executed_s - report.planned_s
        )
        for row in report.rows:
            self._learn(row)
        for end in report.ended:
            self._backoffs.pop(end.sequence, None)

    def _cut(self, proposal: Proposal) -> Proposal:
        if not proposal.tokens:
            return proposal
        depth = self._backoffs.setdefault(proposal.sequence, Backoff(self.draft_tokens)).admitted()
        if depth == 0:
            return Proposal(proposal.sequence, source=proposal.source, reason="low_acceptance")
        return replace(proposal, tokens=proposal.tokens[:depth], survival=proposal.survival[:depth])

    def _learn(self, row: SequenceReport) -> None:
        if row.finished:
            self._backoffs.pop(row.sequence, None)
        elif row.drafted and row.sequence in self._backoffs:
            self._backoffs[row.sequence].learn(row.drafted, row.accepted, self.draft_tokens)
