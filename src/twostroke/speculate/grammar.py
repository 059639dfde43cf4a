"""Tokens that an answer's grammar leaves no choice about, as drafts: they cost nothing to find and always come true.

Wraps a drafter and asks it all the same: where it agrees with what is forced and knows how to go on, its proposal is
kept, only surer.  Sequences without a grammar, and those that do not draft, are the drafter's alone.  Whether drafts
stay inside a grammar is judged by the engine, for every drafter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from twostroke.cache.keys import Group
from twostroke.engine.protocols import Drafter, SequenceView
from twostroke.types import Proposal, Report

NAME = "grammar"


class GrammarDrafts:
    """`drafter`, and at most `draft_tokens` forced tokens a step.  Its name is the one of sequences that name none."""

    def __init__(self, drafter: Drafter, draft_tokens: int) -> None:
        self.name = drafter.name
        self.groups: tuple[Group, ...] = drafter.groups
        self.drafter = drafter
        self.draft_tokens = draft_tokens

    def propose(self, sequences: Sequence[SequenceView]) -> Sequence[Proposal]:
        proposals = self.drafter.propose(sequences)
        forced = {s.id: tokens for s in sequences if s.grammar is not None and (tokens := self._forced(s))}
        if not forced:
            return proposals
        said = {proposal.sequence: proposal for proposal in proposals}
        return [*(said | {id: _joined(tokens, said.get(id), id) for id, tokens in forced.items()}).values()]

    def _forced(self, sequence: SequenceView) -> tuple[int, ...]:
        """What is known to come, no more than may be drafted.  A grammar that fails here ends its answer elsewhere."""
        if not sequence.ready or sequence.grammar is None or (sequence.speculate or self.name) == "off":
            return ()
        asked = self.draft_tokens if sequence.draft_tokens is None else sequence.draft_tokens
        most = min(self.draft_tokens, asked, sequence.remaining - 1)
        if most < 1:
            return ()
        try:
            return tuple(sequence.grammar.forced())[:most]
        except Exception:
            return ()

    def observe(self, report: Report) -> None:
        self.drafter.observe(report)

    def forget(self, sequence: int) -> None:
        self.drafter.forget(sequence)


def _joined(forced: tuple[int, ...], said: Proposal | None, sequence: int) -> Proposal:
    """What is forced, or a proposal that begins with it and goes on."""
    sure = (1.0,) * len(forced)
    if said is not None and len(said.tokens) > len(forced) and said.tokens[: len(forced)] == forced:
        return replace(said, survival=sure + said.survival[len(forced) :])
    return Proposal(sequence, forced, sure, NAME)
