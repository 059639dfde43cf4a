"""How often an analysis errs, over a thousand studies whose truth is known.

A share of 1,000 studies has a standard error of 0.7 %, so a rate of 5 % is held to 7 %, which chance alone passes in
more than 99 of 100 runs; the seeds are fixed, so a test that passes goes on passing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.study.synthetic import Noise, Times, Truth, heavy, normal, times
from twostroke.study.analysis import student, verdict
from twostroke.study.analysis.bootstrap import LEVELS, Resampler, spread
from twostroke.study.analysis.effects import effects
from twostroke.study.analysis.estimate import Sample, ratio
from twostroke.study.analysis.interaction import CONTRAST, interactions, overall
from twostroke.study.analysis.result import Interaction, Phase, Verdict

STUDIES = 1_000
FEWER_RESAMPLES = Resampler(seed=0, resamples=2_000)
NOTHING = Truth(cache_on_prefill=1.0, speculation_on_decode=1.0)
FLOORS: dict[Phase, float | None] = {"prefill": None, "decode": None, "end to end": None}


def sample(truth: Truth) -> Sample:
    return Sample(np.arange(truth.calls) // truth.calls_per_session, FEWER_RESAMPLES)


def verdicts(truth: Truth, seed: int) -> tuple[Verdict, tuple[Interaction, ...]]:
    found = interactions(times(truth, seed).outcomes(), FLOORS, (), sample(truth), 0.1, truth.repeats)
    return overall(found, (), 0.1, truth.repeats), found


def rates(truth: Truth, studies: int = STUDIES) -> dict[str, Counter[str]]:
    """How often each verdict was given, by phase and overall."""
    counts: dict[str, Counter[str]] = {}
    for seed in range(studies):
        whole, phases = verdicts(truth, seed)
        for name, said in (("overall", whole), *((one.phase, one.verdict) for one in phases)):
            counts.setdefault(name, Counter())[said.kind] += 1
    return counts


def false_directions(counts: Counter[str]) -> int:
    return counts["help"] + counts["fight"]


@pytest.mark.parametrize(
    ("noise", "calls"), [(normal(0.3), 40), (heavy(0.3), 40), (normal(0.3), 12)], ids=["normal", "heavy", "few"]
)
def test_pure_noise_is_said_to_interact_in_at_most_5_percent_of_studies(noise: Noise, calls: int) -> None:
    for name, counts in rates(replace(NOTHING, noise=noise, calls=calls, repeats=2)).items():
        assert false_directions(counts) <= 0.07 * STUDIES, (name, counts)


def test_an_interaction_of_the_margin_is_called_independent_in_at_most_5_percent_of_studies() -> None:
    counts = rates(Truth(decode_interaction=1.1, noise=normal(0.12), repeats=2))
    assert counts["decode"]["independent"] <= 0.07 * STUDIES
    assert counts["overall"]["independent"] <= 0.07 * STUDIES
    assert counts["prefill"]["independent"] > 0.5 * STUDIES  # and independence can be shown at this noise


def test_a_verdict_needs_evidence_and_finds_it() -> None:
    for interaction, kind in ((1.0, "independent"), (1.3, "fight"), (0.75, "help")):
        counts = rates(Truth(decode_interaction=interaction), studies=100)
        assert counts["decode"][kind] == counts["overall"][kind] == 100, (interaction, counts)


@pytest.mark.parametrize("noise", [normal(0.3), heavy(0.3)], ids=["normal", "heavy"])
@pytest.mark.parametrize("prompts", [12, 20, 40])
def test_intervals_cover_the_truth_as_often_as_they_say(noise: Noise, prompts: int) -> None:
    """Over 4,000 interactions, each the sum of four arms' noise; a share of these has a standard error of 0.5 %."""
    studies = noise(np.random.default_rng(7), (4_000, prompts, 4)).sum(axis=2)
    covered = np.zeros(len(LEVELS))
    for values in studies:
        found = spread(values, np.ones(prompts), FEWER_RESAMPLES)
        assert found is not None
        covered += [low <= 0 <= high for low, high in found.intervals]
    assert np.abs(covered / len(studies) - LEVELS).max() < 0.02, covered


