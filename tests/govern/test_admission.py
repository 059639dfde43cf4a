import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.govern.admission import SMALLEST_CHUNK, step_tokens
from twostroke.govern.cost import CostCurves

FAST = CostCurves(step_ms={1: 10.0, 64: 60.0}, prefill_tokens_per_s=1000.0)


def test_without_running_answers_the_step_is_as_large_as_it_may_be():
    assert step_tokens(FAST, answering=0, context=0, step_ms=150, most=512) == 512


def test_beside_running_answers_a_step_takes_about_step_ms():
    tokens = step_tokens(FAST, answering=2, context=0, step_ms=150, most=512)
    assert 0.149 <= FAST.step(tokens) <= 0.150
    assert tokens == pytest.approx(64 + 90, abs=1)


def test_a_longer_context_leaves_less_room():
    curves = CostCurves(step_ms=FAST.step_ms, step_ms_by_context={0: 10.0, 1000: 30.0}, prefill_tokens_per_s=1000.0)
    assert step_tokens(curves, 1, 2000, 150, 512) == step_tokens(FAST, 1, 0, 110, 512)


def test_a_prompt_moves_even_where_one_row_is_slower_than_the_limit():
    slow = CostCurves(step_ms={1: 500.0})
    assert step_tokens(slow, answering=3, context=0, step_ms=150, most=512) == 3 + SMALLEST_CHUNK


def test_the_full_budget_is_never_passed():
    assert step_tokens(FAST, answering=3, context=0, step_ms=1e9, most=256) == 256
    assert step_tokens(CostCurves(step_ms={1: 500.0}), answering=30, context=0, step_ms=150, most=16) == 16


@given(st.integers(1, 20), st.integers(0, 5000), st.floats(1, 1000), st.floats(1, 1000))
def test_more_time_never_gives_fewer_tokens(answering, context, one, other):
    short, long = sorted((one, other))
    assert step_tokens(FAST, answering, context, short, 512) <= step_tokens(FAST, answering, context, long, 512)
