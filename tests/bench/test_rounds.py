"""Alternation, medians and ratios formed inside a round."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from bench.rounds import Measure, Samples, Spread, Unmeasured, cycle, interleave, median_interval, quantile
from hypothesis import given
from hypothesis import strategies as st

numbers = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40)


@given(numbers)
def test_a_spread_is_ordered_and_lies_within_the_samples(samples: list[float]) -> None:
    spread = Spread.of(samples)
    assert min(samples) <= spread.p10 <= spread.median <= spread.p90 <= max(samples)
    assert spread.samples == len(samples)


def test_a_spread_of_eleven_even_samples_hits_them() -> None:
    assert Spread.of([float(n) for n in range(11)]) == Spread(5.0, 1.0, 9.0, 11)


def test_no_samples_have_no_spread() -> None:
    with pytest.raises(ValueError, match="no samples"):
        Spread.of([])


@given(numbers)
def test_quantiles_begin_and_end_at_the_extremes(samples: list[float]) -> None:
    assert quantile(samples, 0.0) == min(samples)
    assert quantile(samples, 1.0) == max(samples)


def test_quantiles_are_linear_between_neighbours() -> None:
    assert quantile([10.0, 0.0], 0.25) == 2.5


class Recorder:
    """A measurement that notes when it was taken."""

    def __init__(self, name: str, log: list[str], value: float = 1.0) -> None:
        self.name, self.log, self.value = name, log, value

    def __call__(self) -> Mapping[str, float]:
        self.log.append(self.name)
        return {"x": self.value}


def test_every_measurement_is_taken_once_a_round_in_changing_order() -> None:
    log: list[str] = []
    names = [f"m{n}" for n in range(6)]
    interleave({name: Recorder(name, log) for name in names}, 8)
    rounds = [tuple(log[n : n + 6]) for n in range(0, 48, 6)]
    assert all(sorted(round_) == names for round_ in rounds)
    assert len(set(rounds)) > 1


def test_the_order_is_the_same_in_every_run() -> None:
    first, second = [], []  # type: ignore[var-annotated]
    for log in (first, second):
        interleave({name: Recorder(name, log) for name in "abcde"}, 4)
    assert first == second


def test_a_failing_measurement_is_named_and_drops_what_it_gave_before() -> None:
    turns = iter([1, 2])

    def fails_later() -> Mapping[str, float]:
        if next(turns) == 2:
            raise Unmeasured("it died")
        return {"x": 1.0}

    samples = interleave({"good": lambda: {"x": 2.0}, "bad": fails_later}, 3)
    assert samples.taken == {"good x": [2.0, 2.0, 2.0]}
    assert samples.missing == {"bad": "it died"}


def test_other_errors_are_not_swallowed() -> None:
    def wrong() -> Mapping[str, float]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interleave({"wrong": wrong}, 1)


def test_a_ratio_is_formed_inside_each_round_so_a_drifting_machine_cancels() -> None:
    drift = [1.0, 3.0, 0.5, 7.0]
    samples = Samples({"a x": [2 * d for d in drift], "b x": drift}, {})
    assert samples.ratio("a x", "b x") == Spread(2.0, 2.0, 2.0, 4)


def test_a_formula_sees_the_numbers_of_one_round() -> None:
    samples = Samples({"a": [1.0, 2.0], "b": [10.0, 20.0]}, {})
    assert samples.combine(lambda a, b: a + b, "a", "b").median == 16.5
    assert "a" in samples
    assert "c" not in samples


def test_a_cycle_takes_turns_and_gives_medians() -> None:
    log: list[str] = []
    values = {"a": iter([3.0, 1.0, 2.0]), "b": iter([5.0, 6.0, 4.0])}

    def job(name: str) -> float:
        log.append(name)
        return next(values[name])

    assert cycle({"a": lambda: job("a"), "b": lambda: job("b")}, 3) == {"a": 2.0, "b": 5.0}
    assert log == ["a", "b"] * 3


def interrupted_in(turn: int) -> Measure:
    """A measurement during which somebody presses Ctrl-C."""
    turns = iter(range(1, 100))

    def measure() -> Mapping[str, float]:
        if next(turns) == turn:
            raise KeyboardInterrupt
        return {"x": 1.0}

    return measure


def test_an_interrupt_keeps_the_rounds_that_are_whole_and_aligned() -> None:
    samples = interleave({"a": lambda: {"x": 2.0}, "b": interrupted_in(3), "c": lambda: {"x": 3.0}}, 5)
    assert samples.taken == {"a x": [2.0, 2.0], "b x": [1.0, 1.0], "c x": [3.0, 3.0]}


def test_an_interrupt_before_the_first_round_is_whole_goes_on() -> None:
    with pytest.raises(KeyboardInterrupt):
        interleave({"a": interrupted_in(1)}, 5)


def test_the_interval_of_a_median_is_between_order_statistics() -> None:
    """Conover's table for n = 10 at 95 %: the second and the ninth."""
    assert median_interval(range(10)) == (1, 8)
    assert median_interval([3.0]) == (3.0, 3.0)
    with pytest.raises(ValueError, match="no samples"):
        median_interval([])
