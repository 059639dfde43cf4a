import itertools

import pytest

from tests.govern.views import Engine, Seat, draft, line, step
from twostroke.govern.cost import CostCurves
from twostroke.govern.fixed import FIRST_PAUSE, LONGEST_PAUSE, FixedDepth
from twostroke.types import End, FinishReason, Proposal

HALF = (0.5,) * 8


def depth(governor, sequence=1):
    """How many drafts the governor admits now."""
    limits = governor.price([draft(sequence, *HALF)], Engine([Seat(sequence)]))
    return len(limits.drafts[sequence].tokens)


def live(governor, accepted, steps=1):
    """Steps in which `accepted` drafts of each proposal come true; the depths that were tried."""
    depths = []
    for _ in range(steps):
        depths.append(depth(governor))
        governor.observe(step(line(1, depths[-1], min(accepted, depths[-1]))))
    return depths


def test_drafts_are_cut_to_the_depth_and_keep_their_survival():
    limits = FixedDepth(3).price([draft(1, 0.9, 0.8, 0.7, 0.6)], Engine([Seat(1)]))
    assert limits.drafts[1] == draft(1, 0.9, 0.8, 0.7)


def test_an_empty_proposal_passes_with_its_reason():
    empty = Proposal(1, source="ngram", reason="no_match")
    assert FixedDepth().price([empty], Engine([Seat(1)])).drafts == {1: empty}


def test_while_drafts_come_true_the_depth_stays():
    assert live(FixedDepth(8), accepted=1, steps=50) == [8] * 50


def test_total_rejection_halves_the_depth_down_to_none():
    assert live(FixedDepth(8), accepted=0, steps=9) == [8, 8, 4, 4, 2, 2, 1, 1, 0]


def test_none_gives_a_reason():
    governor = FixedDepth(1)
    live(governor, accepted=0, steps=2)
    assert governor.price([draft(1, 0.5)], Engine([Seat(1)])).drafts[1] == Proposal(
        1, source="ngram", reason="low_acceptance"
    )


def test_from_none_a_single_token_is_tried_after_a_pause_that_doubles():
    depths = live(FixedDepth(8), accepted=0, steps=1000)
    tried = [i for i, d in enumerate(depths) if d and i > 8]
    assert {depths[i] for i in tried} == {1}
    gaps = [b - a for a, b in itertools.pairwise(tried)]
    assert gaps[0] == 2 * FIRST_PAUSE
    assert gaps[-1] == LONGEST_PAUSE
    assert sum(depths[500:]) <= 500 / LONGEST_PAUSE + 1


def test_one_kept_draft_brings_the_full_depth_back():
    governor = FixedDepth(8)
    live(governor, accepted=0, steps=200)
    depths = live(governor, accepted=8, steps=LONGEST_PAUSE + 2)
    assert depths[-1] == 8


def test_sequences_back_off_each_on_its_own():
    governor = FixedDepth(4)
    for _ in range(6):
        depths = [depth(governor, 1), depth(governor, 2)]
        governor.observe(step(line(1, depths[0], 0), line(2, depths[1], depths[1])))
    assert (depth(governor, 1), depth(governor, 2)) == (0, 4)


@pytest.mark.parametrize(
    "last", [step(line(1, 0, finished=FinishReason.STOP)), step(ended=(End(1, "request-1", 0, FinishReason.ABORT),))]
)
def test_nothing_is_kept_of_a_sequence_that_ended(last):
    governor = FixedDepth(4)
    live(governor, accepted=0, steps=9)
    governor.observe(last)
    assert not governor._backoffs
    assert depth(governor) == 4


def test_a_step_beside_answers_is_sized_by_time_and_drafts_come_on_top():
    curves = CostCurves(step_ms={1: 10.0, 64: 60.0}, prefill_tokens_per_s=1000.0)
    governor = FixedDepth(4, curves=curves, step_ms=60.0, tokens=256, sequences=3)
    alone = governor.price([], Engine([Seat(1, ready=False)], prefilling=900))
    beside = governor.price([draft(2, *HALF)], Engine([Seat(1, ready=False), Seat(2)], prefilling=900))
    assert (alone.tokens, alone.sequences) == (256, 3)
    assert beside.tokens == 64 + 4


def test_real_steps_refine_the_costs():
    governor = FixedDepth(4)
    before = governor.curves.step(1)
    for _ in range(100):
        governor.observe(step(line(1), seconds=before * 1.3))
    assert governor.curves.step(1) == pytest.approx(before * 1.3, rel=0.05)
