"""Who computes what in the next step, and what follows from the target's choices.

Every step moves `computed` toward the known tokens and the drafts; the scheduler has no phases and no speculative mode.
Its order of service: running decodes, drafts within their allowance, prefills in order of admission, then the queue by
priority and in order of arrival.  Memory goes the same way, except that drafts come last and only get what is free:
they evict, preempt and refuse nothing.  The earliest admitted sequence can always proceed, so nothing deadlocks.
Integers only: no clock (time is handed on to the ledger), no arrays, and no idea of who drafts or why the limits are
what they are.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Mapping
from collections.abc import Sequence as Items

from twostroke.cache.space import GroupSpace
from twostroke.cache.table import Lifetimes, Table
from twostroke.engine.sequence import Sequence
from twostroke.engine.step import Plan, accept, allot
from twostroke.types import Admission, End, FinishReason, Limits, Logprobs, Picks, Proposal, Row, SequenceReport

NOTHING = Proposal(sequence=-1)
SCORED = 64  # prompt positions that one step may score: each needs logits over the whole vocabulary
RETRY = 8  # steps after which a sequence that did not fit is tried again although nobody left: others publish, too


class Scheduler:
    """Continuous batching over one group of the ledger.  Satisfies `View`."""

    def __init__(self, space: GroupSpace) -> None:
        self.space = space
        self.running: list[Sequence] = []  # in order of admission: the last one is preempted first
        self.queue: deque[Sequence] = deque()
        self._aborted: set[str] = set()
        self._steps = 0
        self._rows = 0
        self._departures = 0  # how often memory was given back by a sequence that left
        self._refused: tuple[int, int] | None = None  # who did not fit, after how many departures …
        self._refused_at = 0  # … and steps
        self._scorable = 0  # prompt positions that the step being planned may still score
        self._shares: dict[Sequence, int] = {}  # known tokens to compute in the step being planned
        self._drafts: Mapping[int, Proposal] = {}  # proposals for the step being planned or under way
        self._admitted: list[Admission] = []
        self._preempted: list[int] = []
        self._ended: list[End] = []

    # -- what others may see ------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        return len(self.queue)

    @property
    def prefilling(self) -> int:
        return sum(sequence.pending - 1 for sequence in self.running)

    @property
    def entering(self) -> int:
        """Known tokens of the first in the queue, unless it does not fit as things stand."""
        return 0 if not self.queue or self._too_large(self.queue[0]) else len(self.queue[0].tokens)

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence.  It must fit when alone: `sequence.limit <= space.capacity`."""
        self._enqueue(sequence)

    def _enqueue(self, sequence: Sequence) -> None:
        """Lower priorities first; within one in order of arrival, also for those that come back from running."""
        insort(self.queue, sequence, key=lambda other: (other.priority, other.id))

    def abort(self, request: str) -> None:
        """End every choice of a request at the next plan."""
        self._aborted.add(request)

    # -- plan ---------------------------------------------------------------------------------------------------------

    def plan(self, limits: Limits, now_s: float = 0.0) -> Plan:
        """Choose the rows of the next step, at least one while anything is running or waiting.

        `now_s` is the time that the ledger notes for what is used from now on.
        """
        self.space.now_s = now_s
        self._steps += 1
        self._scorable = SCORED
        self._shares, self._drafts = {}, limits.drafts
        self._admitted, self._preempted, self._ended = [], [], []
        self._end_aborted()
        left = self._decode(max(1, limits.tokens))
        depths = self._allot(left)
        left = self._prefill(left - sum(depths.values()))
        self._admit(left, max(1, limits.sequences))
        rows = tuple(self._row(sequence, depths.get(sequence.id, 0)) for sequence in self._shares)
        return Plan(rows, tuple(self._admitted), tuple(self._preempted), tuple(self._ended))

    def _end_aborted(self) -> None:
        """End what was aborted since the last step."""
        if not self._aborted:
            return
        for sequence in [s for s in (*self.running, *self.queue) if s.request.id in self._aborted]:
            self._leave(sequence, FinishReason.ABORT)
            self._ended.append(_end(sequence))
        self._aborted.clear()

    def _decode(self, left: int) -> int:
        """One token for each ready sequence; when there are too many, those served longest ago go first."""
        ready = [sequence for sequence in self.running if sequence.pending == 1]
        if len(ready) > left:
            ready.sort(key=lambda sequence: sequence.served)
        for sequence in ready:
            if len(self._shares) == left:
                break
            if self._fits(sequence, len(sequence.tokens)):
                self._shares[sequence] = 1
        return left - len(self._shares)

    def _allot(self, left: int) -> dict[int, int]:
        """Draft depths by sequence id; at most half of what is left while others wait to read their prompts."""
        if not self._drafts:
            return {}
        wishes = {s.id: min(s.depth, len(self._drafts.get(s.id, NOTHING).tokens)) for s in self._shares}
        busy = bool(self.queue) or len(self._shares) < len(self.running)
        return allot(wishes, left // 2 if busy else left)

    def _prefill(self, left: int) -> int:
        for sequence in [sequence for sequence in self.running if sequence.pending > 1]:
            chunk = self._chunk(sequence, left)
            if chunk and self._fits(sequence, sequence.computed + chunk):
                self._share(sequence, chunk)
                left -= chunk
        return left

    def _chunk(self, sequence: Sequence, left: int) -> int:
        """Known tokens to compute at once: what is left of the step, and of the positions it may score."""
        chunk = min(left, sequence.pending)
        return min(chunk, self._scorable) if sequence.unscored else chunk

    def _share(self, sequence: Sequence, chunk: int) -> None:
        self._shares[sequence] = chunk
        if sequence.unscored:
            self._scorable -= chunk

    def _fits(self, sequence: Sequence, end: int) -> bool:
        """Cover `end` positions, preempting those admitted later; a sequence with nobody behind it waits instead."""
        if sequence.table is None:  # preempted earlier in this plan
            return False
        while not self.space.grow(sequence.table, end):
            if self.running[-1] is sequence:
                return False
            self._preempt(self.running[-1])
        return True

    def _preempt(self, sequence: Sequence) -> None:
        """Release and requeue; what it had computed can be found again until it is evicted."""
        self._shares.pop(sequence, None)
        self._leave(sequence, None)
        self._enqueue(sequence)
        self._preempted.append(sequence.id)

    def _leave(self, sequence: Sequence, reason: FinishReason | None, publish: bool = True) -> None:
        """Take a sequence out of wherever it is, give back its blocks, and say why if it is for good."""
        if sequence.table is None:
            self.queue.remove(sequence)
        else:
            self.running.remove(sequence)
            if publish:
                self.space.close(sequence.table, sequence.tokens, sequence.computed)
            else:
                self.space.release(sequence.table)
            self._departures += 1
        sequence.table, sequence.computed, sequence.finished = None, 0, reason

    # -- admission ----------------------------------------------------------------------------------------------------

    def _admit(self, left: int, most: int) -> None:
        """Start what waits, in order, while tokens, sequences and memory allow."""
        while self.queue and left > 0 and len(self.running) < most and not self._preempted:
            sequence = self.queue[0]
            refused = self._too_large(sequence) and self._steps < self._refused_at + RETRY
            if refused or self._follows(sequence) or not self._chunk(sequence, left):
                return
            table = self._reserve(sequence)
            if table is None:
                self._refused, self._refused_at = (sequence.id, self._departures), self._steps
                return
            self._start(sequence, table)
            chunk = self._chunk(sequence, left)
            grown = self.space.grow(table, sequence.computed + chunk)
            assert grown, f"sequence {sequence.id} was admitted without room"
            self._share(sequence, chunk)
            left -= chunk

    def _follows(self, sequence: Sequence) -> bool:
        """Whether a running one is about to compute a block that this one could then reuse: it waits for that."""
        return (
            sequence.prefix_cache
            and not sequence.unscored
            and any(
                self._leads(other, other.table, sequence) for other in self.running if other.table and other.pending > 1
            )
        )

    def _leads(self, leader: Sequence, table: Table, sequence: Sequence) -> bool:
        block = self.space.block_size
        end = (leader.computed // block + 1) * block
        return (
            table.caching
            and leader.namespace == sequence.namespace
            and end < min(len(leader.tokens), len(sequence.tokens))
            and leader.tokens[:end] == sequence.tokens[:end]
        )

    def _too_large(self, sequence: Sequence) -> bool:
        """Whether it did not fit, and nobody has left since."""
        return self._refused == (sequence.id, self._departures)

    def _reserve(self, sequence: Sequence) -> Table | None:
        """A table for the whole of what the sequence knows, if it fits beside what the running ones still need."""
        table = self.space.match(
            sequence.tokens, sequence.namespace, sequence.prefix_cache, not sequence.unscored, _lifetimes(sequence)
        )
        promised = sum(self._lacks(other, other.table) for other in self.running if other.table)
        if promised + self._lacks(sequence, table) > self.space.obtainable:
            self.space.forgo(table)  # the source of a partial hit is a block more than it needs
        if promised + self._lacks(sequence, table) <= self.space.obtainable:
            return table
        self.space.release(table)
        return None

    def _lacks(self, sequence: Sequence, table: Table) -> int:
        """Blocks for all known tokens and the next one, should that be computed; guesses take what is free."""
        return self.space.missing(table, min(len(sequence.tokens) + 1, sequence.limit - 1))

    def _start(self, sequence: Sequence, table: Table) -> None:
        self.queue.popleft()
        self.running.append(sequence)
        sequence.table, sequence.computed = table, table.cached
        resumed = sequence.admissions > 0
        sequence.admissions += 1
        if not resumed:
            sequence.cached = table.cached
        self._admitted.append(
            Admission(
                sequence=sequence.id,
                request=sequence.request.id,
                choice=sequence.choice,
                namespace=sequence.namespace,
                prompt_tokens=sequence.prompt_length,
                cached=table.cached,
                miss_reason=table.miss_reason,
                resumed=resumed,
            )
        )

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _row(self, sequence: Sequence, depth: int) -> Row:
        table, start, known = sequence.table, sequence.computed, len(sequence.tokens)
        assert table is not None
        end = start + self._shares[sequence]
        tokens = tuple(sequence.tokens[start:end])
        if depth:
            depth = self.space.stretch(table, end + depth) - end
            tokens += self._drafts[sequence.id].tokens[:depth]
        self._rows += 1
        sequence.served = self._rows
        samples = 1 + depth if end == known else 0
        written = known - sequence.prompt_length
        reads = bool(samples) and sequence.sampling.reads_history(written)
        scores = sequence.request.prompt[start + 1 : end + 1] if sequence.unscored else ()
        return Row(
            sequence=sequence.id,
            start=start,
            tokens=tokens,
            drafts=depth,
            samples=samples,
            blocks=table.ids,
            sampling=sequence.request.sampling,
            choice=sequence.choice,
            copies=(table.copy,) if table.copy else (),
            prompt=sequence.request.prompt if reads else (),
            written=tuple(sequence.tokens[known - written :]) if reads else (),
            grammar=sequence.grammar if samples else None,
            scores=scores,
            alternatives=(sequence.request.prompt_logprobs or 0) if scores else 0,
        )

    # -- commit -------------------------------------------------------------------------------------------------------

    def commit(self, plan: Plan, picks: Items[Picks]) -> tuple[SequenceReport, ...]:
        """Accept what the target chose, stop where answers are over, publish what is final.  `picks` match the rows."""
        return tuple(
            self._settle(sequence, row, pick)
            for sequence, row, pick in zip(tuple(self._shares), plan.rows, picks, strict=True)
        )

    def _settle(self, sequence: Sequence, row: Row, pick: Picks) -> SequenceReport:
        table = sequence.table
        assert table is not None
        self.space.copied(table)
        emitted: tuple[int, ...] = ()
        scored = sequence.scored
        sequence.scored = max(scored, row.start + len(row.scores)) if row.scores else scored
        if pick.error is not None:
            sequence.fail(pick.error)
            sequence.computed = len(sequence.tokens) - 1
        elif row.samples:
            kept = accept(row.tokens[len(row.tokens) - row.drafts :], pick.tokens)
            emitted = kept[: sequence.extend(kept)]
            sequence.computed = len(sequence.tokens) - 1  # rejected and dropped positions are simply not counted
        else:
            sequence.computed = row.start + len(row.tokens)
        if sequence.finished is not None:
            self._leave(sequence, sequence.finished)
        else:
            self.space.trim(table, sequence.computed)
            self.space.publish(table, sequence.tokens, sequence.computed)
        # After a preemption in the middle of its prompt, positions are scored again, and told once.
        return self._report(sequence, row, emitted, pick, pick.scores[max(0, scored - row.start) :])

    def _report(
        self, sequence: Sequence, row: Row, emitted: tuple[int, ...], pick: Picks, scores: tuple[Logprobs, ...]
    ) -> SequenceReport:
        proposal = self._drafts.get(sequence.id, NOTHING)
        return SequenceReport(
            sequence=sequence.id,
            request=sequence.request.id,
            choice=sequence.choice,
            namespace=sequence.namespace,
            start=row.start,
            computed=len(row.tokens),
            context=row.start + len(row.tokens),
            drafted=row.drafts,
            accepted=max(0, len(emitted) - 1),  # one token is the pass's own: passes + accepted = tokens
            source=proposal.source if row.drafts else "",
            emitted=emitted,
            logprobs=pick.logprobs[: len(emitted)],
            finished=sequence.finished,
            reason=_undrafted(row, sequence, proposal),
            scores=scores,
            error=sequence.error,
        )

    def fail(self, error: str) -> tuple[End, ...]:
        """The step under way failed: end every sequence in it, and publish nothing that it may have touched."""
        failed = tuple(self._shares)
        for sequence in failed:
            sequence.error = error
            self._leave(sequence, FinishReason.ERROR, publish=False)
        return tuple(_end(sequence) for sequence in failed)

    def check(self) -> None:
        """Recount what the scheduler believes; raises AssertionError where it is wrong."""
        for sequence in self.running:
            assert sequence.table is not None, f"sequence {sequence.id} runs without a table"
            assert sequence.finished is None, f"sequence {sequence.id} is over and still runs"
            assert 0 <= sequence.computed < len(sequence.tokens), (
                f"sequence {sequence.id}: computed what it cannot know"
            )
            missing = self.space.missing(sequence.table, sequence.computed)
            spare = len(sequence.table.blocks) * self.space.block_size - sequence.computed
            assert not missing, f"sequence {sequence.id}: computed beyond its blocks"
            assert spare < self.space.block_size, f"sequence {sequence.id} holds blocks between steps for guesses"
        for sequence in self.queue:
            assert sequence.table is None, f"sequence {sequence.id} waits and holds blocks"
            assert sequence.computed == 0, f"sequence {sequence.id} waits and has computed"
        assert len({*self.running, *self.queue}) == len(self.running) + len(self.queue), "a sequence is listed twice"


def _lifetimes(sequence: Sequence) -> Lifetimes:
    arrived_s = sequence.request.arrived_s
    return tuple((wish.tokens, arrived_s + wish.ttl_s) for wish in sequence.request.retain)


def _end(sequence: Sequence) -> End:
    assert sequence.finished is not None
    return End(sequence.id, sequence.request.id, sequence.choice, sequence.finished, sequence.error)


def _undrafted(row: Row, sequence: Sequence, proposal: Proposal) -> str:
    """Why a row that could verify drafts has none: the request, the answer's end, the drafter or governor, or room."""
    if row.drafts or not row.samples or len(row.tokens) > 1:
        return ""
    if sequence.speculate == "off" or sequence.draft_tokens == 0:
        return "disabled"
    if sequence.limit - row.start <= 2:  # one token known beyond `start`, one that is sampled, none to draft
        return "tail"
    if proposal.tokens:
        return "load"
    return proposal.reason
