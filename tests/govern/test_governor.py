from dataclasses import replace

import pytest

from tests.govern.clock import TRUTH
from tests.govern.views import Engine, FakeSequence, draft, line, step
from twostroke.govern.cost import CostCurves
from twostroke.govern.governor import PLAIN_EVERY, TOGETHER, CostGovernor, Settings
from twostroke.types import End, FinishReason, Proposal

GOOD = [0.95**i for i in range(1, 9)]


def paid(*sequences, curves=TRUTH, **choices):
    """A governor whose sequences have gained enough to try anything."""
    governor = CostGovernor(curves, Settings(**choices))
    for sequence in sequences:
        governor.accounts.book(sequence, 0.05, 0.0, 10.0)
    governor.accounts.book_machine(0.05, 0.0, 10.0)
    return governor


def test_good_drafts_are_taken_with_their_survival_and_source():
    limits = paid(1).price([draft(1, *GOOD)], Engine([FakeSequence(1)]))
    taken = limits.drafts[1]
    assert 3 <= len(taken.tokens) <= 8
    assert taken.tokens == tuple(range(1, len(taken.tokens) + 1))
    assert taken.survival == tuple(GOOD[: len(taken.tokens)])
    assert taken.source == "ngram"


def test_unlikely_drafts_are_dropped_for_low_acceptance():
    limits = paid(1).price([draft(1, 0.01, 0.001)], Engine([FakeSequence(1)]))
    assert limits.drafts[1] == Proposal(1, source="ngram", reason="low_acceptance")


def test_drafts_that_would_pay_alone_but_not_here_are_dropped_for_load():
    seats = [FakeSequence(i) for i in range(16)]
    governor = paid(*range(16), sequences=32)
    limits = governor.price([draft(i, 0.2) for i in range(16)], Engine(seats))
    assert {p.reason for p in limits.drafts.values()} == {"load"}


def test_a_neighbour_that_cannot_bear_it_is_load_too():
    governor = paid(1)
    limits = governor.price([draft(1, *GOOD)], Engine([FakeSequence(1), FakeSequence(2, speculate="off")]))
    assert limits.drafts[1] == Proposal(1, source="ngram", reason="load")


def test_empty_proposals_pass_with_their_reason():
    empty = [Proposal(1, reason="no_match"), Proposal(2, reason="tail")]
    limits = paid(1).price(empty, Engine([FakeSequence(1), FakeSequence(2)]))
    assert limits.drafts == {1: empty[0], 2: empty[1]}


def test_without_a_word_from_drafters_the_limits_stand():
    limits = CostGovernor(TRUTH, Settings(tokens=256, sequences=5)).price([], Engine())
    assert (limits.tokens, limits.sequences, limits.drafts) == (256, 5, {})


def test_drafts_come_on_top_of_the_budget_so_that_no_prompt_waits_for_them():
    governor = paid(1, 2)
    view = Engine([FakeSequence(1), FakeSequence(2, ready=False)], prefilling=900)
    plain = governor.price([], view).tokens
    limits = governor.price([draft(1, *GOOD)], view)
    assert limits.tokens == plain + len(limits.drafts[1].tokens)
    assert len(limits.drafts[1].tokens) > 0


def test_beside_a_long_prompt_the_step_is_sized_by_time():
    governor = paid(1, step_ms=100.0)
    tokens = governor.price([], Engine([FakeSequence(1), FakeSequence(2, ready=False)], prefilling=900)).tokens
    assert TRUTH.step(tokens) <= 0.1 < TRUTH.step(tokens + 2)


@pytest.mark.parametrize(("entering", "rows"), [(0, 1), (20, 21), (900, 60)])
def test_who_is_about_to_be_admitted_counts_as_far_as_the_budget_goes(entering, rows):
    view = Engine([FakeSequence(1)], entering=entering)
    assert paid(1)._load([FakeSequence(1)], view, 60).rows == rows
    full = paid(1, sequences=1)
    assert full._load([FakeSequence(1)], view, 60).rows == 1


def test_a_prompt_that_is_read_pays_no_more_than_its_share():
    """Its account is new and empty: the step it shares may grow by a hundredth for drafts."""
    governor = paid(1)
    view = Engine([FakeSequence(1), FakeSequence(2, ready=False)], prefilling=900)
    limits = governor.price([draft(1, *GOOD)], view)
    rows = limits.tokens - len(limits.drafts[1].tokens)
    assert TRUTH.step(limits.tokens) <= 1.02 * TRUTH.step(rows)


def test_accepted_drafts_open_the_purse_and_failures_close_it():
    governor = CostGovernor(TRUTH)
    view = Engine([FakeSequence(1)])
    shy = len(governor.price([draft(1, *GOOD)], view).drafts[1].tokens)
    for _ in range(3):
        governor.observe(step(line(1, 2, 2), seconds=TRUTH.step(3)))
    bold = len(governor.price([draft(1, *GOOD)], view).drafts[1].tokens)
    for _ in range(100):
        governor.observe(step(line(1, 8, 0), seconds=TRUTH.step(9)))
    broke = len(governor.price([draft(1, *GOOD)], view).drafts[1].tokens)
    assert bold > shy > broke == 0


