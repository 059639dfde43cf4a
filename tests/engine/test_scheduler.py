"""Who is served, in which order, with what memory."""

from __future__ import annotations

from typing import Any

import pytest

from twostroke.cache.keys import Group
from twostroke.cache.policy import LeastRecentlyUsed
from twostroke.cache.space import GroupSpace
from twostroke.cache.table import Store, Table
from twostroke.engine.scheduler import SCORED, Scheduler
from twostroke.engine.sequence import Sequence
from twostroke.engine.step import Plan
from twostroke.types import (
    Admission,
    FinishReason,
    Limits,
    Logprobs,
    Picks,
    Proposal,
    Request,
    SequenceReport,
    TokenLogprob,
)

B = 4


class Desk:
    """A scheduler and a target that always chooses 0."""

    def __init__(self, blocks: int = 64, spare: int = 0) -> None:
        self.space = GroupSpace(Store(Group("target"), blocks, spare), B, LeastRecentlyUsed())
        self.scheduler = Scheduler(self.space)
        self.count = 0
        self.reports: list[SequenceReport] = []

    def add(self, prompt: int, max_tokens: int = 100, shared: bool = False, **fields: Any) -> Sequence:
        """A request whose prompt has so many tokens, equal to others' when `shared`."""
        first = 0 if shared else 1000 * (self.count + 1)
        text = tuple(range(first, first + prompt))
        request = Request(f"r{self.count}", text, max_tokens, **fields)
        limit = min(prompt + max_tokens, self.space.capacity)
        sequences = [Sequence(self.count + choice, request, choice, limit) for choice in range(request.choices)]
        self.count += len(sequences)
        for sequence in sequences:
            self.scheduler.add(sequence)
        return sequences[0]

    def step(self, tokens: int = 64, sequences: int = 8, drafts: dict[int, int] | None = None) -> Plan:
        """Plan and commit one step; `drafts` are depths by sequence id, none of them right."""
        proposals = {i: Proposal(i, (9,) * depth, (0.5,) * depth, "x") for i, depth in (drafts or {}).items()}
        plan = self.scheduler.plan(Limits(tokens, sequences, proposals))
        self.check()
        picks = [Picks((0,) * row.samples) for row in plan.rows]
        self.reports.extend(self.scheduler.commit(plan, picks))
        self.check()
        self.scheduler.check()
        return plan

    def check(self) -> None:
        self.space.check()

    def shares(self, plan: Plan) -> dict[int, int]:
        return {row.sequence: len(row.tokens) for row in plan.rows}


class TestOrder:
    def test_a_prompt_is_read_in_chunks_and_sampled_at_its_end(self) -> None:
        desk = Desk()
        desk.add(10)
        rows = [desk.step(tokens=4).rows[0] for _ in range(4)]
        assert [(row.start, len(row.tokens), row.samples) for row in rows] == [
            (0, 4, 0),
            (4, 4, 0),
            (8, 2, 1),
            (10, 1, 1),
        ]

    def test_running_decodes_go_before_prefills(self) -> None:
        desk = Desk()
        first = desk.add(4)
        desk.step()
        second = desk.add(40)
        for _ in range(5):
            assert desk.shares(desk.step(tokens=4)) == {first.id: 1, second.id: 3}

    def test_several_prefills_share_what_is_left_in_order_of_arrival(self) -> None:
        desk = Desk()
        a, b, c = desk.add(6), desk.add(6), desk.add(6)
        assert desk.shares(desk.step(tokens=10)) == {a.id: 6, b.id: 4}
        assert desk.shares(desk.step(tokens=10)) == {a.id: 1, b.id: 2, c.id: 6}

    def test_no_more_run_than_the_limit(self) -> None:
        desk = Desk()
        a, b, c = desk.add(4), desk.add(4), desk.add(4, max_tokens=1)
        assert set(desk.shares(desk.step(sequences=2))) == {a.id, b.id}
        assert desk.scheduler.waiting == 1
        desk.step(sequences=3)
        assert c.finished is FinishReason.LENGTH

    def test_decodes_take_turns_when_there_are_too_many(self) -> None:
        desk = Desk()
        sequences = [desk.add(3) for _ in range(5)]
        desk.step()
        served = [set(desk.shares(desk.step(tokens=2))) for _ in range(5)]
        counts = [sum(sequence.id in step for step in served) for sequence in sequences]
        assert counts == [2, 2, 2, 2, 2]

    def test_something_runs_however_small_the_limits(self) -> None:
        desk = Desk()
        a = desk.add(3, max_tokens=2)
        for _ in range(6):
            desk.step(tokens=0, sequences=0)
        assert a.finished is FinishReason.LENGTH

    def test_prefilling_counts_known_positions_beyond_one_each(self) -> None:
        desk = Desk()
        desk.add(10)
        desk.step(tokens=4)
        assert desk.scheduler.prefilling == 5
        desk.step()
        assert desk.scheduler.prefilling == 0

    def test_the_next_to_enter_counts_until_it_was_found_not_to_fit(self) -> None:
        desk = Desk(blocks=10)
        assert desk.scheduler.entering == 0
        first = desk.add(20, max_tokens=16)
        desk.step()
        desk.add(24)
        assert desk.scheduler.entering == 24
        desk.step()
        assert (desk.scheduler.waiting, desk.scheduler.entering) == (1, 0)
        desk.scheduler.abort(first.request.id)
        desk.step()
        assert desk.scheduler.waiting == desk.scheduler.entering == 0

    def test_when_somebody_leaves_the_refused_one_may_enter(self) -> None:
        desk = Desk(blocks=10)
        desk.add(20, max_tokens=3)
        desk.step()
        desk.add(24)
        desk.step()
        assert desk.scheduler.entering == 0
        desk.step()
        assert (desk.scheduler.waiting, desk.scheduler.entering) == (1, 24)


