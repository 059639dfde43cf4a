import math
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.errors import InvalidParameter
from twostroke.govern.cost import CostCurves
from twostroke.govern.formulas import best_k, break_even_alpha, expected_tokens, measured_terms, speedup, whatif

ALPHA = st.floats(0, 1)
TERM = st.floats(0, 2)

# The best number of drafts and its speed-up, by alpha and by cost + verify.
TABLE = {
    0.5: {0.02: (4, 1.79), 0.05: (3, 1.63), 0.10: (2, 1.46), 0.20: (1, 1.25), 0.30: (1, 1.15)},
    0.6: {0.02: (6, 2.17), 0.05: (4, 1.92), 0.10: (3, 1.67), 0.20: (2, 1.40), 0.30: (1, 1.23)},
    0.7: {0.02: (8, 2.76), 0.05: (6, 2.35), 0.10: (4, 1.98), 0.20: (3, 1.58), 0.30: (2, 1.37)},
    0.8: {0.02: (11, 3.82), 0.05: (8, 3.09), 0.10: (6, 2.47), 0.20: (4, 1.87), 0.30: (3, 1.55)},
    0.9: {0.02: (19, 6.37), 0.05: (13, 4.67), 0.10: (10, 3.43), 0.20: (7, 2.37), 0.30: (5, 1.87)},
}


@pytest.mark.parametrize(("alpha", "term"), [(a, t) for a, row in TABLE.items() for t in row])
def test_the_best_depth_and_its_gain_are_the_published_ones(alpha, term):
    answer = whatif(alpha, cost=term / 2, verify=term / 2)
    assert (answer.best_k, round(answer.speedup, 2)) == TABLE[alpha][term]


def test_expected_tokens_is_the_geometric_sum():
    assert expected_tokens(0.5, 3) == pytest.approx(1 + 0.5 + 0.25 + 0.125)
    assert expected_tokens(1.0, 7) == 8.0
    assert expected_tokens(0.0, 7) == 1.0
    assert expected_tokens(0.3, 0) == pytest.approx(1.0)


@given(ALPHA, st.integers(0, 64))
def test_expected_tokens_agrees_with_summing_survival(alpha, k):
    assert expected_tokens(alpha, k) == pytest.approx(sum(alpha**i for i in range(k + 1)), rel=1e-6)


@given(ALPHA, TERM, TERM, st.integers(0, 64))
def test_no_depth_beats_the_best(alpha, cost, verify, k):
    best = best_k(alpha, cost, verify)
    assert speedup(alpha, cost, verify, k) <= speedup(alpha, cost, verify, best)


@given(ALPHA, TERM, TERM)
def test_below_break_even_nothing_is_best_and_above_it_something(alpha, cost, verify):
    even = break_even_alpha(cost, verify)
    if alpha < even - 1e-9:
        assert best_k(alpha, cost, verify) == 0
    elif alpha > even + 1e-9:
        assert best_k(alpha, cost, verify) >= 1


def test_the_answer_has_exactly_the_documented_keys():
    answer = asdict(whatif(0.8, 0.1, 0.05))
    assert list(answer) == ["expected_tokens", "speedup", "best_k", "break_even_alpha"]
    assert answer["break_even_alpha"] == pytest.approx(0.15)


def test_a_depth_that_is_asked_for_is_priced_beside_the_best():
    asked, best = whatif(0.8, 0.1, 0.0, draft_tokens=2), whatif(0.8, 0.1, 0.0)
    assert asked.expected_tokens == pytest.approx(2.44)
    assert asked.speedup == pytest.approx(2.44 / 1.2)
    assert asked.best_k == best.best_k == 6


def test_where_drafting_never_pays_the_best_is_plain_decoding():
    answer = whatif(0.5, 0.4, 0.4)
    assert (answer.best_k, answer.expected_tokens, answer.speedup) == (0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("alpha", (1.1, 0.1, 0.1)),
        ("alpha", (-0.1, 0.1, 0.1)),
        ("alpha", (math.nan, 0.1, 0.1)),
        ("cost", (0.5, -0.1, 0.1)),
        ("cost", (0.5, math.inf, 0.1)),
        ("verify", (0.5, 0.1, -1.0)),
        ("draft_tokens", (0.5, 0.1, 0.1, 65)),
        ("draft_tokens", (0.5, 0.1, 0.1, -1)),
    ],
)
def test_numbers_out_of_range_are_named(name, values):
    with pytest.raises(InvalidParameter, match=name) as caught:
        whatif(*values)
    assert caught.value.param == name


def test_terms_come_from_the_curves_of_this_machine():
    curves = CostCurves(step_ms={1: 50.0, 5: 60.0}, draft_ms={1: 5.0}, step_ms_by_context={0: 50.0, 1000: 100.0})
    assert measured_terms(curves) == pytest.approx((0.1, 0.05))
    assert measured_terms(curves, context=1000) == pytest.approx((0.05, 0.025))