def coverage(truth: Truth, cluster: Callable[[Truth], Sample]) -> float:
    covered = 0
    for seed in range(STUDIES):
        found = ratio(times(truth, seed).ttft, {"cache": 1, "neither": -1}, cluster(truth))
        assert found is not None
        covered += found.low <= truth.cache_on_prefill <= found.high
    return covered / STUDIES


def test_calls_of_a_session_resemble_one_another_so_sessions_are_resampled() -> None:
    truth = Truth(calls=60, calls_per_session=5, session_sd=0.3, repeats=1)
    assert coverage(truth, sample) > 0.92
    by_call = Sample(np.arange(truth.calls), FEWER_RESAMPLES)
    assert coverage(truth, lambda _: by_call) < 0.75  # the fault this protects from


def test_as_many_requests_as_are_said_to_be_needed_show_it_in_80_percent_of_studies() -> None:
    few = Truth(calls=20, repeats=1, noise=normal(0.25))
    found = ratio(times(few, 3).tpot, CONTRAST, sample(few))
    assert found is not None
    known = replace(found, value=1.0, standard_error=0.25 * 2 / 20**0.5)  # the true spread, not an estimate
    needed = verdict.needed(verdict.of_ratio(known, 0.1), few.repeats)
    assert needed.purpose == "equivalence"
    assert needed.requests == 4 * needed.requests_per_arm == 4 * needed.prompts
    shown = 0
    for seed in range(300):
        enough = replace(few, calls=needed.prompts)
        estimate = ratio(times(enough, seed).tpot, CONTRAST, sample(enough))
        assert estimate is not None
        shown += verdict.judge(verdict.of_ratio(estimate, 0.1)) == "independent"
    assert 0.73 < shown / 300 < 0.88


def test_as_many_requests_as_a_decision_is_said_to_need_decide_in_80_percent_of_studies() -> None:
    """A difference of 20 % at this spread: the formula's number of prompts decides it in 80 % of studies."""
    truth = Truth(calls=20, repeats=1, noise=normal(0.25), decode_interaction=1.2)
    found = ratio(times(truth, 3).tpot, CONTRAST, sample(truth))
    assert found is not None
    known = replace(found, value=1.2, standard_error=0.25 * 2 / 20**0.5)
    needed = verdict.needed(verdict.of_ratio(known, 0.1), truth.repeats)
    assert needed.purpose == "decision"
    enough, decided = replace(truth, calls=needed.prompts), 0
    for seed in range(300):
        estimate = ratio(times(enough, seed).tpot, CONTRAST, sample(enough))
        assert estimate is not None
        decided += verdict.judge(verdict.of_ratio(estimate, 0.1)) == "fight"
    assert 0.73 < decided / 300 < 0.88


def test_randomised_blocks_protect_from_drift() -> None:
    """The machine becomes twice as slow; arms that are sent one after the other take it for an effect."""
    drifting = Truth(drift=2.0, noise=normal(0.02), repeats=6)

    def decode_effects(measured: Times, truth: Truth) -> list[float]:
        found = effects(measured.outcomes(), FLOORS, (), sample(truth))
        return [e.ratio.value for e in found if e.expected and e.phase == "decode" and e.ratio is not None]

    blocks = [decode_effects(times(drifting, seed), drifting) for seed in range(100)]
    assert np.exp(np.log(blocks).mean()) == pytest.approx(0.5, rel=0.02)
    in_order = replace(drifting, randomised=False)
    one_after_another = [decode_effects(times(in_order, seed), in_order) for seed in range(20)]
    assert np.exp(np.log(one_after_another).mean()) > 0.55


def test_students_quantiles_are_those_of_the_tables() -> None:
    for df, p, expected in (
        (1, 0.975, 12.706),
        (2, 0.975, 4.303),
        (3, 0.975, 3.182),
        (9, 0.95, 1.833),
        (30, 0.975, 2.042),
    ):
        assert student.t(p, df) == pytest.approx(expected, rel=0.01)


def test_a_spread_needs_two_clusters_and_few_of_them_get_students_interval() -> None:
    assert spread(np.array([1.0]), np.array([1.0]), FEWER_RESAMPLES) is None
    found = spread(np.array([1.0, 2.0, 3.0]), np.ones(3), FEWER_RESAMPLES)
    assert found is not None
    assert found.value == 2.0
    assert found.standard_error == pytest.approx(1 / 3**0.5)
    assert found.intervals[0] == pytest.approx((2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5), rel=1e-3)
