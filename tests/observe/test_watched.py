"""What others keep the totals of is read when somebody asks."""

from __future__ import annotations

from tests.observe.test_prometheus import read
from twostroke.govern.governor import CostGovernor
from twostroke.observe.prometheus import Metrics
from twostroke.observe.watched import SAID


def test_values_are_those_of_the_moment() -> None:
    said: dict[str, object] = {"saved_s": 1.5, "acceptance": {"ngram": 0.5}, "words": "not a number"}
    faults: dict[str, int] = {}
    metrics = Metrics("m")
    metrics.watch(lambda: said, lambda: faults)
    assert read(metrics)[("twostroke:spec_decode_saved_seconds",)] == 1.5
    said["saved_s"], faults["drafter"] = -2.0, 3
    values = read(metrics)
    assert values[("twostroke:spec_decode_saved_seconds",)] == -2.0
    assert values[("twostroke:spec_decode_recent_acceptance", "ngram")] == 0.5
    assert values[("twostroke:engine_faults", "drafter")] == 3
    assert ("twostroke:machine_scale",) not in values


def test_the_governor_says_all_that_is_asked_of_it() -> None:
    metrics = Metrics("m")
    metrics.watch(CostGovernor().explain, dict)
    names = {key[0] for key in read(metrics)}
    assert {f"twostroke:{metric}" for metric, _ in SAID.values()} <= names