class TestDrafts:
    def test_drafts_follow_the_last_known_token(self) -> None:
        desk = Desk()
        a = desk.add(5)
        desk.step()
        (row,) = desk.step(drafts={a.id: 3}).rows
        assert (row.start, row.tokens, row.drafts, row.samples) == (5, (0, 9, 9, 9), 3, 4)
        assert (desk.reports[-1].drafted, desk.reports[-1].accepted, desk.reports[-1].source) == (3, 0, "x")

    def test_a_sequence_that_reads_its_prompt_verifies_nothing(self) -> None:
        desk = Desk()
        a = desk.add(10)
        desk.step(tokens=4, drafts={a.id: 3})
        assert desk.step(drafts={a.id: 3}).rows[0].drafts == 0
        assert desk.step(drafts={a.id: 3}).rows[0].drafts == 3

    def test_drafts_shrink_before_a_decode_is_left_out(self) -> None:
        desk = Desk()
        a, b = desk.add(4), desk.add(4)
        desk.step()
        assert desk.shares(desk.step(tokens=4, drafts={a.id: 8, b.id: 8})) == {a.id: 2, b.id: 2}
        assert desk.shares(desk.step(tokens=2, drafts={a.id: 8, b.id: 8})) == {a.id: 1, b.id: 1}

    def test_drafts_leave_half_to_those_who_wait(self) -> None:
        desk = Desk()
        a = desk.add(4)
        desk.step()
        b = desk.add(40)
        assert desk.shares(desk.step(tokens=9, drafts={a.id: 8})) == {a.id: 5, b.id: 4}

    def test_drafts_never_evict(self) -> None:
        desk = Desk(blocks=6)
        desk.add(15, max_tokens=1)
        desk.step()
        a = desk.add(3)
        desk.step()
        assert desk.space.pool.free == 1
        assert desk.step(drafts={a.id: 12}).rows[0].drafts == 8 - 4
        assert desk.space.evicted == 0

    def test_drafts_never_preempt_nor_keep_their_blocks(self) -> None:
        desk = Desk(blocks=4)
        a, b = desk.add(7), desk.add(7)
        desk.step()
        plan = desk.step(drafts={a.id: 9, b.id: 9})
        assert [row.drafts for row in plan.rows] == [0, 0]
        assert plan.preempted == ()

    def test_drafts_refuse_nobody(self) -> None:
        desk = Desk(blocks=4)
        a = desk.add(3)
        desk.step()
        b = desk.add(6)
        plan = desk.step(drafts={a.id: 12})
        assert [admission.sequence for admission in plan.admitted] == [b.id]
        assert plan.rows[0].drafts < 12

    def test_spare_blocks_hold_drafts_when_the_rest_is_full_of_memories(self) -> None:
        desk = Desk(blocks=6, spare=2)
        desk.add(19, max_tokens=1)
        desk.step()
        a = desk.add(3)
        desk.step()
        assert desk.space.pool.free == 2
        assert desk.step(drafts={a.id: 8}).rows[0].drafts == 8
        assert desk.space.evicted == 0

    @pytest.mark.parametrize(
        ("fields", "depth", "reason"),
        [
            ({}, 3, ""),
            ({"speculate": "off"}, 0, "disabled"),
            ({"draft_tokens": 0}, 0, "disabled"),
            ({"draft_tokens": 1}, 1, ""),
            ({"max_tokens": 2}, 0, "tail"),
            ({"max_tokens": 3}, 1, ""),
        ],
    )
    def test_depth_and_reason(self, fields: dict[str, Any], depth: int, reason: str) -> None:
        desk = Desk()
        a = desk.add(5, **fields)
        desk.step()
        desk.step(drafts={a.id: 3})
        assert (desk.reports[-1].drafted, desk.reports[-1].reason) == (depth, reason)

    def test_the_reason_of_a_drafter_is_passed_on(self) -> None:
        desk = Desk()
        a = desk.add(5)
        desk.step()
        plan = desk.scheduler.plan(Limits(drafts={a.id: Proposal(a.id, reason="no_match")}))
        (report,) = desk.scheduler.commit(plan, [Picks((0,))])
        assert report.reason == "no_match"

    def test_drafts_for_which_there_was_no_room_are_load(self) -> None:
        desk = Desk()
        a = desk.add(5)
        desk.step()
        desk.step(tokens=1, drafts={a.id: 3})
        assert desk.reports[-1].reason == "load"


