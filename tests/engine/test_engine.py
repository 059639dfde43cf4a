"""The loop goes on, whatever its neighbours do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from tests.composition.fakes import AuditingRunner, Oracle, answer
from tests.composition.simulation import CONTEXT, Setting, Simulation
from twostroke.engine.engine import Engine
from twostroke.engine.null import FixedLimits, NoDraft
from twostroke.engine.proposals import MOST_DRAFTS
from twostroke.engine.protocols import SequenceView, View
from twostroke.errors import InvalidParameter, PromptTooLong
from twostroke.types import FinishReason, Limits, Picks, Proposal, Report, Request, Row, Sampling


def request(number: int = 0, length: int = 9, max_tokens: int = 8, **fields: Any) -> Request:
    prompt = tuple((number + position * position) % 7 for position in range(length))
    return Request(f"r{number}", prompt, max_tokens, **fields)


class TestAdd:
    @pytest.fixture
    def engine(self) -> Engine:
        return Simulation(Setting()).engine

    def test_each_choice_has_an_id_of_its_own(self, engine: Engine) -> None:
        assert engine.add(request(0, choices=3)) == (0, 1, 2)
        assert engine.add(request(1)) == (3,)
        assert not engine.idle

    def test_a_prompt_that_leaves_no_room_is_refused_with_both_numbers(self, engine: Engine) -> None:
        with pytest.raises(PromptTooLong, match=rf"{CONTEXT} tokens.* at most {CONTEXT - 1} ") as caught:
            engine.add(request(0, length=CONTEXT))
        assert caught.value.param == "prompt"
        engine.add(request(1, length=CONTEXT - 1))

    def test_the_memory_bounds_the_context(self) -> None:
        engine = Simulation(Setting(blocks=3)).engine
        assert engine.context == 12
        with pytest.raises(PromptTooLong, match="KV memory"):
            engine.add(request(0, length=12))

    @pytest.mark.parametrize(
        ("asked", "message"),
        [
            (request(length=0), "no tokens"),
            (request(max_tokens=0), "max_tokens is 0"),
            (request(max_tokens=-3), "max_tokens is -3"),
            (request(choices=0), "choices is 0"),
            (Request("r", (1, 7), 4), "outside 0 … 6"),
            (Request("r", (-1, 1), 4), "outside 0 … 6"),
            (Request("r", (1,), 4, Sampling(bias=((7, 1.0),))), "logit_bias has token ids outside 0 … 6"),
            (Request("r", (1,), 4, Sampling(withheld=(9,))), "stop_token_ids has token ids outside"),
            (Request("r", (1,), 4, Sampling(repetition_penalty=0.0)), "repetition_penalty is 0.0; give"),
        ],
    )
    def test_a_request_that_cannot_be_served_is_refused(self, engine: Engine, asked: Request, message: str) -> None:
        with pytest.raises(InvalidParameter, match=message):
            engine.add(asked)
        assert engine.idle

    def test_a_stop_condition_that_cannot_be_made_is_refused(self, engine: Engine) -> None:
        def broken() -> Any:
            raise ValueError("no such grammar")

        with pytest.raises(ValueError, match="no such grammar"):
            engine.add(request(stop=broken))
        assert engine.idle


class TestStep:
    def test_an_idle_engine_steps_without_a_pass(self) -> None:
        simulation = Simulation(Setting())
        report = simulation.step()
        assert (report.rows, simulation.runner.steps, simulation.engine.idle) == ((), 0, True)

    def test_a_report_says_what_happened(self) -> None:
        simulation = Simulation(Setting(skill=1.0))
        simulation.engine.add(request(0, length=9, namespace="tenant"))
        first, second = simulation.step(), simulation.step()
        (row,) = first.rows
        assert (row.sequence, row.request, row.choice, row.namespace) == (0, "r0", 0, "tenant")
        assert (row.start, row.computed, row.context, row.drafted, row.accepted) == (0, 9, 9, 0, 0)
        assert (len(row.emitted), row.finished, row.source, row.reason) == (1, None, "", "")
        (admission,) = first.admitted
        assert (admission.prompt_tokens, admission.cached, admission.miss_reason) == (9, 0, "cold")
        assert (first.waiting, first.running, first.kv_used, first.kv_capacity) == (0, 1, 12, 256)
        (row,) = second.rows
        assert (row.start, row.computed, row.drafted, row.accepted, row.source) == (9, 4, 3, 3, "oracle")
        assert (len(row.emitted), second.admitted) == (4, ())

    def test_times_are_the_clocks_and_in_order(self) -> None:
        simulation = Simulation(Setting(skill=0.5))
        simulation.engine.add(request())
        first, second = simulation.step(), simulation.step()
        times = [first.started_s, first.planned_s, first.executed_s, first.ended_s, second.started_s]
        assert times == sorted(times)
        assert len(set(times)) == 5
        assert second.draft_s == 1  # one tick between two readings

    def test_evictions_are_counted_once(self) -> None:
        simulation = Simulation(Setting(blocks=11))
        for number in range(6):
            simulation.ask(request(number, length=20))
        reports = simulation.outcome.reports
        assert sum(report.evicted for report in reports) == simulation.scheduler.space.evicted > 0

    def test_observers_see_tokens_before_the_drafter_is_asked(self) -> None:
        simulation = Simulation(Setting(skill=1.0))
        events: list[str] = []
        engine = simulation.engine
        engine.observers = (lambda report: events.append("delivered"), *engine.observers)
        propose = engine.drafter.propose

        def noted(sequences: Sequence[SequenceView]) -> Sequence[Proposal]:
            events.append("asked")
            return propose(sequences)

        engine.drafter.propose = noted  # type: ignore[method-assign]
        simulation.ask(request())
        assert events[:4] == ["delivered", "asked", "delivered", "asked"]

    def test_the_view_counts_for_the_governor(self) -> None:
        simulation = Simulation(Setting(budget=4, sequences=1))
        simulation.engine.add(request(0))
        simulation.engine.add(request(1))
        simulation.step()
        view = simulation.engine.view
        assert ([s.id for s in view.running], view.prefilling, view.entering) == ([0], 4, 9)


class TestRunnerFaults:
    def failing(self, setting: Setting, times: int, error: Exception | None = None) -> Simulation:
        """A simulation whose runner fails in its first passes, after having written everything."""
        simulation = Simulation(setting)
        execute, calls = simulation.runner.execute, count()

        def fail(rows: Sequence[Row]) -> list[Picks]:
            picks = execute(rows)
            if next(calls) < times:
                raise error or RuntimeError("a cosmic ray")
            return picks

        simulation.runner.execute = fail  # type: ignore[method-assign]
        return simulation

    def test_a_pass_that_raises_ends_its_sequences_and_frees_everything(self) -> None:
        simulation = self.failing(Setting(), times=1)
        simulation.engine.add(request(0, choices=2))
        report = simulation.engine.step()
        assert [(end.request, end.choice, end.reason) for end in report.ended] == [("r0", 0, FinishReason.ERROR)]
        assert "a cosmic ray" in str(report.ended[0].error)
        assert (report.rows, simulation.engine.faults["runner"]) == ((), 1)
        simulation.check()
        assert not any(simulation.scheduler.space.pool.holders)

    @pytest.mark.parametrize("failures", range(1, 5))
    def test_the_engine_stays_usable_and_nothing_of_a_failed_pass_is_found(self, failures: int) -> None:
        simulation = self.failing(Setting(skill=0.7, lookahead=1, budget=5), failures)
        for number in range(failures):
            simulation.engine.add(replace(request(0, length=13 + number), id=f"failed{number}"))
            simulation.engine.step()
            simulation.check()
        assert simulation.engine.idle
        simulation.engine.faults.clear()
        outcome = simulation.ask(request(0, length=20))
        assert outcome.answers["r0", 0] == answer(request(0, length=20), 0, CONTEXT)[0]

    def test_a_pass_that_fails_while_drafts_are_verified_publishes_none_of_them(self) -> None:
        simulation = Simulation(Setting(skill=0.5))
        simulation.engine.add(request(0))
        simulation.step()
        simulation.step()
        self_execute = simulation.runner.execute

        def fail(rows: Sequence[Row]) -> list[Picks]:
            self_execute(rows)
            raise RuntimeError("a cosmic ray")

        simulation.runner.execute = fail  # type: ignore[method-assign]
        simulation.engine.step()
        simulation.check()
        simulation.audit()
        assert simulation.engine.idle

    @pytest.mark.parametrize("picks", [[], [Picks(())], [Picks((1, 2))], [Picks((1,)), Picks((1,))], [None], 7])
    def test_choices_of_the_wrong_shape_are_a_failed_pass(self, picks: Any) -> None:
        simulation = Simulation(Setting())
        simulation.runner.execute = lambda rows: picks  # type: ignore[method-assign]
        simulation.engine.add(request())
        report = simulation.engine.step()
        assert [end.reason for end in report.ended] == [FinishReason.ERROR]
        assert simulation.engine.idle


class Junk(Oracle):
    """Mostly right, but says `junk` of every sequence first."""

    def __init__(self, junk: Any, **fields: Any) -> None:
        super().__init__(**fields)
        self.junk = junk

    def propose(self, sequences: Sequence[SequenceView]) -> Any:
        return [self.junk(sequence) for sequence in sequences] if callable(self.junk) else self.junk


JUNK = {
    "an unknown sequence": lambda s: Proposal(s.id + 1000, (1,), (0.5,)),
    "an unhashable sequence": lambda s: Proposal([], (1,), (0.5,)),  # type: ignore[arg-type]
    "an id beyond the vocabulary": lambda s: Proposal(s.id, (7,), (0.5,)),
    "a negative id": lambda s: Proposal(s.id, (-1,), (0.5,)),
    "a float for an id": lambda s: Proposal(s.id, (1.0,), (0.5,)),  # type: ignore[arg-type]
    "a truth value for an id": lambda s: Proposal(s.id, (True,), (0.5,)),
    "a string for ids": lambda s: Proposal(s.id, "12", (0.5, 0.5)),  # type: ignore[arg-type]
    "a list for ids": lambda s: Proposal(s.id, [1], (0.5,)),  # type: ignore[arg-type]
    "fewer estimates than tokens": lambda s: Proposal(s.id, (1, 2), (0.5,)),
    "no estimates": lambda s: Proposal(s.id, (1, 2)),
    "an estimate beyond 1": lambda s: Proposal(s.id, (1,), (1.5,)),
    "not a number for an estimate": lambda s: Proposal(s.id, (1,), (float("nan"),)),
    "far too many": lambda s: Proposal(s.id, (1,) * (MOST_DRAFTS + 1), (0.5,) * (MOST_DRAFTS + 1)),
    "a reason that is no text": lambda s: Proposal(s.id, (), (), "x", None),  # type: ignore[arg-type]
    "no proposal at all": lambda s: None,
    "a number": lambda s: 7,
    "nothing to iterate": 7,
}


class TestDrafterFaults:
    @pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK.keys())
    def test_junk_is_counted_and_dropped_and_the_request_goes_on(self, junk: Any) -> None:
        found = self.serve(junk)
        assert found.faults["drafter"] > 0
        assert found.last_fault.startswith("drafter")

    def serve(self, junk: Any) -> Engine:
        simulation = Simulation(Setting(skill=1.0))
        assert isinstance(simulation.drafter, Oracle)
        simulation.engine.drafter = Junk(junk, skill=1.0, depth=2, random=simulation.drafter.random)
        reports = self.finish(simulation)
        assert sum(row.drafted for report in reports for row in report.rows) == 0
        return simulation.engine

    def finish(self, simulation: Simulation) -> list[Report]:
        engine, asked = simulation.engine, request()
        engine.add(asked)
        reports = []
        while not engine.idle:
            reports.append(engine.step())
            simulation.check()
        emitted = [token for report in reports for row in report.rows for token in row.emitted]
        assert emitted == answer(asked, 0, CONTEXT)[0]
        return reports

    def test_one_piece_of_junk_does_not_cost_the_good_proposals(self) -> None:
        simulation = Simulation(Setting(skill=1.0))
        propose = simulation.drafter.propose
        bad = Proposal(99, (1,), (0.5,))
        simulation.drafter.propose = lambda s: [bad, *propose(s), *propose(s)]  # type: ignore[method-assign, assignment]
        reports = self.finish(simulation)
        assert sum(row.accepted for report in reports for row in report.rows) > 0
        assert simulation.engine.faults["drafter"] >= 2 * (len(reports) - 1)  # the stranger, and each second one

    @pytest.mark.parametrize("method", ["propose", "observe", "forget"])
    def test_a_drafter_that_raises_costs_its_drafts_only(self, method: str) -> None:
        simulation = Simulation(Setting(skill=1.0))

        def fail(*_: Any, **__: Any) -> Any:
            raise RuntimeError("no idea")

        setattr(simulation.engine.drafter, method, fail)
        if method == "observe":
            simulation.engine.observers = (*simulation.engine.observers, fail)
        self.finish_any(simulation)
        assert sum(simulation.engine.faults.values()) > 0

    def finish_any(self, simulation: Simulation) -> None:
        asked = request()
        simulation.engine.add(asked)
        for _ in range(50):
            if simulation.engine.idle:
                break
            simulation.engine.step()
            simulation.check()
        assert simulation.outcome.answers["r0", 0] == answer(asked, 0, CONTEXT)[0]

    def test_drafts_deeper_than_the_answer_are_cut_not_dropped(self) -> None:
        simulation = Simulation(Setting(skill=1.0, depth=50))
        outcome = simulation.ask(request(0, max_tokens=8))
        assert [(row.drafted, row.accepted) for report in outcome.reports for row in report.rows] == [(0, 0), (6, 6)]

    def test_a_guess_before_the_prompt_is_read_is_no_fault(self) -> None:
        simulation = Simulation(Setting(skill=1.0, budget=4))
        simulation.drafter.propose = lambda sequences: [  # type: ignore[method-assign]
            Proposal(sequence.id, (1,), (0.5,), "x") for sequence in sequences
        ]
        simulation.ask(request())
        assert simulation.engine.faults == {}

    def test_who_left_is_forgotten_exactly_once_each_time(self) -> None:
        simulation = Simulation(Setting(blocks=11))
        forgotten: list[int] = []
        simulation.engine.drafter.forget = forgotten.append  # type: ignore[method-assign, assignment]
        for number in range(6):
            simulation.engine.add(request(number, length=9, max_tokens=20))
        simulation.step()
        simulation.engine.abort("r1")
        while not simulation.engine.idle:
            simulation.step()
        preempted = [sequence for report in simulation.outcome.reports for sequence in report.preempted]
        assert preempted
        assert sorted(forgotten) == sorted([*preempted, *range(6)])


class BrokenGovernor(FixedLimits):
    """Works until it does not."""

    def __init__(self, works: int) -> None:
        super().__init__()
        self.works = works

    def price(self, proposals: Sequence[Proposal], view: View) -> Limits:
        self.works -= 1
        if self.works < 0:
            raise ZeroDivisionError("no rate measured yet")
        return super().price(proposals, view)


class TestOtherFaults:
    @pytest.mark.parametrize("works", range(4))
    def test_without_a_governor_the_last_limits_hold_and_nothing_is_drafted(self, works: int) -> None:
        simulation = Simulation(Setting(skill=1.0))
        simulation.engine.governor = BrokenGovernor(works)
        asked = request(max_tokens=20)
        simulation.engine.add(asked)
        while not simulation.engine.idle:
            simulation.engine.step()
            simulation.check()
        assert simulation.outcome.answers["r0", 0] == answer(asked, 0, CONTEXT)[0]
        assert simulation.engine.faults["governor"] > 0
        drafted = [row.drafted for report in simulation.outcome.reports for row in report.rows]
        assert sum(drafted[works + 1 :]) == 0

    def test_a_governor_may_name_sequences_that_are_gone(self) -> None:
        simulation = Simulation(Setting())

        class Late(FixedLimits):
            def price(self, proposals: Sequence[Proposal], view: View) -> Limits:
                return Limits(drafts={99: Proposal(99, (1,), (0.5,))})

        simulation.engine.governor = Late()
        simulation.ask(request())

    def test_the_reason_of_a_silent_drafter_survives_a_governor_that_drops_it(self) -> None:
        simulation = Simulation(Setting())

        class Silent(NoDraft):
            def propose(self, sequences: Sequence[SequenceView]) -> Sequence[Proposal]:
                return [Proposal(sequence.id, reason="no_match") for sequence in sequences]

        class Mute(FixedLimits):
            def price(self, proposals: Sequence[Proposal], view: View) -> Limits:
                return Limits()

        simulation.engine.drafter, simulation.engine.governor = Silent(), Mute()
        outcome = simulation.ask(request(0, max_tokens=4))
        reasons = [row.reason for report in outcome.reports for row in report.rows]
        assert reasons == ["", "no_match", "no_match", "tail"]

    def test_an_observer_that_raises_misses_a_report_and_the_others_do_not(self) -> None:
        simulation = Simulation(Setting())

        def fail(report: Report) -> None:
            raise RuntimeError("the disk is full")

        simulation.engine.observers = (fail, *simulation.engine.observers)
        simulation.engine.add(request())
        while not simulation.engine.idle:
            simulation.engine.step()
        assert simulation.engine.faults["observer"] == len(simulation.outcome.reports)
        assert simulation.outcome.finished["r0", 0] is FinishReason.LENGTH

    def test_a_stop_condition_that_raises_ends_its_own_answer(self) -> None:
        simulation = Simulation(Setting())

        class Broken:
            def __call__(self, token: int) -> bool:
                raise ValueError("no such rule")

        simulation.engine.add(request(0, stop=Broken))
        simulation.engine.add(request(1))
        while not simulation.engine.idle:
            simulation.step()
        outcome = simulation.outcome
        assert outcome.finished == {("r0", 0): FinishReason.ERROR, ("r1", 0): FinishReason.LENGTH}
        assert outcome.answers["r1", 0] == answer(request(1), 0, CONTEXT)[0]


class TestAbort:
    @pytest.mark.parametrize("moment", ["pass", "delivery", "guess", "price", "between"])
    @pytest.mark.parametrize("step", [0, 1, 2, 4])
    def test_an_abort_at_every_point_of_a_step_frees_everything_by_the_next(self, moment: str, step: int) -> None:
        simulation = Simulation(Setting(skill=0.7, lookahead=1, budget=6))
        engine = simulation.engine
        now = count()

        def leave(*_: Any) -> None:
            if next(now) == step:
                engine.abort("r0")

        self.at(simulation, moment, leave)
        engine.add(request(0, choices=2, max_tokens=30))
        engine.add(request(1, max_tokens=30))
        while "r0" not in {name for name, _ in simulation.outcome.finished}:
            simulation.step()
            if moment == "between":
                leave()
        holding = {s.request.id for s in simulation.scheduler.running} | {
            s.request.id for s in simulation.scheduler.queue
        }
        assert holding <= {"r1"}
        while not engine.idle:
            simulation.step()
        assert simulation.outcome.answers["r1", 0] == answer(request(1, max_tokens=30), 0, CONTEXT)[0]
        assert not any(holders for space in simulation.space for holders in space.pool.holders)
        simulation.audit()

    def at(self, simulation: Simulation, moment: str, leave: Any) -> None:
        engine = simulation.engine
        if moment == "pass":
            simulation.runner.hook = leave
        elif moment == "delivery":
            engine.observers = (leave, *engine.observers)
        elif moment == "guess":
            propose = engine.drafter.propose
            engine.drafter.propose = lambda s: (leave(), propose(s))[1]  # type: ignore[method-assign, assignment]
        elif moment == "price":
            price = engine.governor.price
            engine.governor.price = lambda p, v: (leave(), price(p, v))[1]  # type: ignore[method-assign, assignment]

    def test_an_abort_of_a_request_that_is_over_changes_nothing(self) -> None:
        simulation = Simulation(Setting())
        simulation.ask(request())
        simulation.engine.abort("r0")
        assert simulation.step().ended == ()
        assert simulation.outcome.finished == {("r0", 0): FinishReason.LENGTH}


def test_sampling_choice_and_seed_reach_the_runner() -> None:
    simulation = Simulation(Setting())
    seen: list[Row] = []
    simulation.runner.hook = seen.extend
    simulation.ask(request(0, choices=2, sampling=Sampling(temperature=0.5, seed=9)))
    assert {row.choice for row in seen} == {0, 1}
    assert {row.sampling for row in seen} == {Sampling(temperature=0.5, seed=9)}


def test_the_runner_is_a_protocol_and_no_base_class() -> None:
    assert AuditingRunner.__mro__ == (AuditingRunner, object)
