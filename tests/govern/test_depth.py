import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.govern.views import draft
from twostroke.govern.account import DraftBudget
from twostroke.govern.cost import CostCurves
from twostroke.govern.depth import LEAST, MARGIN, Load, Queue, choose, least_paying
from twostroke.types import Proposal

CURVES = CostCurves(step_ms={1: 50.0, 4: 53.0, 8: 73.0, 64: 465.0}, prefill_tokens_per_s=140.0)
SURVIVAL = st.lists(st.floats(0, 1), max_size=4).map(lambda s: tuple(sorted(s, reverse=True)))
STEP_MS = st.lists(st.floats(0.5, 30), min_size=2, max_size=12).map(
    lambda added: dict(enumerate(itertools.accumulate([50.0, *added]), 1))
)


def rich():
    return DraftBudget(1e9, {}, 0.0)


def one(*survival, answering=1, rows=None, draft_budget=None, drafting=True, curves=CURVES):
    load = Load(rows or answering, 100, answering)
    return choose([draft(1, *survival)], load, curves, draft_budget or rich(), drafting)


def rate(curves, load, survivals):
    return (load.answering + sum(survivals)) / curves.step(load.rows + len(survivals), load.context)


@given(st.lists(SURVIVAL, min_size=1, max_size=4), STEP_MS, st.integers(0, 4))
def test_no_other_depths_give_more_tokens_per_second(survivals, step_ms, more):
    """Against every combination of depths; the order by tenths may cost a little, never more than a tenth of a token
    for each draft."""
    curves = CostCurves(step_ms=step_ms, prefill_tokens_per_s=50.0)
    load = Load(len(survivals) + more, 0, len(survivals))
    proposals = [draft(id, *survival) for id, survival in enumerate(survivals)]
    chosen = choose(proposals, load, curves, rich(), drafting=True).by_sequence
    taken = [s for id, survival in enumerate(survivals) for s in survival[: chosen.get(id, 0)]]
    best = max(
        rate(curves, load, [s for survival, depth in zip(survivals, depths, strict=True) for s in survival[:depth]])
        for depths in itertools.product(*(range(len(s) + 1) for s in survivals))
    )
    slack = 0.1 * max(1, sum(map(len, survivals))) / curves.step(load.rows, 0)
    assert rate(curves, load, taken) >= best - slack
    assert rate(curves, load, taken) >= rate(curves, load, [])


@given(st.lists(st.floats(LEAST, 1), min_size=1, max_size=6).map(lambda s: sorted(s, reverse=True)), STEP_MS)
def test_for_one_sequence_the_depth_is_the_best_exactly(survival, step_ms):
    curves = CostCurves(step_ms=step_ms, prefill_tokens_per_s=50.0)
    depth = one(*survival, curves=curves).by_sequence.get(1, 0)
    rates = [rate(curves, Load(1, 100, 1), survival[:k]) for k in range(len(survival) + 1)]
    assert rates[depth] == pytest.approx(max(rates))


def test_nothing_is_a_normal_answer():
    assert one(0.01, 0.001).by_sequence == {}
    assert one().by_sequence == {}
    assert choose([], Load(1, 0, 1), CURVES, rich(), True).by_sequence == {}


def test_a_draft_that_hardly_ever_comes_true_is_not_taken_though_it_cost_nothing():
    free = CostCurves(step_ms={1: 50.0, 64: 50.0})
    assert one(LEAST, 0.9 * LEAST, curves=free).by_sequence == {1: 1}


def test_likely_drafts_go_deep_and_unlikely_ones_do_not():
    deep = one(*[0.95**i for i in range(1, 17)]).by_sequence[1]
    shallow = one(*[0.4**i for i in range(1, 17)]).by_sequence[1]
    assert shallow < deep <= 16


def test_a_dear_row_is_paid_for_when_those_after_it_are_cheap():
    """A kernel tile: the second row costs as much as the next three together."""
    stairs = CostCurves(step_ms={1: 50.0, 2: 85.0, 5: 86.0, 6: 150.0}, prefill_tokens_per_s=15.0)
    assert one(0.6, curves=stairs).by_sequence == {}
    assert one(0.6, 0.5, 0.45, 0.4, curves=stairs).by_sequence == {1: 4}


def test_load_leaves_fewer_drafts():
    survival = [0.7**i for i in range(1, 9)]
    depths = [one(*survival, answering=n).by_sequence.get(1, 0) for n in (1, 4, 8, 32)]
    assert depths == sorted(depths, reverse=True)
    assert depths[0] > depths[-1]


