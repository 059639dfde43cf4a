"""A smaller model that guesses: its KV is a group of the ledger like the target's, found again with the prefix.

It draws with the target's own noise (the key is seed, choice, position and token), so what it proposes under a
temperature is what the target would choose if both agreed on the distribution.  It works after the first token is out:
a prompt whose draft KV is missing is caught up in small portions, and only where the answer still expected repays it.
Guesses live in cells that are free anyway and are written over when they prove wrong.

Source: Leviathan et al. 2022 (arXiv 2211.17192) for drafting with a small model; the shared noise after Daliri et al.
2024 (arXiv 2408.07978).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from twostroke.cache.keys import Group
from twostroke.cache.space import GroupSpace, Table
from twostroke.engine.protocols import Runner, SequenceView
from twostroke.types import Copy, Proposal, Report, Row

DRAFT = Group("draft")
PACE = 128  # positions of missing prompt that one step may catch up, over all sequences
PAUSE = 8  # tokens until it is asked again whether catching up pays

Repays = Callable[[int, int, Sequence[float], Sequence[float]], bool]
"""Whether computing so many missing positions pays, with so many tokens to come and drafts that survive, as far as is
known and at an optimistic guess, like that."""


class Record(Protocol):
    """How often guesses came true; see `speculate.acceptance`."""

    def add(self, sequence: int, namespace: str, strength: int, first: int, agreed: int, failed: bool) -> None: ...

    def survival(self, sequence: int, namespace: str, strength: int, count: int) -> tuple[float, ...]: ...

    def optimistic(self, sequence: int, strength: int, survival: tuple[float, ...]) -> tuple[float, ...]: ...

    def forget(self, sequence: int) -> None: ...

    def fade(self, namespace: str) -> None: ...

    def purge(self, namespace: str) -> None: ...


class Lengths(Protocol):
    """How long answers get; see `speculate.lengths`."""

    def add(self, namespace: str, tokens: int) -> None: ...

    def expected(self, namespace: str, written: int) -> float: ...

    def purge(self, namespace: str) -> None: ...


@dataclass(slots=True)
class Draft:
    """What is kept for one sequence.  `computed` positions hold KV of known tokens, the next ones of `guesses`."""

    sequence: SequenceView
    table: Table
    computed: int
    guesses: tuple[int, ...] = ()  # the last proposal, not yet scored; starts where the known tokens then ended
    started: int = 0
    copies: tuple[Copy, ...] = ()  # to be made with the first row
    resume: int = 0  # known tokens from which on it may draft: catching up did not pay before

    @property
    def behind(self) -> int:
        """Known positions without KV, beyond the last token (which every pass computes)."""
        return max(0, len(self.sequence.tokens) - 1 - self.computed)

    @property
    def written(self) -> int:
        """Tokens of the answer so far."""
        return len(self.sequence.tokens) - self.sequence.prompt_length


class ModelDrafter:
    """Satisfies `speculate.auto.ModelDrafter`: says what it expects, and drafts where that was found worth it."""

    name = DRAFT.name
    groups: tuple[Group, ...] = (DRAFT,)

    def __init__(
        self,
        runner: Runner,
        space: GroupSpace,
        record: Record,
        lengths: Lengths,
        draft_tokens: int,
        repays: Repays = lambda behind, remaining, survival, optimistic: behind <= 8 * remaining,
        pace: int = PACE,
    ) -> None:
        self.draft_tokens = draft_tokens
        self._runner = runner
        self._space = space
        self._record = record
        self._lengths = lengths
        self.repays = repays
        self._pace = pace
        self._drafts: dict[int, Draft] = {}

    def expect(self, sequence: SequenceView) -> tuple[float, ...]:
        """The survival expected of its drafts; empty where it could not draft now, or where catching up would not pay.

        Also empty before the first token is out: a prompt whose chunks end just before its last token could verify
        drafts at once, but would wait for them.
        """
        if len(sequence.tokens) == sequence.prompt_length:
            return ()
        draft = self._draft_of(sequence)
        return self._expected_survival(draft) if draft.behind <= self._pace else ()

    def catch_up(self, sequences: Sequence[SequenceView]) -> frozenset[int]:
        """Compute a portion of what it lacks of long texts, as far as the answers still expected repay it.

        Returns the sequences it was for: they draft in a later step.  What is no more than a portion is left to the
        pass that drafts, if there is one.
        """
        begun = [self._draft_of(s) for s in sequences if len(s.tokens) > s.prompt_length]
        lacking = [draft for draft in begun if draft.behind > self._pace and self._expected_survival(draft)]
        self._guess(self._portions([(draft, 0) for draft in lacking]))
        return frozenset(draft.sequence.id for draft in lacking)

    def draft(self, wanted: Sequence[tuple[SequenceView, int]]) -> list[Proposal]:
        """Proposals for these sequences, each to its depth: one pass over what they lack, then one per draft."""
        return self._guess(self._portions([(self._draft_of(sequence), depth) for sequence, depth in wanted]))

    def observe(self, report: Report) -> None:
        """How long answers got; guesses are scored against the tokens when the sequence is next looked at."""
        for row in report.rows:
            if row.finished and (draft := self._drafts.get(row.sequence)):
                self._lengths.add(draft.sequence.namespace, draft.written)

    def forget(self, sequence: int) -> None:
        """The sequence is gone; its KV stays in the index for the next turn."""
        draft = self._drafts.pop(sequence, None)
        self._record.forget(sequence)
        if draft is not None:
            self._settle(draft)
            self._record.fade(draft.sequence.namespace)
            self._space.close(draft.table, draft.sequence.tokens, draft.computed)

    def purge(self, namespace: str) -> None:
        """Forget what a namespace has taught."""
        self._record.purge(namespace)
        self._lengths.purge(namespace)

    # -- passes -------------------------------------------------------------------------------------------------------

    def _portions(self, wanted: Sequence[tuple[Draft, int]]) -> list[tuple[Draft, int, int]]:
        """How much of what each lacks is computed now, as far as there is memory, and how deep it then drafts."""
        portions: list[tuple[Draft, int, int]] = []
        left = self._pace
        for draft, depth in wanted:
            known = len(draft.sequence.tokens)
            draft.computed = min(draft.computed, known - 1)  # the last token's row says what comes next
            lacking = known - draft.computed
            portion = min(lacking, 1 + left)
            if self._space.grow(draft.table, draft.computed + portion):
                left -= portion - 1
                portions.append((draft, portion, depth if portion == lacking else 0))
        return portions

    def _guess(self, portions: Sequence[tuple[Draft, int, int]]) -> list[Proposal]:
        rows = [self._known_row(draft, portion, depth) for draft, portion, depth in portions]
        picks = self._execute(rows)
        active: list[tuple[Draft, int, list[int]]] = []
        for (draft, portion, depth), row, pick in zip(portions, rows, picks, strict=True):
            self._computed(draft, portion)
            if row.samples:
                active.append((draft, depth, [pick[0]]))
        self._deepen(active)
        said = {draft.sequence.id: self._proposal(draft, guesses) for draft, _, guesses in active}
        waiting = [draft.sequence.id for draft, _, _ in portions if draft.sequence.id not in said]
        return [*said.values(), *(Proposal(id, source=self.name, reason="catching_up") for id in waiting)]

    def _deepen(self, active: Sequence[tuple[Draft, int, list[int]]]) -> None:
        """One more draft for every sequence that wants one and has a free cell for the one before it."""
        going = list(active)
        while going:
            going = [(draft, depth, guesses) for draft, depth, guesses in going if self._room(draft, depth, guesses)]
            picks = self._execute([self._guess_row(draft, guesses) for draft, _, guesses in going])
            for (_, _, guesses), pick in zip(going, picks, strict=True):
                guesses.append(pick[0])

    def _room(self, draft: Draft, depth: int, guesses: Sequence[int]) -> bool:
        end = draft.computed + len(guesses)
        return len(guesses) < depth and self._space.stretch(draft.table, end) >= end

    def _execute(self, rows: Sequence[Row]) -> list[tuple[int, ...]]:
        return [pick.tokens for pick in self._runner.execute(rows)] if rows else []

    def _known_row(self, draft: Draft, portion: int, depth: int) -> Row:
        sequence, start = draft.sequence, draft.computed
        return Row(
            sequence=sequence.id,
            start=start,
            tokens=tuple(sequence.tokens[start : start + portion]),
            drafts=0,
            samples=1 if depth else 0,
            blocks=draft.table.ids,
            sampling=sequence.sampling,
            choice=sequence.choice,
            copies=draft.copies,
        )

    def _guess_row(self, draft: Draft, guesses: Sequence[int]) -> Row:
        sequence, start = draft.sequence, draft.computed + len(guesses) - 1
        blocks = draft.table.ids
        return Row(sequence.id, start, (guesses[-1],), 0, 1, blocks, sequence.sampling, sequence.choice)

    # -- books --------------------------------------------------------------------------------------------------------

    def _draft_of(self, sequence: SequenceView) -> Draft:
        draft = self._drafts.get(sequence.id) or self._begin(sequence)
        self._settle(draft)
        return draft

    def _expected_survival(self, draft: Draft) -> tuple[float, ...]:
        """The survival expected of its drafts; empty where they would not repay what it lacks, or it has none."""
        sequence = draft.sequence
        depth = self._depth(sequence)
        if depth < 1 or len(sequence.tokens) < draft.resume:
            return ()
        survival = self._record.survival(sequence.id, sequence.namespace, 0, depth)
        optimistic = self._record.optimistic(sequence.id, 0, survival)
        if draft.behind:
            coming = min(sequence.remaining, round(self._lengths.expected(sequence.namespace, draft.written)))
            if not self.repays(draft.behind, coming, survival, optimistic):
                draft.resume = len(sequence.tokens) + PAUSE
                return ()
        return optimistic

    def _begin(self, sequence: SequenceView) -> Draft:
        table = self._space.match(sequence.tokens, sequence.namespace, sequence.prefix_cache)
        draft = Draft(sequence, table, table.cached, copies=(table.copy,) if table.copy else ())
        self._drafts[sequence.id] = draft
        return draft

    def _computed(self, draft: Draft, portion: int) -> None:
        draft.computed += portion
        draft.copies = ()
        self._space.copied(draft.table)
        self._space.publish(draft.table, draft.sequence.tokens, draft.computed)

    def _proposal(self, draft: Draft, guesses: Sequence[int]) -> Proposal:
        sequence = draft.sequence
        draft.guesses, draft.started = tuple(guesses), len(sequence.tokens)
        survival = self._record.survival(sequence.id, sequence.namespace, 0, len(guesses))
        return Proposal(sequence.id, draft.guesses, survival, self.name)

    def _settle(self, draft: Draft) -> None:
        """Score the last guesses, keep the KV of those that came true, and give back the cells of the others."""
        if not draft.guesses or len(draft.sequence.tokens) == draft.started:
            return
        came = draft.sequence.tokens[draft.started : draft.started + len(draft.guesses)]
        pairs = zip(draft.guesses, came, strict=False)
        agreed = next((i for i, (guess, token) in enumerate(pairs) if guess != token), len(came))
        self._record.add(draft.sequence.id, draft.sequence.namespace, 0, 0, agreed, agreed < len(came))
        draft.computed += min(agreed, len(draft.guesses) - 1)  # the last guess was drawn, never computed
        draft.guesses = ()
        self._space.trim(draft.table, max(draft.computed, 1))

    def _depth(self, sequence: SequenceView) -> int:
        asked = self.draft_tokens if sequence.draft_tokens is None else min(sequence.draft_tokens, self.draft_tokens)
        return min(asked, sequence.remaining - 1)
