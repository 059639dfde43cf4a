"""What the governor has to show: why nothing was drafted, what drafts promised, and what came of them.

The invariant: totals only grow, and acceptance by drafter is of recent drafts, so it says how things are now.  Knows
reports and no decisions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from twostroke.types import SequenceReport

DECAY = 0.99  # a drafter's acceptance is over its last hundred verified drafts


@dataclass(slots=True)
class Recent:
    """Decayed counts of one drafter."""

    drafted: float = 0.0
    accepted: float = 0.0

    def add(self, drafted: int, accepted: int) -> None:
        self.drafted = self.drafted * DECAY + drafted
        self.accepted = self.accepted * DECAY + accepted


@dataclass(slots=True)
class Tally:
    """Totals since the start; seconds by the cost curves."""

    drafted_steps: int = 0  # a sequence's share of a step counts as one
    undrafted: Counter[str] = field(default_factory=Counter)
    promised: float = 0.0  # drafts expected to come true
    accepted: int = 0
    promised_s: float = 0.0  # time that drafts were expected to save, their own taken off
    saved_s: float = 0.0  # time that they did save
    recent: dict[str, Recent] = field(default_factory=dict)

    def count(self, row: SequenceReport, expected: float, cost_s: float, plain_s: float) -> None:
        """A sequence's share of a step: `expected` drafts to come true, `cost_s` for all, `plain_s` saved by each."""
        if row.drafted:
            self.drafted_steps += 1
            self.promised += expected
            self.accepted += row.accepted
            self.promised_s += expected * plain_s - cost_s
            self.saved_s += row.accepted * plain_s - cost_s
            self.recent.setdefault(row.source, Recent()).add(row.drafted, row.accepted)
        elif row.reason:
            self.undrafted[row.reason] += 1

    def explain(self) -> dict[str, object]:
        return {
            "drafted_steps": self.drafted_steps,
            "undrafted_steps": dict(self.undrafted),
            "expected_accepted": self.promised,
            "accepted": self.accepted,
            "expected_saved_s": self.promised_s,
            "saved_s": self.saved_s,
            "acceptance": {source: r.accepted / r.drafted for source, r in self.recent.items()},
        }
