"""How many drafts the next step should verify, and whose.

Candidates go in order of survival, across all sequences, and as many are taken as give the most tokens per second: the
next one pays while survival over added time beats tokens so far over time so far (TurboSpec, arXiv 2406.14066; here the
best of all lengths is taken, since a kernel's tile makes some rows dearer than the next).  The invariant: a sequence's
drafts are taken in their order, and none at all is a normal answer.  Costs and survival in, depths out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate

from twostroke.govern.account import DraftBudget
from twostroke.govern.cost import CostCurves
from twostroke.types import Proposal

LEAST = 0.02  # survival under which a draft is not taken, however cheap: costs and survival are estimates
MARGIN = 1.02  # a step without drafts is left only for a gain of so much: no flutter around the break-even


@dataclass(frozen=True, slots=True)
class Load:
    """The next step without drafts."""

    rows: int  # positions it computes
    context: int  # positions it attends to, summed over sequences
    answering: int  # sequences that get a token
    most_drafts: int = 128


@dataclass(frozen=True, slots=True)
class Depths:
    """What was decided, and what is expected of it."""

    by_sequence: dict[int, int] = field(default_factory=dict)  # drafts admitted; sequences with none are absent
    accepted: float = 0.0  # drafts expected to come true
    extra_s: float = 0.0  # time they add
    step_s: float = 0.0  # the step without them


class Queue:
    """Drafts of all sequences, most likely first; a sequence's own stay in order.

    Of those about as likely (to a tenth) the earlier proposal's go first.
    """

    def __init__(self, proposals: Iterable[Proposal]) -> None:
        self._survival: dict[int, list[float]] = {}
        self.taken: dict[int, int] = {}
        self._heap: list[tuple[int, int, int]] = []
        for order, proposal in enumerate(proposals):
            # A drafter may err, yet a draft never comes true without those before it.
            self._survival[proposal.sequence] = list(accumulate(proposal.survival, min))
            self.taken[proposal.sequence] = 0
            self._push(order, proposal.sequence)

    def take(self, first: int | None) -> tuple[int, float] | None:
        """The next draft's sequence and survival; that of sequence `first` if it has one left."""
        if first is not None and self._left(first):
            return self._pop(first)
        while self._heap:
            rank, order, sequence = heappop(self._heap)
            if self._left(sequence) and rank == self._rank(sequence):
                draft = self._pop(sequence)
                self._push(order, sequence)
                return draft
            self._push(order, sequence)  # some of its drafts were taken out of turn
        return None

    def best(self) -> float:
        """No draft that is left survives more likely than this."""
        return (1 - self._heap[0][0]) / 10 if self._heap else 0.0

    def _left(self, sequence: int) -> bool:
        return self.taken.get(sequence, 0) < len(self._survival.get(sequence, ()))

    def _rank(self, sequence: int) -> int:
        return -int(self._survival[sequence][self.taken[sequence]] * 10)

    def _push(self, order: int, sequence: int) -> None:
        if self._left(sequence):
            heappush(self._heap, (self._rank(sequence), order, sequence))

    def _pop(self, sequence: int) -> tuple[int, float]:
        taken = self.taken[sequence]
        self.taken[sequence] = taken + 1
        return sequence, self._survival[sequence][taken]


def choose(
    proposals: Iterable[Proposal], load: Load, curves: CostCurves, draft_budget: DraftBudget, drafting: bool
) -> Depths:
    """The depths with the most tokens per second that `draft_budget` affords.

    `drafting` says that the step before had drafts: then any gain is enough.  A sequence that could not bear the step
    for its neighbours' sake gets drafts of its own first.
    """
    queue = Queue(proposals)
    step_s = curves.step(load.rows, load.context)
    tokens = float(load.answering)
    best_rate = tokens / step_s * (1.0 if drafting else MARGIN) if step_s else 0.0
    least = curves.cheapest_row()
    picked: list[int] = []
    taken, accepted, added_s = 0, 0.0, 0.0
    for extra_s in curves.added(load.rows, load.most_drafts):
        if extra_s > draft_budget.most or queue.best() <= best_rate * least:
            break  # too dear, or too unlikely for even the cheapest row
        draft = queue.take(draft_budget.cannot_afford(extra_s))
        if draft is None or draft[1] < LEAST:
            break
        picked.append(draft[0])
        tokens += draft[1]
        draft_budget.count_on(*draft)
        if tokens > best_rate * (step_s + extra_s) and draft_budget.cannot_afford(extra_s) is None:
            best_rate = tokens / (step_s + extra_s)
            taken, accepted, added_s = len(picked), tokens - load.answering, extra_s
    return Depths(dict(Counter(picked[:taken])), accepted, added_s, step_s)


def least_paying(context: int, curves: CostCurves) -> float:
    """The survival from which one draft would pay in a step of its own sequence alone."""
    alone = curves.step(1, context)
    return (curves.step(2, context) - alone) / alone
