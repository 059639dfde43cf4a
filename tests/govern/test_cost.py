import itertools
import json
import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.errors import ConfigError
from twostroke.govern.cost import SEED, CostCurves, Line, isotonic

MS = st.floats(0.1, 500, allow_nan=False)
CURVES = st.builds(
    CostCurves,
    step_ms=st.dictionaries(st.integers(1, 64), MS, min_size=1, max_size=8),
    step_ms_by_context=st.dictionaries(st.integers(0, 8192), MS, max_size=5),
    prefill_tokens_per_s=st.floats(1, 5000),
)


@given(CURVES, st.integers(1, 600), st.integers(0, 600), st.integers(0, 9000), st.integers(0, 9000))
def test_a_step_never_gets_cheaper_with_more_rows_or_more_context(curves, rows, more_rows, context, more_context):
    assert curves.step(rows, context) <= curves.step(rows + more_rows, context + more_context) * (1 + 1e-9)


def test_measured_points_are_met_and_lines_drawn_between_and_beyond():
    curves = CostCurves(step_ms={1: 10.0, 4: 13.0, 8: 25.0}, prefill_tokens_per_s=500.0)
    assert curves.step(1) == pytest.approx(0.010)
    assert curves.step(2) == pytest.approx(0.011)
    assert curves.step(6) == pytest.approx(0.019)
    assert curves.step(108) == pytest.approx(0.025 + 100 / 500)


def test_context_adds_what_it_added_to_one_row():
    curves = CostCurves(step_ms={1: 10.0, 8: 20.0}, step_ms_by_context={0: 10.0, 1000: 14.0})
    assert curves.step(8, 500) == pytest.approx(0.022)
    assert curves.step(8, 2000) == pytest.approx(0.028)


def test_no_rows_cost_nothing():
    assert SEED.step(0, 1000) == 0.0


def test_the_draft_models_pass_costs_what_was_measured_or_nothing_where_none_is_loaded():
    curves = CostCurves(step_ms={1: 10.0}, draft_ms={1: 3.0, 4: 6.0}, scale=2.0)
    assert curves.draft(2) == pytest.approx(2 * 0.004)
    assert curves.draft(0) == 0.0
    assert SEED.draft(1) == 0.0


@given(CURVES, st.floats(0.0001, 5), st.integers(0, 4000))
def test_rows_within_is_the_largest_number_that_fits(curves, seconds, context):
    rows = curves.rows_within(seconds, context, most=512)
    assert 1 <= rows <= 512
    assert rows == 1 or curves.step(rows, context) <= seconds
    assert rows == 512 or curves.step(rows + 1, context) > seconds


@given(st.lists(st.floats(0, 100), max_size=12))
def test_the_isotonic_fit_rises_and_keeps_the_mean(values):
    fitted = isotonic(values)
    assert len(fitted) == len(values)
    assert fitted == sorted(fitted)
    assert sum(fitted) == pytest.approx(sum(values))


def test_the_isotonic_fit_of_a_rising_curve_is_the_curve():
    assert isotonic([1.0, 2.0, 2.0, 5.0]) == [1.0, 2.0, 2.0, 5.0]
    assert isotonic([1.0, 4.0, 2.0, 5.0]) == [1.0, 3.0, 3.0, 5.0]


def test_a_single_point_is_a_level_line():
    assert Line.through({4: 7.0}).at(1) == Line.through({4: 7.0}).at(40) == 7.0


@given(CURVES)
def test_json_gives_the_same_curves_back(curves):
    assert CostCurves.from_json(curves.to_json()) == curves


def test_json_carries_the_names_that_calibration_prints():
    document = json.loads(SEED.to_json())
    names = {
        "read_bandwidth_gb_s",
        "bytes_per_step",
        "step_ms",
        "step_ms_by_context",
        "prefill_tokens_per_s",
        "kernels",
    }
    assert names <= set(document)
    assert document["step_ms"]["1"] == 60.0


@pytest.mark.parametrize(
    "text", ["", "[]", "3", '{"step_ms": 4}', '{"step_ms": {"x": 1}}', '{"speed": 1}', '{"step_ms": {}}']
)
def test_a_damaged_calibration_is_refused_with_the_remedy(text):
    with pytest.raises(ConfigError, match="twostroke calibrate"):
        CostCurves.from_json(text)


