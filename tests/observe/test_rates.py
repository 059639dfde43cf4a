"""Rates follow the steps they see."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.observe.reports import report, row
from twostroke.observe.rates import LARGE, MeasuredRates


def learn(*steps: tuple[int, float]) -> MeasuredRates:
    rates = MeasuredRates()
    for positions, took_s in steps:
        rates(report(row(computed=positions), took_s=took_s))
    return rates


def test_nothing_is_known_before_the_first_step() -> None:
    rates = MeasuredRates()
    assert rates.prefill_s(100) == 0
    assert rates.step_s(1) is None


def test_prefill_is_the_rate_of_large_steps() -> None:
    rates = learn((100, 1.0), (1, 0.05), (100, 1.0))
    assert rates.prefill_s(50) == pytest.approx(0.5)


def test_small_steps_say_nothing_about_prefill() -> None:
    assert learn((LARGE - 1, 1.0)).prefill_s(10) == 0


def test_a_step_is_priced_by_the_nearest_size_seen() -> None:
    rates = learn((1, 0.1), (100, 2.0))
    assert rates.step_s(1) == pytest.approx(0.1)
    assert rates.step_s(2) == pytest.approx(0.1)
    assert rates.step_s(300) == pytest.approx(2.0)


def test_empty_and_instant_steps_teach_nothing() -> None:
    rates = learn((0, 1.0), (5, 0.0))
    assert rates.step_s(5) is None


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=50))
def test_a_mean_stays_within_what_was_seen(times: list[float]) -> None:
    rates = learn(*[(1, t) for t in times])
    found = rates.step_s(1)
    assert found is not None
    assert min(times) - 1e-9 <= found <= max(times) + 1e-9


def test_old_steps_are_forgotten() -> None:
    rates = learn(*[(64, 1.0)] * 50, *[(64, 2.0)] * 200)
    assert rates.prefill_s(64) == pytest.approx(2.0, rel=0.01)
    assert rates.step_s(64) == pytest.approx(2.0, rel=0.01)
