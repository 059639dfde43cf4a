"""What a drafter that works from token ids alone must answer, and how such a lookup becomes a drafter.

`Lookup` says what comes next; `LookupDrafter` does what all of them share: it keeps to the caps of the request, says
why nothing is drafted, and scores every guess, verified or not, against the tokens that came.  So the record of a
lookup is complete even while nothing is drafted, and finding out whether it would pay again costs nothing.
Nothing here knows what a step costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from twostroke.cache.keys import Group
from twostroke.engine.protocols import SequenceView
from twostroke.speculate.acceptance import Acceptance
from twostroke.types import Proposal, Report

MOST_DRAFTS = 64  # no request and no setting may ask for more in one step


@dataclass(frozen=True, slots=True)
class Guess:
    """The tokens a lookup expects next; when there are none, why."""

    tokens: tuple[int, ...] = ()
    strength: int = 0  # how good the evidence is, by the lookup's own reckoning: guesses of one strength share a record
    reason: str = "no_match"


NO_MATCH = Guess()


class Lookup(Protocol):
    """Guesses from token ids.  Each call costs what the sequence grew by, never what it holds."""

    name: str

    def guess(self, sequence: SequenceView, limit: int) -> Guess:
        """At most `limit` (≥ 1) tokens that may follow `sequence.tokens`."""
        ...

    def read(self, sequence: SequenceView) -> None:
        """The sequence is still reading its prompt: a chance to index it meanwhile."""
        ...

    def observe(self, report: Report) -> None:
        """A step has ended."""
        ...

    def forget(self, sequence: int) -> None:
        """Release what is kept for a sequence."""
        ...

    def purge(self, namespace: str) -> None:
        """Forget all text of a namespace."""
        ...


@dataclass(slots=True)
class Stake:
    """A guess made at position `start`, waiting for the tokens that prove it right or wrong."""

    start: int
    tokens: tuple[int, ...]
    strength: int
    scored: int = 0  # positions already on record

    def agreed(self, tokens: Sequence[int]) -> int:
        """How many guessed tokens came true so far."""
        seen = min(len(self.tokens), len(tokens) - self.start)
        came = tokens[self.start : self.start + seen]
        return next((i for i in range(seen) if self.tokens[i] != came[i]), seen)


def allowed(sequence: SequenceView, depth: int) -> int:
    """How many drafts a step may hold: the request's own cap, and one less than the answer may still grow by."""
    asked = depth if sequence.draft_tokens is None else sequence.draft_tokens
    return min(asked, MOST_DRAFTS, sequence.remaining - 1)


class LookupDrafter:
    """A drafter made of a lookup.  Keeps no KV."""

    groups: tuple[Group, ...] = ()

    def __init__(self, lookup: Lookup, draft_tokens: int = 8, acceptance: Acceptance | None = None) -> None:
        self.name = lookup.name
        self.lookup = lookup
        self.draft_tokens = draft_tokens
        self.acceptance = acceptance or Acceptance()
        self._stakes: dict[int, Stake] = {}

    def propose(self, sequences: Sequence[SequenceView]) -> list[Proposal]:
        """One proposal for each sequence that could verify drafts in the next step."""
        proposals = []
        for sequence in sequences:
            if sequence.ready:
                proposals.append(self._propose(sequence))
            elif sequence.speculate != "off":
                self.lookup.read(sequence)
        return proposals

    def observe(self, report: Report) -> None:
        self.lookup.observe(report)

    def forget(self, sequence: int) -> None:
        self._stakes.pop(sequence, None)
        self.acceptance.forget(sequence)
        self.lookup.forget(sequence)

    def purge(self, namespace: str) -> None:
        """Forget what a namespace has taught, text and record."""
        self.acceptance.purge(namespace)
        self.lookup.purge(namespace)

    def _propose(self, sequence: SequenceView) -> Proposal:
        if sequence.speculate == "off" or sequence.draft_tokens == 0:
            return Proposal(sequence.id, source=self.name, reason="disabled")
        self._settle(sequence)
        limit = allowed(sequence, self.draft_tokens)
        if limit < 1:
            return Proposal(sequence.id, source=self.name, reason="tail")
        guess = self.lookup.guess(sequence, limit)
        if not guess.tokens:
            return Proposal(sequence.id, source=self.name, reason=guess.reason)
        self._stakes.setdefault(sequence.id, Stake(len(sequence.tokens), guess.tokens, guess.strength))
        survival = self.acceptance.survival(sequence.id, sequence.namespace, guess.strength, len(guess.tokens))
        return Proposal(sequence.id, guess.tokens, survival, self.name)

    def _settle(self, sequence: SequenceView) -> None:
        """Score what is decided of the guess that is waiting; it goes once a token differed or all came true."""
        stake = self._stakes.get(sequence.id)
        if stake is None:
            return
        agreed = stake.agreed(sequence.tokens)
        failed = stake.start + agreed < len(sequence.tokens) and agreed < len(stake.tokens)
        if failed or agreed > stake.scored:
            self.acceptance.add(sequence.id, sequence.namespace, stake.strength, stake.scored, agreed, failed)
            stake.scored = agreed
        if failed or agreed == len(stake.tokens):
            del self._stakes[sequence.id]