class TestMemory:
    def test_the_last_admitted_is_preempted_and_goes_to_the_front(self) -> None:
        desk = Desk(blocks=6)
        a, b = desk.add(8), desk.add(8)
        desk.step()
        c = desk.add(2)
        plans = [desk.step() for _ in range(6)]
        preempted = [sequence for plan in plans for sequence in plan.preempted]
        assert preempted == [b.id]
        assert list(desk.scheduler.queue)[:2] == [b, c]
        assert a in desk.scheduler.running

    def test_a_preempted_sequence_resumes_from_what_it_published(self) -> None:
        desk = Desk(blocks=6)
        a, b = desk.add(8, max_tokens=6), desk.add(8, max_tokens=6)
        admitted: list[Admission] = []
        for _ in range(20):
            admitted += desk.step().admitted
        again = [admission for admission in admitted if admission.resumed]
        assert [admission.sequence for admission in again] == [b.id]
        assert again[0].cached > 0
        assert b.cached == 0  # a hit on what it computed itself is none of the client's
        assert (a.finished, b.finished) == (FinishReason.LENGTH, FinishReason.LENGTH)

    def test_admission_counts_uncached_tokens_only(self) -> None:
        desk = Desk(blocks=12)
        for _ in range(4):
            desk.add(33, shared=True)
        assert len(desk.step().admitted) == 1
        assert len(desk.step().admitted) == 3

    def test_admission_leaves_running_sequences_their_tails(self) -> None:
        desk = Desk(blocks=4)
        desk.add(6)
        desk.step()
        desk.add(5)
        assert len(desk.step().admitted) == 1
        desk = Desk(blocks=4)
        desk.add(8)
        desk.step()
        desk.add(8)
        assert desk.step().admitted == ()

    def test_the_head_of_the_queue_is_not_overtaken(self) -> None:
        desk = Desk(blocks=6)
        desk.add(13, max_tokens=3)
        desk.step()
        big, small = desk.add(12), desk.add(1)
        assert desk.step().admitted == ()
        order = [admission.sequence for _ in range(4) for admission in desk.step().admitted]
        assert order[:2] == [big.id, small.id]

    def test_a_refused_head_is_not_matched_again_until_somebody_leaves(self, monkeypatch: pytest.MonkeyPatch) -> None:
        desk = Desk(blocks=6)
        first = desk.add(13, max_tokens=10)
        desk.step()
        desk.add(12)
        calls: list[str] = []
        match = desk.space.match

        def counted(*arguments: Any) -> Table:
            calls.append(arguments[1])
            return match(*arguments)

        monkeypatch.setattr(desk.space, "match", counted)
        for _ in range(7):
            desk.step()
        assert len(calls) == 1
        while not first.finished:
            desk.step()
        assert desk.step().admitted
        assert len(calls) == 3  # once more after eight steps, for what others may have published by then

    def test_a_sequence_as_long_as_the_memory_is_served(self) -> None:
        desk = Desk(blocks=4)
        a = desk.add(15)
        while not a.finished:
            desk.step()
        assert len(a.tokens) == 16

    @pytest.mark.parametrize("length", range(1, 16))
    def test_a_partial_hit_never_keeps_a_sequence_from_fitting(self, length: int) -> None:
        desk = Desk(blocks=4)
        desk.add(length, max_tokens=1, shared=True)
        desk.step()
        again = desk.add(15, shared=True)
        while not again.finished:
            assert desk.step().rows
        assert len(again.tokens) == 16

    def test_a_step_in_which_memory_ran_out_admits_nobody(self) -> None:
        desk = Desk(blocks=6)
        desk.add(8)
        desk.add(8)
        plans = [desk.step() for _ in range(9)]
        assert any(plan.preempted for plan in plans)
        assert not any(plan.preempted and plan.admitted for plan in plans)

    def test_a_prompt_waits_for_the_block_another_is_about_to_compute(self) -> None:
        desk = Desk()
        desk.add(22, shared=True)
        follower = desk.add(30, shared=True)
        apart = desk.add(9)
        plans = [desk.step(tokens=8) for _ in range(4)]
        assert [[a.sequence for a in plan.admitted] for plan in plans] == [[0], [], [], [follower.id]]
        assert plans[3].admitted[0].cached == 20
        assert desk.step(tokens=20).admitted[0].sequence == apart.id

    @pytest.mark.parametrize("fields", [{"namespace": "b"}, {"prefix_cache": False}])
    def test_who_could_not_reuse_a_block_does_not_wait_for_it(self, fields: dict[str, Any]) -> None:
        desk = Desk()
        desk.add(22, shared=True)
        desk.add(22, shared=True, **fields)
        assert len(desk.step().admitted) == 2

    def test_choices_wait_for_the_first_and_share_its_prompt(self) -> None:
        desk = Desk()
        desk.add(13, choices=3)
        first = desk.step()
        assert [admission.choice for admission in first.admitted] == [0]
        second = desk.step()
        assert [(admission.choice, admission.cached) for admission in second.admitted] == [(1, 12), (2, 12)]

    def test_choices_that_may_not_share_do_not_wait(self) -> None:
        desk = Desk()
        desk.add(13, choices=3, prefix_cache=False)
        assert [(a.choice, a.cached) for a in desk.step().admitted] == [(0, 0), (1, 0), (2, 0)]


