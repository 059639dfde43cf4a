"""The governor and the drafters in the real engine, on the runner that audits every cell it reads."""

from itertools import count

import pytest

from tests.composition.simulation import TARGET, Setting, Simulation, workload
from twostroke.engine.engine import Engine
from twostroke.engine.null import FixedLimits
from twostroke.govern.cost import CostCurves
from twostroke.govern.governor import CostGovernor
from twostroke.govern.governor import Settings as Choices
from twostroke.speculate.per_request import PerRequest
from twostroke.speculate.synthetic import always, recorded
from twostroke.speculate.table import Settings, build_all
from twostroke.types import Request

CHEAP = CostCurves(step_ms={1: 1000.0, 64: 1010.0})  # a step takes a second by the suite's clock


class Governed(Simulation):
    """The suite's engine with a drafter and a governor of ours."""

    def __init__(self, setting, name, governor, answers=None, rates=always(0.7)):  # noqa: B008 - a plain function
        super().__init__(setting)
        known = recorded(answers or {})
        self.drafter = PerRequest(build_all(Settings(draft_tokens=4, oracle=known, rates=rates)), name)
        self.governor = governor
        self.engine = Engine(
            self.scheduler,
            self.runner,
            self.drafter,
            governor,
            observers=(self.outcome.observe,),
            clock=count().__next__,
            vocabulary=7,
            context=setting.context,
        )


def governors(setting):
    yield FixedLimits(setting.budget, setting.sequences, draft_tokens=4)
    choices = Choices(step_ms=1e6, tokens=setting.budget, sequences=setting.sequences)
    yield CostGovernor(CHEAP, choices)


def off(setting, arrivals):
    """The run without drafts, and its answers by prompt and choice."""
    simulation = Governed(setting, "off", next(governors(setting)))
    outcome = simulation.run(arrivals)
    assert outcome.counts["drafted"] == 0
    prompts = {arrival.request.id: arrival.request.prompt for arrival in arrivals}
    return outcome, {(prompts[id], choice): tokens for (id, choice), tokens in outcome.answers.items()}


SETTINGS = [
    Setting(blocks=64, budget=64),
    Setting(blocks=11, budget=5),
    Setting(blocks=11, spare=4, budget=64),
    Setting(caching=False, blocks=64, budget=5),
]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["ngram", "suffix", "prediction", "auto", "synthetic"])
def test_every_drafter_under_every_governor_gives_the_answers_of_none(setting, name):
    """`run` compares with the answers of a plain loop over the model, and audits every cell."""
    for seed in (1, 2):
        arrivals = workload(seed)
        _, answers = off(setting, arrivals)
        for governor in governors(setting):
            outcome = Governed(setting, name, governor, answers).run(arrivals)
            if name in ("auto", "synthetic"):
                assert outcome.counts["drafted"] > 0


@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
def test_drafts_of_any_skill_change_steps_and_not_answers(rate):
    setting, arrivals = Setting(), workload(3)
    plain, answers = off(setting, arrivals)
    for governor in governors(setting):
        outcome = Governed(setting, "synthetic", governor, answers, always(rate)).run(arrivals)
        assert (outcome.counts["accepted"] > 0) is (rate > 0)
        assert (outcome.counts["steps"] < plain.counts["steps"]) is (rate > 0)


def test_what_the_prefix_cache_gives_is_the_same_with_speculation():
    prompt = (1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1)
    for length in range(1, len(prompt) + 1):
        requests = [Request(id=f"r{i}", prompt=prompt[:length], max_tokens=12) for i in range(2)]
        cached = []
        for name in ("off", "auto"):
            simulation = Governed(Setting(), name, CostGovernor(CHEAP))
            for request in requests:
                simulation.ask(request)
            cached.append(simulation.outcome.cached)
        assert cached[0] == cached[1]
        assert cached[1]["r1", 0] == length - 1


def test_the_second_identical_request_is_drafted_better_than_the_first():
    """The first answer is in the namespace's history: the second needs fewer steps, and gives the same answer."""
    simulation = Governed(Setting(), "suffix", CostGovernor(CHEAP))
    steps = []
    for i in range(2):
        before = simulation.runner.steps
        simulation.ask(Request(id=f"r{i}", prompt=(1, 2, 3, 4, 5, 6), max_tokens=24))
        steps.append(simulation.runner.steps - before)
    assert steps[1] < steps[0] / 2
    assert simulation.outcome.answers["r0", 0] == simulation.outcome.answers["r1", 0]


def test_another_namespace_gains_nothing_from_it():
    """Draft by draft, what one tenant sees does not depend on what others asked before."""

    def drafted(namespaces):
        simulation = Governed(Setting(), "suffix", FixedLimits(draft_tokens=4))
        for i, namespace in enumerate(namespaces):
            simulation.ask(Request(id=f"r{i}", prompt=(1, 2, 3, 4, 5, 6), max_tokens=24, namespace=namespace))
        reports = simulation.outcome.reports
        return [(row.drafted, row.accepted) for report in reports for row in report.rows if row.namespace == "c"]

    alone = drafted("c")
    assert sum(count for count, _ in alone) > 0
    assert drafted("abc") == drafted("aaaac") == alone


def test_a_prediction_that_comes_true_saves_most_steps_and_enters_no_key():
    setting = Setting()
    plain = Governed(setting, "off", CostGovernor(CHEAP))
    plain.ask(Request(id="r", prompt=(1, 2, 3), max_tokens=20))
    answer = tuple(plain.outcome.answers["r", 0])
    guessed = Governed(setting, "auto", CostGovernor(CHEAP))
    guessed.ask(Request(id="r", prompt=(1, 2, 3), max_tokens=20, prediction=answer))
    assert guessed.runner.steps < plain.runner.steps / 2
    published = [{tuple(e.text) for e in s.space[TARGET].index} for s in (plain, guessed)]
    assert published[0] == published[1]


def test_the_reasons_for_no_drafts_reach_the_report():
    simulation = Governed(Setting(), "auto", CostGovernor(CHEAP))
    simulation.ask(
        Request(id="a", prompt=(1, 2, 3), max_tokens=8, speculate="off"),
        Request(id="b", prompt=(6, 5, 4), max_tokens=8),
    )
    reasons = {(r.request, r.reason) for report in simulation.outcome.reports for r in report.rows}
    assert ("a", "disabled") in reasons
    assert ("b", "no_match") in reasons
    assert ("b", "tail") in reasons


def test_nothing_is_kept_of_sequences_that_ended():
    simulation = Governed(Setting(), "auto", CostGovernor(CHEAP))
    simulation.run(workload(1))
    assert not simulation.governor.accounts._accounts
    for drafter in simulation.drafter.drafters.values():
        assert not getattr(drafter, "_stakes", None)
    suffix = simulation.drafter.drafters["suffix"].lookup
    assert not suffix._places
    suffix.history.check()
