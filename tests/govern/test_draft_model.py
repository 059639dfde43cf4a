import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.govern.cost import CostCurves
from twostroke.govern.draft_model import PROBE_DEPTH, PROBES, DepthChooser, best_depths, gain
from twostroke.govern.formulas import whatif

STEPS = {1: 50.0, 2: 51.5, 4: 54.0, 8: 72.0, 16: 120.0, 64: 450.0}
CHEAP = CostCurves(step_ms=STEPS, draft_ms={1: 5.0, 8: 8.0})
DEAR = CostCurves(step_ms=STEPS, draft_ms={1: 45.0})
LINEAR = CostCurves(step_ms={1: 100.0, 21: 200.0}, draft_ms={1: 10.0})  # verify 0.05, cost 0.1


def survival(alpha, count=16):
    return tuple(alpha**i for i in range(1, count + 1))


@pytest.mark.parametrize("alpha", [0.5, 0.6, 0.7, 0.8])
def test_alone_and_without_rivals_the_depth_is_the_formulas(alpha):
    assert best_depths({1: survival(alpha)}, {}, LINEAR) == {1: whatif(alpha, 0.1, 0.05).best_k}


def test_a_dear_model_is_not_asked():
    assert best_depths({1: survival(0.6)}, {}, DEAR) == {}
    assert best_depths({1: survival(0.6)}, {}, CHEAP) != {}


def test_what_is_to_be_had_for_nothing_is_preferred():
    assert best_depths({1: survival(0.6)}, {1: 4.0}, CHEAP) == {}


def test_only_those_who_gain_are_drafted_for():
    depths = best_depths({1: survival(0.9), 2: survival(0.3), 3: ()}, {1: 0.0, 2: 1.0}, CHEAP)
    assert set(depths) == {1}


def test_no_one_goes_deeper_than_it_can():
    depths = best_depths({1: survival(0.95, 2), 2: survival(0.95, 8)}, {}, CHEAP)
    assert depths[1] == 2
    assert 2 < depths[2] <= 8


def test_where_it_pays_it_is_asked_every_time():
    worth = DepthChooser(lambda: CHEAP)
    assert all(worth({1: survival(0.8)}, {}) for _ in range(20))


def test_where_it_does_not_it_is_probed_for_a_hundredth_of_the_time():
    worth = DepthChooser(lambda: CHEAP)
    steps = 5000
    probes = [depths for _ in range(steps) if (depths := worth({1: survival(0.01)}, {}))]
    assert probes[0] == {1: PROBE_DEPTH}
    cost = PROBE_DEPTH * CHEAP.draft(1) + CHEAP.step(1 + PROBE_DEPTH) - CHEAP.step(1)
    assert 0 < len(probes) * cost <= PROBES * steps * CHEAP.step(1) * 1.01


def test_probes_take_turns():
    worth = DepthChooser(lambda: CHEAP)
    survivals = {3: survival(0.01), 7: survival(0.01), 9: survival(0.01)}
    probed = [next(iter(depths)) for _ in range(3000) if (depths := worth(survivals, {}))]
    assert probed[:6] == [3, 7, 9, 3, 7, 9]


def test_costs_are_read_as_they_are_now():
    now = [DEAR]
    worth = DepthChooser(lambda: now[0])
    assert worth({1: survival(0.6)}, {}) == {}
    now[0] = CHEAP
    assert worth({1: survival(0.6)}, {})


def test_nobody_to_draft_for_is_no_error():
    assert DepthChooser(lambda: CHEAP)({}, {}) == {}
    assert best_depths({}, {}, CHEAP) == {}


@given(
    st.dictionaries(st.integers(0, 5), st.floats(0, 1).map(survival), max_size=4),
    st.dictionaries(st.integers(0, 5), st.floats(0, 8), max_size=4),
)
def test_depths_are_positive_and_within_what_is_hoped_for(survivals, rivals):
    for sequence, depth in best_depths(survivals, rivals, CHEAP).items():
        assert 1 <= depth <= len(survivals[sequence])
        assert sum(survivals[sequence][:depth]) > rivals.get(sequence, 0.0)


def test_what_cannot_be_afforded_is_not_asked_for_and_what_is_asked_for_is_told():
    bills = []

    def spend(passes_s, checks_s):
        bills.append((passes_s, checks_s))
        return len(bills) > 1

    curves = CHEAP
    worth = DepthChooser(lambda: curves, spend)
    survivals = {1: (0.95, 0.9, 0.85)}
    assert worth(survivals, {}) == {}
    depths = worth(survivals, {})
    assert depths
    assert bills[1][0] == pytest.approx(depths[1] * curves.draft(1))
    assert bills[1][1] > 0


def test_the_gain_to_be_had_is_a_share_of_the_time_and_none_where_nothing_comes_true():
    assert gain((0.05, 0.0), CHEAP) == 0.0
    assert 0.0 < gain((0.9, 0.8), CHEAP) < gain((0.99, 0.98), CHEAP) < 1.0