class TestEnds:
    def test_an_abort_frees_everything_at_the_next_plan(self) -> None:
        desk = Desk()
        desk.add(10, choices=2)
        waiting = desk.add(10)
        desk.step(sequences=1)
        desk.scheduler.abort("r0")
        desk.scheduler.abort(waiting.request.id)
        desk.scheduler.abort("nobody")
        plan = desk.step()
        assert [(end.request, end.choice, end.reason) for end in plan.ended] == [
            ("r0", 0, FinishReason.ABORT),
            ("r0", 1, FinishReason.ABORT),
            (waiting.request.id, 0, FinishReason.ABORT),
        ]
        assert plan.rows == ()
        assert not any(desk.space.pool.holders)

    def test_what_an_aborted_sequence_had_computed_can_be_found(self) -> None:
        desk = Desk()
        a = desk.add(20, shared=True)
        desk.step(tokens=10)
        desk.scheduler.abort(a.request.id)
        desk.step()
        desk.add(20, shared=True)
        assert desk.step().admitted[0].cached == 10

    def test_a_failed_step_ends_those_in_it_and_nobody_else(self) -> None:
        desk = Desk()
        a, b = desk.add(8), desk.add(30)
        desk.step(sequences=1)
        plan = desk.scheduler.plan(Limits(64, 1))
        assert [row.sequence for row in plan.rows] == [a.id]
        ends = desk.scheduler.fail("out of luck")
        assert [(end.sequence, end.reason, end.error) for end in ends] == [(a.id, FinishReason.ERROR, "out of luck")]
        assert not any(desk.space.pool.holders)
        desk.check()
        assert [row.sequence for row in desk.step().rows] == [b.id]

    def test_a_failed_step_publishes_nothing_of_its_own(self) -> None:
        desk = Desk()
        desk.add(20, shared=True)
        desk.step(tokens=10)
        desk.scheduler.plan(Limits(64))
        desk.scheduler.fail("out of luck")
        desk.add(20, shared=True)
        assert desk.step().admitted[0].cached == 8  # whole blocks of the step that succeeded

    def test_a_failed_step_leaves_no_copy_pending(self) -> None:
        desk = Desk()
        desk.add(10, max_tokens=1, shared=True)
        desk.step()
        desk.add(8, shared=True)
        plan = desk.scheduler.plan(Limits(64))
        assert plan.rows[0].copies
        desk.scheduler.fail("out of luck")
        desk.check()
        assert not any(desk.space.pool.holders)

    def test_logprobs_are_cut_with_the_tokens(self) -> None:
        desk = Desk()
        desk.add(3, max_tokens=9, stop_ids=frozenset({7}))
        desk.step()
        plan = desk.scheduler.plan(Limits(drafts={0: Proposal(0, (7, 8), (0.5, 0.5), "x")}))
        logprobs = tuple(Logprobs(TokenLogprob(token, -0.1), ()) for token in (7, 8, 9))
        (report,) = desk.scheduler.commit(plan, [Picks((7, 8, 9), logprobs)])
        assert (report.emitted, report.logprobs) == ((7,), logprobs[:1])
        assert (report.finished, report.drafted, report.accepted) == (FinishReason.STOP, 2, 0)

    def test_passes_and_accepted_drafts_add_up_to_tokens(self) -> None:
        desk = Desk()
        a = desk.add(3, max_tokens=20)
        for _ in range(10):
            plan = desk.scheduler.plan(Limits(drafts={a.id: Proposal(a.id, (0, 0, 0), (0.9,) * 3, "x")}))
            desk.reports += desk.scheduler.commit(plan, [Picks((0,) * row.samples) for row in plan.rows])
            if a.finished:
                break
        passes = sum(1 for report in desk.reports if report.emitted)
        assert passes + sum(report.accepted for report in desk.reports) == 20 == len(a.tokens) - 3


