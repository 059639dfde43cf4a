"""A model whose KV can be audited, and drafters of known skill.

A cell holds a digest of exactly the tokens its KV depends on (and of the namespace, so that foreign KV shows even where
the tokens agree).  A row is computed only after every cell below it has been compared with what it must hold; the next
token is drawn from the digest that is *read*, so a bad cell would also show in the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

from tests.composition.features import VOCABULARY, Toy, choose, score, special, unmasked
from twostroke.cache.keys import Group
from twostroke.cache.space import GroupSpace
from twostroke.cache.table import Table
from twostroke.engine.protocols import SequenceView
from twostroke.types import FinishReason, Grammar, Logprobs, Picks, Proposal, Report, Request, Row, Sampling


def digests(namespace: str, tokens: Iterable[int]) -> tuple[int, ...]:
    """What the cells of positions 0, 1, … hold: each depends on all tokens so far."""
    return _digests(namespace, tuple(tokens))


@lru_cache(maxsize=100_000)
def _digests(namespace: str, tokens: tuple[int, ...]) -> tuple[int, ...]:
    if not tokens:
        return ()
    before = _digests(namespace, tokens[:-1])
    return (*before, hash((before[-1] if before else sum(namespace.encode()), tokens[-1])))


def pick(digest: int, seed: int, choice: int, position: int) -> int:
    """The target's choice for `position`, given the digest of all tokens before: keyed noise, nothing else."""
    return (hash((digest, seed, choice, position)) >> 5) % VOCABULARY


def target(
    key: tuple[int, int, int],
    sampling: Sampling,
    prompt: Sequence[int],
    written: Sequence[int],
    allowed: Sequence[int] | None,
) -> int:
    """The target's choice with all that is asked of it; `key` is digest, choice and position."""
    digest, choice, position = key
    if not special(sampling, allowed):
        return pick(digest, sampling.seed, choice, position)
    noise = hash((digest, sampling.seed, choice, position))
    return choose(noise, sampling, prompt, written, range(VOCABULARY) if allowed is None else allowed)


def scores(request: Request) -> tuple[Logprobs, ...]:
    """What must be said of the prompt's tokens, from the second one on."""
    if request.prompt_logprobs is None:
        return ()
    before = digests(request.namespace, request.prompt)
    return tuple(score(digest, token) for digest, token in zip(before, request.prompt[1:], strict=False))


def answer(request: Request, choice: int, context: int) -> tuple[list[int], FinishReason]:
    """What the request must be answered with: no engine, no cache, no drafts."""
    tokens = list(request.prompt)
    start = len(tokens)
    stop = request.stop() if request.stop else None
    grammar = request.grammar() if request.grammar else None
    limit = min(len(tokens) + request.max_tokens, context)
    while True:
        digest = digests(request.namespace, tokens)[-1]
        allowed = unmasked(grammar.allowed(())) if grammar else None
        token = target((digest, choice, len(tokens)), request.sampling, request.prompt, tokens[start:], allowed)
        tokens.append(token)
        if token in request.stop_ids or (stop is not None and stop(token)) or (grammar and fed(grammar, token)):
            return tokens[len(request.prompt) :], FinishReason.STOP
        if len(tokens) == limit:
            return tokens[len(request.prompt) :], FinishReason.LENGTH


def fed(grammar: Grammar, token: int) -> bool:
    grammar.advance(token)
    return grammar.finished


