"""Asks every drafter and takes, for each sequence, the proposal with the most tokens to expect.

Drafters that work from token ids cost nothing to ask, and each scores its own guesses on the tokens that came, taken or
not: so all of them are judged on the same text (full information) and the best is known without trying the others.  A
drafter that runs a model is asked only for sequences, and only to the depth, that `choose_depths` allows: its time is
spent before anyone knows what it will say.  Knows no costs itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from twostroke.cache.keys import Group
from twostroke.engine.protocols import Drafter, SequenceView
from twostroke.types import Proposal, Report

ChooseDepths = Callable[[Mapping[int, tuple[float, ...]], Mapping[int, float]], Mapping[int, int]]
"""From the survival a model drafter expects and the drafts expected without it, by sequence: how deep to draft."""


class ModelDrafter(Protocol):
    """A drafter that spends time on each draft."""

    name: str
    groups: tuple[Group, ...]

    def expect(self, sequence: SequenceView) -> tuple[float, ...]:
        """The survival it expects of its drafts, as deep as it could draft now; empty where it cannot."""
        ...

    def catch_up(self, sequences: Sequence[SequenceView]) -> frozenset[int]:
        """Take a bounded step towards being able to draft, where that pays; for whom, so that they draft later."""
        ...

    def draft(self, wanted: Sequence[tuple[SequenceView, int]]) -> Sequence[Proposal]:
        """Proposals for these sequences, each to its depth."""
        ...

    def observe(self, report: Report) -> None: ...

    def forget(self, sequence: int) -> None: ...


def expected(proposal: Proposal) -> float:
    """How many drafts of a proposal should come true."""
    return sum(proposal.survival)


class Auto:
    """The drafter named `auto`: `free` drafters always, `model` where it is worth its time.

    With no free ones and another name it is a model that is asked for drafts only where they pay.
    """

    def __init__(
        self,
        free: Sequence[Drafter],
        model: ModelDrafter | None = None,
        choose_depths: ChooseDepths | None = None,
        name: str = "auto",
    ) -> None:
        self.name = name
        self.free = tuple(free)
        self.model = model
        self.choose_depths = choose_depths
        groups = [group for drafter in self.free for group in drafter.groups] + list(model.groups if model else ())
        self.groups: tuple[Group, ...] = tuple(dict.fromkeys(groups))

    def propose(self, sequences: Sequence[SequenceView]) -> list[Proposal]:
        best: dict[int, Proposal] = {}
        for drafter in self.free:
            take(best, drafter.propose(sequences))
        if self.model and self.choose_depths:
            take(best, self._ask(self.model, self.choose_depths, sequences, best))
        return list(best.values())

    def observe(self, report: Report) -> None:
        for drafter in self.free:
            drafter.observe(report)
        if self.model:
            self.model.observe(report)

    def forget(self, sequence: int) -> None:
        for drafter in self.free:
            drafter.forget(sequence)
        if self.model:
            self.model.forget(sequence)

    def purge(self, namespace: str) -> None:
        """Forget what a namespace has taught, in every drafter that keeps text."""
        for drafter in (*self.free, self.model):
            if (purge := getattr(drafter, "purge", None)) is not None:
                purge(namespace)

    def _ask(
        self,
        model: ModelDrafter,
        choose_depths: ChooseDepths,
        sequences: Sequence[SequenceView],
        best: Mapping[int, Proposal],
    ) -> Sequence[Proposal]:
        able = {s.id: s for s in sequences if s.ready and s.speculate != "off" and s.remaining > 1}
        reading = model.catch_up(list(able.values()))
        survivals = {id: survival for id, s in able.items() if id not in reading and (survival := model.expect(s))}
        rivals = {id: expected(best[id]) if id in best else 0.0 for id in survivals}
        depths = choose_depths(survivals, rivals) if survivals else {}
        asked = [(able[id], depth) for id, depth in depths.items() if depth > 0]
        silent = [
            Proposal(id, source=model.name, reason="low_acceptance" if id in survivals else "catching_up")
            for id in able
            if depths.get(id, 0) <= 0
        ]
        return [*model.draft(asked), *silent]


def take(best: dict[int, Proposal], proposals: Sequence[Proposal]) -> None:
    """Keep the better proposal of each sequence; among empty ones, the reason that says more than "no match"."""
    for proposal in proposals:
        rival = best.get(proposal.sequence)
        empty = rival is not None and not rival.tokens and not proposal.tokens
        if rival is None or expected(proposal) > expected(rival) or (empty and rival.reason == "no_match"):
            best[proposal.sequence] = proposal