class TestCheck:
    def test_it_sees_a_sequence_that_computed_what_it_cannot_know(self) -> None:
        desk = Desk()
        a = desk.add(5)
        desk.step()
        a.computed = len(a.tokens)
        with pytest.raises(AssertionError, match="cannot know"):
            desk.scheduler.check()

    def test_it_sees_a_waiting_sequence_that_holds_blocks(self) -> None:
        desk = Desk()
        a = desk.add(5)
        desk.step()
        desk.scheduler.running.remove(a)
        desk.scheduler.queue.append(a)
        with pytest.raises(AssertionError, match="waits and holds"):
            desk.scheduler.check()


class TestAdmission:
    def test_lower_priorities_are_admitted_first_and_equals_in_order_of_arrival(self) -> None:
        desk = Desk()
        sequences = [desk.add(4, 2, priority=priority) for priority in (0, 5, 0, -1, -1)]
        assert list(desk.scheduler.queue) == [sequences[i] for i in (3, 4, 0, 2, 1)]

    def test_a_step_scores_a_bounded_number_of_prompt_tokens(self) -> None:
        desk = Desk()
        for _ in range(2):
            desk.add(100, 2, prompt_logprobs=0)
        while desk.scheduler.queue or desk.scheduler.running:
            plan = desk.scheduler.plan(Limits(tokens=512))
            assert 0 <= sum(len(row.scores) for row in plan.rows) <= SCORED
            assert plan.rows
            picks = [Picks((0,) * row.samples, scores=(LOGPROBS,) * len(row.scores)) for row in plan.rows]
            desk.reports += desk.scheduler.commit(plan, picks)
        told = [sum(len(r.scores) for r in desk.reports if r.sequence == s) for s in {r.sequence for r in desk.reports}]
        assert told == [99, 99]


LOGPROBS = Logprobs(TokenLogprob(0, -1.0), ())
