"""The neighbours that are not there: a null object for each protocol, so that no line of the engine asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from twostroke.cache.keys import Group
from twostroke.engine.protocols import SequenceView, View
from twostroke.types import Limits, Proposal, Report


class NoDraft:
    """Never guesses."""

    name = "none"
    groups: tuple[Group, ...] = ()

    def propose(self, sequences: Sequence[SequenceView]) -> Sequence[Proposal]:
        return ()

    def observe(self, report: Report) -> None:
        pass

    def forget(self, sequence: int) -> None:
        pass


class FixedLimits:
    """The same limits for every step, and every proposal to the same depth."""

    def __init__(self, tokens: int = 512, sequences: int = 16, draft_tokens: int = 8) -> None:
        self._limits = Limits(tokens, sequences)
        self._draft_tokens = draft_tokens

    def price(self, proposals: Sequence[Proposal], view: View) -> Limits:
        return replace(self._limits, drafts={proposal.sequence: self._cut(proposal) for proposal in proposals})

    def _cut(self, proposal: Proposal) -> Proposal:
        depth = self._draft_tokens
        if len(proposal.tokens) <= depth:
            return proposal
        return replace(proposal, tokens=proposal.tokens[:depth], survival=proposal.survival[:depth])

    def observe(self, report: Report) -> None:
        pass