class Cells:
    """The KV of one group: every access is an audit."""

    def __init__(self, block_size: int, lookahead: int = 0) -> None:
        self.block_size = block_size
        self.lookahead = lookahead
        self.held: dict[tuple[int, int], int] = {}

    def copy(self, source: int, target: int, tokens: int) -> None:
        for offset in range(tokens):
            self.held[target, offset] = self.held[source, offset]

    def write(self, blocks: Sequence[int], position: int, digest: int) -> None:
        self.held[blocks[position // self.block_size], position % self.block_size] = digest

    def read(self, blocks: Sequence[int], position: int) -> int | None:
        return self.held.get((blocks[position // self.block_size], position % self.block_size))

    def audit(self, blocks: Sequence[int], wanted: Sequence[int], end: int) -> None:
        """Every cell of positions 0 … end - 1 holds the digest of the tokens up to its lookahead."""
        for position in range(end):
            found = self.read(blocks, position)
            assert found == wanted[position + self.lookahead], f"position {position}: {found} is not its KV"


class AuditingRunner:
    """The target: `view(id)` gives the sequence a row belongs to, whose known tokens are the truth."""

    def __init__(self, block_size: int, view: Callable[[int], SequenceView]) -> None:
        self.cells = Cells(block_size)
        self.view = view
        self.steps = 0
        self.hook: Callable[[Sequence[Row]], None] = lambda rows: None

    def execute(self, rows: Sequence[Row]) -> list[Picks]:
        self.steps += 1
        self.hook(rows)
        for row in rows:
            for copy in row.copies:
                self.cells.copy(copy.source, copy.target, copy.tokens)
        return [self._run(row) for row in rows]

    def _run(self, row: Row) -> Picks:
        sequence = self.view(row.sequence)
        known = len(row.tokens) - row.drafts
        assert list(row.tokens[:known]) == list(sequence.tokens[row.start : row.start + known]), "a row of other tokens"
        assert row.samples <= len(row.tokens), "samples a position that is not computed"
        text = [*sequence.tokens[: row.start], *row.tokens]
        wanted = digests(sequence.namespace, text)
        self.cells.audit(row.blocks, wanted, row.start)
        for position in range(row.start, len(text)):
            self.cells.write(row.blocks, position, wanted[position])
        self._audit_history(row, sequence)
        drafts = row.tokens[len(row.tokens) - row.drafts :]
        masks = self._masks(row, drafts) if row.grammar else [None] * row.samples
        first = len(text) - row.samples
        tokens = tuple(
            target(
                (self._digest(row, first + i), row.choice, first + i + 1),
                row.sampling,
                row.prompt,
                (*row.written, *drafts[:i]),
                masks[i],
            )
            for i in range(row.samples)
        )
        told = tuple(score(self._digest(row, row.start + i), token) for i, token in enumerate(row.scores))
        return Picks(tokens, scores=told)

    @staticmethod
    def _masks(row: Row, drafts: Sequence[int]) -> list[tuple[int, ...] | None]:
        assert row.grammar is not None
        masks = row.grammar.allowed(drafts)
        return [unmasked(masks[4 * i : 4 * i + 4]) for i in range(1 + len(drafts))]

    @staticmethod
    def _audit_history(row: Row, sequence: SequenceView) -> None:
        """What the row says of its past is the sequence's truth, and is said where it is read."""
        prompt, written = sequence.tokens[: sequence.prompt_length], sequence.tokens[sequence.prompt_length :]
        if row.prompt:
            assert (list(row.prompt), list(row.written)) == (prompt, written), "a row with another history"
        reads = bool(row.samples) and row.sampling.reads_history(len(written))
        assert bool(row.prompt) == reads, "a history that is not read, or is read and missing"
        assert row.grammar is (sequence.grammar if row.samples else None), "a row with another grammar"
        if isinstance(row.grammar, Toy):
            assert row.grammar.fed == written, "a grammar that was fed something else than the answer"
            drafts = row.tokens[len(row.tokens) - row.drafts :]
            assert row.grammar.valid(drafts) == len(drafts), "drafts that the grammar forbids are verified"
        known = prompt[row.start + 1 : row.start + 1 + len(row.scores)]
        assert list(row.scores) == known, "scores of other tokens"

    def _digest(self, row: Row, position: int) -> int:
        digest = self.cells.read(row.blocks, position)
        assert digest is not None
        return digest


class Oracle:
    """Drafts up to `depth` tokens, each right with probability `skill`; keeps no KV."""

    name = "oracle"
    groups: tuple[Group, ...] = ()

    def __init__(self, skill: float, depth: int, random: Random) -> None:
        self.skill = skill
        self.depth = depth
        self.random = random
        self.delivered: dict[int, int] = {}

    def propose(self, sequences: Sequence[SequenceView]) -> list[Proposal]:
        for sequence in sequences:
            written = len(sequence.tokens) - sequence.prompt_length
            assert self.delivered.get(sequence.id, 0) == written, "guessed before the last tokens were delivered"
        return [self.guess(sequence) for sequence in sequences if sequence.ready]

    def guess(self, sequence: SequenceView) -> Proposal:
        context, drafts = list(sequence.tokens), []
        start, grammar = sequence.prompt_length, sequence.grammar
        for _ in range(self.depth):
            digest = digests(sequence.namespace, context)[-1]
            allowed = unmasked(grammar.allowed(drafts)[-4:]) if grammar else None
            key = digest, sequence.choice, len(context)
            right = target(key, sequence.sampling, context[:start], context[start:], allowed)
            wrong = (right + 1 + self.random.randrange(VOCABULARY - 1)) % VOCABULARY
            drafts.append(right if self.random.random() < self.skill else wrong)
            context.append(drafts[-1])
        survival = tuple(self.skill ** (i + 1) for i in range(len(drafts)))
        return Proposal(sequence.id, tuple(drafts), survival, self.name)

    def observe(self, report: Report) -> None:
        for row in report.rows:
            self.delivered[row.sequence] = self.delivered.get(row.sequence, 0) + len(row.emitted)

    def forget(self, sequence: int) -> None:
        pass


@dataclass
class DraftState:
    """What the draft model keeps for one sequence: the view stays, for its tokens are needed when it ends."""

    sequence: SequenceView
    table: Table
    computed: int = 0


@dataclass
class DraftCounts:
    reused: int = 0
    computed: int = 0
    copies: int = 0
    silent: int = 0
    refused: int = 0
    proposed: dict[int, int] = field(default_factory=dict)


class DraftModel(Oracle):
    """A drafter with KV of its own in the ledger, audited like the target's; computes at most `pace` positions a step.

    `Group.lookahead` 0 is a separate small model, 1 is a head whose KV depends on the next token as well.
    """

    name = "draft"

    def __init__(self, space: GroupSpace, skill: float, depth: int, random: Random, pace: int = 8) -> None:
        super().__init__(skill, depth, random)
        self.space = space
        self.groups = (space.group,)
        self.cells = Cells(space.block_size, space.group.lookahead)
        self.pace = pace
        self.states: dict[int, DraftState] = {}
        self.counts = DraftCounts()

    def propose(self, sequences: Sequence[SequenceView]) -> list[Proposal]:
        super().propose(())
        left = self.pace
        proposals = []
        for sequence in sequences:
            if not sequence.ready or sequence.speculate == "off":
                continue
            state = self.states.get(sequence.id) or self._begin(sequence)
            left -= self._catch_up(state, left)
            proposals.append(self._say(state))
        return proposals

    def forget(self, sequence: int) -> None:
        state = self.states.pop(sequence, None)
        if state is not None:
            self.space.close(state.table, state.sequence.tokens, state.computed)

    def _begin(self, sequence: SequenceView) -> DraftState:
        table = self.space.match(sequence.tokens, sequence.namespace, sequence.prefix_cache)
        if table.copy is not None:
            self.cells.copy(table.copy.source, table.copy.target, table.copy.tokens)
            self.counts.copies += 1
        self.space.copied(table)
        self.counts.reused += table.cached
        state = DraftState(sequence, table, table.cached)
        self.states[sequence.id] = state
        return state

    def _catch_up(self, state: DraftState, left: int) -> int:
        """Compute what is known and missing, as far as pace and memory allow; how many positions that was."""
        sequence, table = state.sequence, state.table
        known = len(sequence.tokens) - self.cells.lookahead
        end = min(known, state.computed + left)
        if end <= state.computed:
            return 0
        if not self.space.grow(table, end):
            self.counts.refused += 1
            return 0
        wanted = digests(sequence.namespace, sequence.tokens)
        self.cells.audit(table.ids, wanted, state.computed)
        for position in range(state.computed, end):
            self.cells.write(table.ids, position, wanted[position + self.cells.lookahead])
        count, state.computed = end - state.computed, end
        self.counts.computed += count
        # As heads do, it also writes positions whose successors are guesses; the ledger knows which are final.
        written = end if end < known else len(sequence.tokens)
        self.space.publish(table, sequence.tokens, written)
        return count

    def _say(self, state: DraftState) -> Proposal:
        sequence, table = state.sequence, state.table
        if state.computed < len(sequence.tokens) - self.cells.lookahead:
            self.counts.silent += 1
            return Proposal(sequence.id, source=self.name, reason="catching_up")
        proposal = self.guess(sequence)
        # The KV of guesses is written beyond what is computed, and simply not counted.
        end = self.space.stretch(table, state.computed + len(proposal.tokens))
        for position in range(state.computed, end):
            self.cells.write(table.ids, position, -1 - position)
        self.space.trim(table, state.computed)
        self.counts.proposed[sequence.id] = self.counts.proposed.get(sequence.id, 0) + len(proposal.tokens)
        return proposal