@pytest.mark.parametrize("bad", [{1: 0.0}, {1: -3.0}, {1: math.nan}, {1: math.inf}, {-1: 3.0}])
def test_times_that_no_clock_shows_are_refused(bad):
    with pytest.raises(ConfigError, match="step_ms"):
        CostCurves(step_ms=bad)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan])
def test_a_prefill_rate_must_be_above_zero(rate):
    with pytest.raises(ConfigError, match="prefill_tokens_per_s"):
        CostCurves(step_ms={1: 1.0}, prefill_tokens_per_s=rate)


def test_refining_gives_a_new_value_and_leaves_the_old():
    refined = SEED.refine(1, 0, 0.120)
    assert refined.step(1) > SEED.step(1) == pytest.approx(0.060)


@given(CURVES, st.integers(1, 100), st.integers(0, 9000))
def test_a_step_as_long_as_expected_changes_nothing(curves, rows, context):
    refined = curves.refine(rows, context, curves.step(rows, context))
    assert refined.step(rows, context) == pytest.approx(curves.step(rows, context))


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_a_clock_that_stood_still_teaches_nothing(seconds):
    assert SEED.refine(1, 0, seconds) is SEED
    assert SEED.refine(0, 0, 0.1) is SEED


@pytest.mark.parametrize("factor", [0.67, 1.33, 1.5])
def test_a_drift_of_the_machine_is_followed_as_a_whole_within_eighty_steps(factor):
    """Steps of one and five rows; rows never seen (32) drift with them."""
    curves, rng = SEED, random.Random(3)
    for i in range(80):
        rows = 1 if i % 2 else 5
        curves = curves.refine(rows, 0, SEED.step(rows) * factor * rng.uniform(0.95, 1.05))
    for rows in (1, 5, 32):
        assert curves.step(rows) == pytest.approx(SEED.step(rows) * factor, rel=0.05)


def test_the_shape_is_learned_too():
    truth = CostCurves(step_ms={1: 20.0, 4: 22.0, 8: 27.0, 16: 45.0}, prefill_tokens_per_s=400.0)
    curves, rng = SEED, random.Random(5)
    for _ in range(3000):
        rows = rng.choice([1, 2, 4, 8, 16])
        curves = curves.refine(rows, 0, truth.step(rows) * rng.uniform(0.9, 1.1))
    for rows in (1, 4, 8, 16):
        assert curves.step(rows) == pytest.approx(truth.step(rows), rel=0.1)


def test_a_hiccup_moves_nothing_and_a_run_of_them_is_believed():
    settled = replace(SEED, seen=1000)
    assert settled.refine(1, 0, 5.0).step(1) == settled.step(1)
    curves = settled
    for _ in range(400):
        curves = curves.refine(1, 0, 5.0)
    assert curves.step(1) == pytest.approx(5.0, rel=0.1)


def test_curves_that_rest_on_nothing_learn_at_once():
    curves = SEED
    for _ in range(12):
        curves = curves.refine(1, 0, 0.005)  # twelve times as fast as guessed
    assert curves.step(1) == pytest.approx(0.005, rel=0.25)


@given(CURVES, st.integers(1, 80), st.integers(1, 40))
def test_added_rows_cost_the_difference_between_steps(curves, rows, most):
    added = list(curves.added(rows, most))
    assert added == pytest.approx([curves.step(rows + n) - curves.step(rows) for n in range(1, most + 1)], abs=1e-9)


@given(CURVES, st.integers(1, 80))
def test_no_added_row_is_cheaper_than_the_cheapest(curves, rows):
    first = next(curves.added(rows, 1))
    if rows >= min(curves.step_ms):  # below the first point the curve is level
        assert first >= curves.cheapest_row() * (1 - 1e-9) - 1e-12


@given(CURVES, st.lists(st.tuples(st.integers(1, 64), st.integers(0, 8000), st.floats(0.0001, 10)), max_size=30))
def test_refined_curves_still_rise(curves, steps):
    for rows, context, seconds in steps:
        curves = curves.refine(rows, context, seconds)
    costs = [curves.step(rows) for rows in range(1, 80)]
    assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(costs))