def test_what_is_expected_is_reported():
    depths = one(0.9, 0.8)
    assert depths.accepted == pytest.approx(1.7)
    assert depths.step_s == CURVES.step(1, 100)
    assert depths.extra_s == pytest.approx(CURVES.step(3, 100) - CURVES.step(1, 100))


def test_leaving_zero_asks_for_a_gain_that_staying_does_not():
    curves = CostCurves(step_ms={1: 100.0, 2: 110.0})
    barely = 0.1 + (MARGIN - 1) / 2
    assert one(barely, curves=curves, drafting=False).by_sequence == {}
    assert one(barely, curves=curves, drafting=True).by_sequence == {1: 1}
    assert one(barely + 0.05, curves=curves, drafting=False).by_sequence == {1: 1}


def test_the_machines_purse_is_a_hard_bound():
    survival = [0.99] * 16
    for most in (0.0, 0.0005, 0.002, 0.01):
        depths = one(*survival, draft_budget=DraftBudget(most, {1: 10.0}, 0.05))
        assert depths.extra_s <= most
    assert one(*survival, draft_budget=DraftBudget(0.0, {1: 10.0}, 0.05)).by_sequence == {}


def test_who_drafts_nothing_bounds_the_step_for_the_others():
    load = Load(2, 100, 2)
    poor = choose([draft(1, *[0.99] * 8)], load, CURVES, DraftBudget(1.0, {1: 1.0, 2: 0.0011}, 0.05), True)
    assert poor.by_sequence == {1: 1}
    assert poor.extra_s <= 0.0011


def test_who_cannot_bear_the_step_gets_drafts_of_its_own_first():
    load = Load(2, 100, 2)
    proposals = [draft(1, *[0.95] * 8), draft(2, *[0.5, 0.1])]
    depths = choose(proposals, load, CURVES, DraftBudget(1.0, {1: 1.0, 2: 0.0}, 0.05), True)
    assert depths.by_sequence[2] >= 1
    assert depths.by_sequence[1] >= 1


def test_depths_are_within_the_proposals():
    proposals = [draft(1, 0.9), draft(2, 0.99, 0.98, 0.97), Proposal(3)]
    depths = choose(proposals, Load(3, 100, 3), CURVES, rich(), True).by_sequence
    assert depths == {1: 1, 2: 3}


def drain(queue):
    return list(iter(lambda: queue.take(None), None))


@given(st.lists(SURVIVAL, max_size=5))
def test_the_queue_gives_every_draft_once_each_sequences_in_order(survivals):
    queue = Queue([draft(id, *survival) for id, survival in enumerate(survivals)])
    taken = drain(queue)
    for id, survival in enumerate(survivals):
        assert [s for sequence, s in taken if sequence == id] == list(survival)
    tenths = [int(s * 10) for _, s in taken]
    assert tenths == sorted(tenths, reverse=True)


def test_among_the_about_equally_likely_the_earlier_proposal_goes_first():
    assert [s for s, _ in drain(Queue([draft(5, 0.83, 0.82), draft(6, 0.89)]))] == [5, 5, 6]


def test_a_draft_never_counts_as_likelier_than_those_before_it():
    assert drain(Queue([draft(1, 0.3, 0.9)])) == [(1, 0.3), (1, 0.3)]


@given(st.lists(SURVIVAL, max_size=5), st.lists(st.integers(0, 6), max_size=20))
def test_taking_out_of_turn_loses_none(survivals, turns):
    queue = Queue([draft(id, *survival) for id, survival in enumerate(survivals)])
    taken = [queue.take(first) for first in turns]
    taken = [t for t in taken if t] + drain(queue)
    assert len(taken) == sum(map(len, survivals))
    for id, survival in enumerate(survivals):
        assert [s for sequence, s in taken if sequence == id] == list(survival)


def test_what_would_pay_alone_is_told_from_what_would_not():
    assert least_paying(0, CURVES) == pytest.approx(1 / 50)
    assert least_paying(0, CostCurves(step_ms={1: 50.0, 2: 75.0})) == pytest.approx(0.5)
    longer = CostCurves(step_ms={1: 50.0, 2: 75.0}, step_ms_by_context={0: 50.0, 1000: 100.0})
    assert least_paying(1000, longer) == pytest.approx(0.25)