@pytest.mark.parametrize(
    "last", [step(line(1, finished=FinishReason.STOP)), step(ended=(End(1, "request-1", 0, FinishReason.ABORT),))]
)
def test_nothing_is_kept_of_a_sequence_that_ended(last):
    governor = paid(1)
    governor.observe(last)
    assert governor.accounts.free(1) == 0.0
    assert not governor.accounts._accounts


def test_costs_follow_the_machine():
    governor = CostGovernor(TRUTH)
    for _ in range(100):
        governor.observe(step(line(1), seconds=1.33 * TRUTH.step(1, 100)))
    assert governor.curves.step(1, 100) == pytest.approx(1.33 * TRUTH.step(1, 100), rel=0.03)
    assert governor.explain()["machine_scale"] == pytest.approx(1.33, rel=0.03)


def test_settled_costs_learn_of_several_steps_together_and_of_each():
    together = CostGovernor(TRUTH)
    one_by_one = TRUTH
    for n in range(TOGETHER):
        assert together.curves is TRUTH
        seconds = (1 + n / 100) * TRUTH.step(1, 100)
        together.observe(step(line(1), seconds=seconds))
        one_by_one = one_by_one.refine(1, 100, seconds)
    assert together.curves.seen == one_by_one.seen
    assert together.curves.step(1, 100) == pytest.approx(one_by_one.step(1, 100), rel=1e-9)


def test_unsettled_costs_learn_of_every_step_at_once():
    governor = CostGovernor(replace(TRUTH, seen=0))
    governor.observe(step(line(1), seconds=1.1 * TRUTH.step(1, 100)))
    assert governor.curves.seen == 1


def test_a_step_that_computed_nothing_teaches_nothing():
    governor = CostGovernor(TRUTH)
    governor.observe(step(seconds=3.0))
    assert governor.curves is TRUTH


def test_now_and_then_a_step_goes_without_drafts_and_says_that_it_measures():
    governor = paid(1)
    reasons = []
    for _ in range(2 * PLAIN_EVERY + 2):
        limits = governor.price([draft(1, *GOOD)], Engine([FakeSequence(1)]))
        reasons.append(limits.drafts[1].reason)
    assert reasons == ([""] * PLAIN_EVERY + ["measuring"]) * 2


def test_a_proposal_for_a_sequence_that_is_gone_is_harmless():
    limits = paid(1).price([draft(7, *GOOD), draft(1, *GOOD)], Engine([FakeSequence(1)]))
    assert set(limits.drafts) == {1, 7}


def test_longer_contexts_make_verification_cheaper_by_comparison():
    """Keys and values are read once for all rows of a sequence, so drafts pay even where weights alone say no."""
    curves = CostCurves(step_ms={1: 50.0, 2: 65.0}, step_ms_by_context={0: 50.0, 10_000: 150.0})
    short = paid(1, curves=curves).price([draft(1, 0.2)], Engine([FakeSequence(1, context=10)]))
    long = paid(1, curves=curves).price([draft(1, 0.2)], Engine([FakeSequence(1, context=10_000)]))
    assert (len(short.drafts[1].tokens), len(long.drafts[1].tokens)) == (0, 1)


def test_what_it_promises_is_counted_beside_what_comes():
    governor = paid(1)
    taken = governor.price([draft(1, *GOOD)], Engine([FakeSequence(1)])).drafts[1]
    governor.observe(step(line(1, len(taken.tokens), 2), seconds=TRUTH.step(1 + len(taken.tokens))))
    told = governor.explain()
    assert told["expected_accepted"] == pytest.approx(sum(taken.survival))
    assert told["accepted"] == 2
    assert told["acceptance"] == {"ngram": pytest.approx(2 / len(taken.tokens))}


def test_no_step_holds_more_drafts_than_the_runner_has_room_for():
    governor = paid(1, 2, curves=CostCurves(step_ms={1: 50.0, 64: 51.0}), drafts=5)
    limits = governor.price([draft(1, *GOOD), draft(2, *GOOD)], Engine([FakeSequence(1), FakeSequence(2)]))
    assert sum(len(p.tokens) for p in limits.drafts.values()) == 5


def test_passes_of_a_draft_model_are_charged_before_they_are_made():
    governor = CostGovernor(replace(TRUTH, draft_ms={1: 5.0}))
    assert governor.spend(0.005, 0.001)
    before = governor.accounts.machine
    assert governor.spend(0.005, 0.001)
    assert governor.accounts.machine == pytest.approx(before - 0.005)


def test_passes_that_could_not_be_borne_in_vain_are_not_made():
    governor = CostGovernor(replace(TRUTH, draft_ms={1: 5.0}))
    asked = 0
    while governor.spend(0.005, 0.001):
        asked += 1
        assert asked < 1000
    left = governor.accounts.machine
    assert asked > 0
    assert left > -0.001  # never below what a step's share can make good
    assert not governor.spend(0.005, 0.001)
    assert governor.accounts.machine == left


def test_the_time_of_a_lookup_is_not_charged():
    governor = CostGovernor(TRUTH)
    governor.observe(step(line(1), draft_s=0.02))
    assert governor.accounts.machine >= 0.0
