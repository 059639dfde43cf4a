"""Every combination of switches gives the same answers: the ones a plain loop over the model gives."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from tests.composition.simulation import Setting, Simulation, featured, workload

SEEDS = (1, 2)
MATRIX = [
    Setting(caching, skill, lookahead, blocks, budget, spare)
    for caching, skill, lookahead, (blocks, spare, budget) in product(
        (False, True), (None, 0.0, 0.7, 1.0), (None, 0, 1, 2), ((11, 0, 5), (11, 4, 64), (64, 0, 5), (64, 0, 64))
    )
    if skill is not None or lookahead is None
]


@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_setting_gives_the_same_answers(seed: int, caching: bool) -> None:
    arrivals = workload(seed)
    counts: Counter[str] = Counter()
    for setting in MATRIX:
        if setting.caching == caching:
            counts += Simulation(setting, seed).run(arrivals).counts
    happened = {"drafted", "accepted", "rejected", "preempted", "resumed", "chunked"}
    happened |= {"cached", "copies", "evicted"} if caching else set()
    assert happened <= {name for name, number in counts.items() if number}, counts


@pytest.mark.parametrize("penalties", [False, True])
@pytest.mark.parametrize("grammar", [False, True])
def test_what_is_asked_of_sampling_composes_with_every_setting(grammar: bool, penalties: bool) -> None:
    arrivals = featured(workload(3, requests=12), grammar, penalties)
    counts: Counter[str] = Counter()
    for setting in MATRIX[::3]:  # a third of them, in which every value of every axis occurs
        counts += Simulation(setting, seed=3).run(arrivals).counts
    happened = {"accepted", "rejected", "preempted", "resumed", "chunked", "cached", "copies", "evicted", "scored"}
    happened |= {"forced"} if grammar else set()
    assert happened <= {name for name, number in counts.items() if number}, counts
