"""What goes wrong elsewhere when a prefix cache and speculation are both on, turned into behaviour to keep.

Each test is named after the behaviour.  A test that compares warm with cold asserts that there were hits, and one that
compares with drafts and without asserts that there were drafts, so that none can pass for want of what it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

import pytest

from tests.composition.fakes import DraftModel, Oracle, answer, digests, pick
from tests.composition.simulation import BLOCK, CONTEXT, Arrival, Outcome, Setting, Simulation, workload
from twostroke.cache.keys import Keys
from twostroke.engine.protocols import SequenceView
from twostroke.types import FinishReason, Proposal, Request, SequenceReport

DRAFTERS = [
    Setting(skill=0.0),
    Setting(skill=1.0),
    Setting(skill=0.7, lookahead=0),
    Setting(skill=0.7, lookahead=1),
    Setting(skill=0.7, lookahead=2),
]
MODELS = [setting for setting in DRAFTERS if setting.lookahead is not None]


def label(setting: Setting) -> str:
    return f"skill {setting.skill}, lookahead {setting.lookahead}"


each_drafter = pytest.mark.parametrize("setting", DRAFTERS, ids=label)
each_model = pytest.mark.parametrize("setting", MODELS, ids=label)


def text(length: int, seed: int = 0) -> tuple[int, ...]:
    random = Random(seed)
    return tuple(random.randrange(7) for _ in range(length))


def ask(name: str, prompt: Sequence[int], max_tokens: int = 8, **fields: Any) -> Request:
    return Request(name, tuple(prompt), max_tokens, **fields)


def cached(setting: Setting, *requests: Request) -> list[int]:
    """What each request reused, asked one after another."""
    simulation = Simulation(setting)
    for request in requests:
        simulation.ask(request)
    assert setting.skill is None or simulation.outcome.counts["drafted"], "nothing was drafted"
    return [simulation.outcome.cached[request.id, 0] for request in requests]


def rows(outcome: Outcome, name: str) -> list[SequenceReport]:
    return [row for report in outcome.reports for row in report.rows if row.request == name]


def model(simulation: Simulation) -> DraftModel:
    assert isinstance(simulation.drafter, DraftModel)
    return simulation.drafter


# -- speculation does not lower the hits -----------------------------------------------------------------------------


@each_drafter
def test_turning_speculation_on_never_changes_cached_tokens(setting: Setting) -> None:
    trunk = text(200)
    simulation = Simulation(replace(setting, block=16, context=210, blocks=40, draft_blocks=40, budget=256, pace=256))
    found = []
    for length in range(1, 201):
        for turn in ("cold", "warm"):
            simulation.engine.add(ask(f"{length} {turn}", trunk[:length], 4, namespace=str(length)))
            while not simulation.engine.idle:
                simulation.engine.step()
        found.append(simulation.outcome.cached[f"{length} warm", 0])
    simulation.check()
    assert not simulation.engine.faults
    assert simulation.outcome.counts["drafted"] > 200
    assert found == [length - 1 for length in range(1, 201)]


@each_drafter
def test_speculation_switched_off_for_a_request_leaves_its_hit_as_it_was(setting: Setting) -> None:
    prompts = [
        ask("a", text(22)),
        ask("b", text(30)),
        ask("c", text(17), speculate="off"),
        ask("d", (*text(9), 6, 6, 6)),
    ]
    assert cached(setting, *prompts) == cached(Setting(), *prompts)
    assert cached(setting, *prompts)[2] == 16


@pytest.mark.parametrize("draft_blocks", [0, 1, 3])
@pytest.mark.parametrize("lookahead", [0, 1, 2])
def test_a_draft_miss_never_reduces_the_targets_hit(lookahead: int, draft_blocks: int) -> None:
    simulation = Simulation(Setting(skill=0.7, lookahead=lookahead, draft_blocks=draft_blocks))
    for number in range(4):
        simulation.ask(ask(f"other{number}", text(20, seed=number + 1)))
    simulation.ask(ask("cold", text(22)))
    simulation.ask(ask("warm", text(22)))
    assert simulation.outcome.cached["warm", 0] == 21
    assert model(simulation).counts.refused > 0 or draft_blocks == 3


@each_drafter
def test_drafts_do_not_evict_good_prefixes_however_full_the_pool_is(setting: Setting) -> None:
    for blocks in range(11, 30, 3):
        requests = [ask(str(n), text(18, seed=n % 5), 5) for n in range(14)]
        plain, drafting = Simulation(Setting(blocks=blocks)), Simulation(replace(setting, blocks=blocks))
        for request in requests:
            plain.ask(request)
            drafting.ask(request)
        assert drafting.outcome.cached == plain.outcome.cached
        assert drafting.outcome.counts["evicted"] == plain.outcome.counts["evicted"]
        assert drafting.outcome.counts["drafted"] > 0


def test_a_pool_in_less_than_full_use_evicts_nothing_for_drafts() -> None:
    outcome = Simulation(Setting(skill=0.0, depth=40, blocks=12)).ask(ask("a", text(9), 20))
    assert outcome.counts["drafted"] > 0
    assert outcome.counts["evicted"] == 0


@each_drafter
def test_the_next_turn_reuses_all_of_the_last_one_but_one_token(setting: Setting) -> None:
    first = ask("first", text(13), 11)
    turn = (*first.prompt, *answer(first, 0, CONTEXT)[0])
    assert len(turn) == 24
    assert cached(setting, first, ask("second", (*turn, 1, 2, 3))) == [0, 23]


@each_drafter
def test_reported_reuse_is_what_was_not_computed(setting: Setting) -> None:
    simulation = Simulation(setting)
    for name, prompt in (("a", text(22)), ("b", text(30)), ("c", (*text(10), 5, 5, 5)), ("d", text(22))):
        request = ask(name, prompt)
        outcome = simulation.ask(request)
        computed = sum(row.computed - row.drafted for row in rows(outcome, name))
        accepted = sum(row.accepted for row in rows(outcome, name))
        known = len(prompt) + 8 - 1  # the last token is never computed
        assert outcome.cached[name, 0] + computed + accepted == known
    assert outcome.counts["cached"] > 0


# -- a hit of the target, and the drafter's state --------------------------------------------------------------------


@each_model
def test_a_target_hit_without_draft_state_is_caught_up_not_read(setting: Setting) -> None:
    simulation = Simulation(setting)
    simulation.ask(ask("silent", text(22), speculate="off"))
    assert model(simulation).counts.computed == 0
    simulation.ask(ask("drafting", text(22), 14))
    assert simulation.outcome.cached["drafting", 0] == 21
    assert model(simulation).counts.reused == 0
    assert model(simulation).counts.silent > 0
    assert simulation.outcome.counts["accepted"] > 0


@each_model
def test_catching_up_is_bounded_per_step_and_off_the_first_token_path(setting: Setting) -> None:
    simulation = Simulation(replace(setting, pace=3))
    simulation.ask(ask("silent", text(22), speculate="off"))
    simulation.engine.add(ask("drafting", text(22), 14))
    first = simulation.step()
    assert first.rows[0].emitted
    assert model(simulation).counts.computed == 3
    simulation.step()
    assert model(simulation).counts.computed == 6
    assert simulation.outcome.reports[-1].rows[0].reason == "catching_up"


@each_model
def test_a_second_identical_request_drafts_as_well_as_the_first(setting: Setting) -> None:
    simulation = Simulation(replace(setting, skill=1.0, pace=64))
    simulation.ask(ask("first", text(22), 14))
    simulation.ask(ask("second", text(22), 14))
    assert simulation.outcome.cached["second", 0] == 21
    assert model(simulation).counts.reused > 0
    first, second = ([(r.drafted, r.accepted) for r in rows(simulation.outcome, name)] for name in ("first", "second"))
    assert first == second
    assert sum(accepted for _, accepted in first) > 0


@pytest.mark.parametrize("length", range(1, 23))
@each_model
def test_acceptance_is_the_same_however_much_of_the_prompt_was_known(setting: Setting, length: int) -> None:
    simulation = Simulation(replace(setting, skill=1.0, pace=64))
    simulation.ask(ask("before", text(22)[:length]))
    simulation.ask(ask("after", text(22), 9))
    alone = Simulation(replace(setting, skill=1.0, pace=64)).ask(ask("after", text(22), 9))
    assert simulation.outcome.cached["after", 0] >= length - 1
    found, wanted = ([(r.drafted, r.accepted) for r in rows(o, "after")] for o in (simulation.outcome, alone))
    assert found == wanted


@each_model
def test_draft_blocks_do_not_depend_on_where_the_target_resumes(setting: Setting) -> None:
    simulation = Simulation(setting)
    simulation.ask(ask("cold", text(22), speculate="off"))
    simulation.engine.add(ask("warm", text(22), 14))
    while not model(simulation).counts.proposed:
        simulation.step()
    (state,) = model(simulation).states.values()
    assert len(state.table.blocks) * BLOCK >= 22


@pytest.mark.parametrize("place", range(1, 22))
@each_model
def test_prompts_that_go_on_differently_do_not_influence_each_other(setting: Setting, place: int) -> None:
    one = text(22)
    other = (*one[:place], *((token + 1) % 7 for token in one[place:]))
    simulation = Simulation(replace(setting, skill=1.0, pace=64))
    for number, prompt in enumerate((one, other, one, other)):
        simulation.ask(ask(str(number), prompt, 5))
        simulation.audit()
    assert [simulation.outcome.cached[str(number), 0] for number in range(4)] == [0, place, 21, 21]


@each_model
def test_a_long_prompt_and_then_a_short_one(setting: Setting) -> None:
    simulation = Simulation(replace(setting, skill=1.0, draft_blocks=9))
    for number, length in enumerate((34, 3, 30, 1, 33, 2)):
        simulation.ask(ask(str(number), text(length), 8))
    assert simulation.outcome.counts["accepted"] > 0


@pytest.mark.parametrize("draft_blocks", range(7))
@each_model
def test_little_draft_memory_costs_drafts_and_nothing_else(setting: Setting, draft_blocks: int) -> None:
    simulation = Simulation(replace(setting, draft_blocks=draft_blocks))
    outcome = simulation.ask(*(ask(str(number), text(14, seed=number), 8) for number in range(4)))
    assert model(simulation).counts.refused > 0
    assert outcome.counts["preempted"] == 0


# -- nothing is corrupted --------------------------------------------------------------------------------------------


class WrongAt(Oracle):
    """Right at every position but one."""

    def __init__(self, wrong: int, depth: int) -> None:
        super().__init__(1.0, depth, Random(0))
        self.wrong = wrong

    def guess(self, sequence: SequenceView) -> Proposal:
        right = super().guess(sequence)
        tokens = list(right.tokens)
        tokens[self.wrong] = (tokens[self.wrong] + 1) % 7
        return replace(right, tokens=tuple(tokens))


@pytest.mark.parametrize("place", range(9))
@pytest.mark.parametrize("length", [5, 7, 8])
def test_only_committed_tokens_are_published_wherever_a_draft_is_rejected(place: int, length: int) -> None:
    simulation = Simulation(Setting(depth=9))
    simulation.engine.drafter = drafter = WrongAt(place, 9)
    simulation.engine.observers = (*simulation.engine.observers, drafter.observe)
    request = ask("a", text(length), 25)
    simulation.engine.add(request)
    while not simulation.engine.idle:
        simulation.step()
        simulation.audit()
    simulation.settle([Arrival(request)])
    assert simulation.outcome.counts["rejected"] > 0
    assert {row.accepted for row in rows(simulation.outcome, "a")[1:-1]} <= {place}


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 39, 40, 41, 100])
@pytest.mark.parametrize("blocks", [11, 64])
def test_drafts_may_be_deeper_than_every_bound(depth: int, blocks: int) -> None:
    for skill in (0.0, 0.9, 1.0):
        outcome = Simulation(Setting(skill=skill, depth=depth, blocks=blocks, budget=200)).run(workload(3))
        assert (outcome.counts["drafted"] > 0) == (depth > 0)


@each_drafter
def test_cold_and_warm_answers_are_equal_and_warm_ones_were_hits(setting: Setting) -> None:
    simulation = Simulation(setting)
    requests = [ask(f"cold{n}", text(5 + 4 * n), 9) for n in range(5)]
    for request in requests:
        simulation.ask(request)
    for request in requests:
        simulation.ask(replace(request, id=request.id.replace("cold", "warm")))
    for n, request in enumerate(requests):
        assert simulation.outcome.answers[f"warm{n}", 0] == simulation.outcome.answers[request.id, 0]
        assert simulation.outcome.cached[f"warm{n}", 0] == len(request.prompt) - 1


@each_drafter
def test_many_at_once_with_reuse_and_drafts(setting: Setting) -> None:
    simulation = Simulation(replace(setting, blocks=18, spare=4, sequences=8, budget=20, draft_blocks=40))
    tables: list[tuple[int, ...]] = []
    simulation.runner.hook = lambda rows: tables.extend(row.blocks for row in rows)
    for seed in range(3):
        arrivals = [
            replace(arrival, request=replace(arrival.request, id=f"{seed} {arrival.request.id}"))
            for arrival in workload(seed, requests=12)
        ]
        simulation.run(arrivals) if not seed else simulation.ask(*(arrival.request for arrival in arrivals))
    counts = simulation.outcome.counts
    assert all(counts[name] > 0 for name in ("cached", "copies", "drafted", "preempted", "chunked"))
    assert any(list(table) != sorted(table) for table in tables), "no table is fragmented"


@each_drafter
def test_a_then_b_then_a_again(setting: Setting) -> None:
    simulation = Simulation(setting)
    one, two = text(19), (*text(8), *text(11, seed=5))
    for name, prompt in (("a", one), ("b", two), ("a again", one), ("b again", two)):
        simulation.ask(ask(name, prompt, 10))
    assert simulation.outcome.answers["a", 0] == simulation.outcome.answers["a again", 0]
    assert simulation.outcome.answers["b", 0] == simulation.outcome.answers["b again", 0]
    assert [simulation.outcome.cached[name, 0] for name in ("a again", "b again")] == [18, 18]


@each_drafter
@pytest.mark.parametrize("blocks", range(11, 16))
def test_preempted_at_every_point_and_resumed(setting: Setting, blocks: int) -> None:
    simulation = Simulation(replace(setting, blocks=blocks, draft_blocks=20, budget=13))
    outcome = simulation.ask(*(ask(str(n), text(3 + n, seed=n), 20) for n in range(5)))
    assert outcome.counts["preempted"] > 0
    assert outcome.counts["drafted"] > 0


@pytest.mark.parametrize("point", ["before the plan", "in the pass", "as tokens are told", "as it is guessed"])
@each_drafter
def test_aborted_at_every_point_of_every_step(setting: Setting, point: str) -> None:
    """Of two answers that share a prompt one leaves; the other, and a third that comes later, never notice."""
    asked = [ask("stays", text(14), 9), ask("leaves", (*text(11), 2), 12)]
    ended = set()
    for moment in range(14):
        simulation = Simulation(replace(setting, budget=9))
        at_point(simulation, point, moment, lambda s=simulation: s.engine.abort("leaves"))
        for request in asked:
            simulation.engine.add(request)
        while not simulation.engine.idle:
            simulation.step()
        later = ask("later", text(16), 4)
        simulation.ask(later)
        simulation.settle([Arrival(asked[0]), Arrival(asked[1], abort=moment), Arrival(later)])
        ended.add(simulation.outcome.finished["leaves", 0])
    assert ended == {FinishReason.ABORT, FinishReason.LENGTH}


def at_point(simulation: Simulation, point: str, moment: int, action: Callable[[], None]) -> None:
    """Have `action` done once, at this point of step number `moment`."""
    engine, calls = simulation.engine, count()

    def strike(*_: Any) -> None:
        if next(calls) == moment:
            action()

    def struck(call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any) -> Any:
            strike()
            return call(*arguments)

        return instead

    if point == "in the pass":
        simulation.runner.hook = strike
    elif point == "as tokens are told":
        engine.observers = (*engine.observers, strike)
    elif point == "as it is guessed":
        engine.drafter.propose = struck(engine.drafter.propose)  # type: ignore[method-assign]
    else:
        engine.scheduler.plan = struck(engine.scheduler.plan)  # type: ignore[method-assign]


@pytest.mark.parametrize("moment", range(1, 14))
def test_everything_forgotten_in_the_middle_of_drafting_changes_no_answer(moment: int) -> None:
    simulation = Simulation(Setting(skill=0.8, lookahead=1, budget=9))
    requests = [ask(str(n), text(12 + n, seed=n % 2), 12) for n in range(4)]
    for request in requests:
        simulation.engine.add(request)
    for step in range(200):
        if simulation.engine.idle:
            break
        if step == moment:
            simulation.space.clear()
        simulation.step()
    simulation.settle([Arrival(request) for request in requests])


def test_a_cache_that_fails_is_a_recompute_and_no_more() -> None:
    random = Random(4)
    for setting in (Setting(), *DRAFTERS):
        simulation = Simulation(setting)
        index = simulation.scheduler.space.index
        child = index.child

        def sometimes(parent: Any, tokens: Any, child: Any = child) -> Any:
            if random.random() < 0.1:
                raise OSError("the index is unreachable")
            return child(parent, tokens)

        index.child = sometimes  # type: ignore[method-assign, assignment]
        requests = [ask(str(n), text(12 + n), 12) for n in range(12)]
        for request in requests:
            simulation.engine.add(request)
        while not simulation.engine.idle:
            simulation.engine.step()
            simulation.space.check()
        simulation.settle([Arrival(request) for request in requests])
        assert simulation.scheduler.space.faults > 0
        assert simulation.outcome.counts["cached"] > 0


def test_keys_that_collide_serve_no_foreign_kv() -> None:
    for width in (0, 1, 2):
        simulation = Simulation(Setting(skill=0.8, lookahead=1))
        for space in simulation.space:
            short = Keys(space.group).digest
            space.index.keys = Keys(space.group, digest=lambda *f, short=short, width=width: short(*f)[:width])
        arrivals = workload(5)
        for arrival in arrivals:
            simulation.engine.add(arrival.request)
        while not simulation.engine.idle:
            simulation.engine.step()
            simulation.space.check()
        assert not simulation.engine.faults
        simulation.settle([Arrival(arrival.request) for arrival in arrivals])
        assert simulation.scheduler.space.collisions > 0 or width == 2


def test_full_acceptance_is_no_evidence_and_no_acceptance_no_excuse() -> None:
    request = ask("a", text(12), 20)
    outcomes = [Simulation(Setting(skill=skill)).ask(request) for skill in (0.0, 1.0)]
    assert [outcome.counts["accepted"] > 0 for outcome in outcomes] == [False, True]
    assert outcomes[0].answers == outcomes[1].answers


# -- memory and accounts ---------------------------------------------------------------------------------------------


def test_loading_a_drafter_changes_neither_capacity_nor_eviction_of_the_target() -> None:
    plain, loaded = Simulation(Setting(blocks=13)), Simulation(Setting(blocks=13, skill=0.0, lookahead=1))
    for number in range(12):
        for simulation in (plain, loaded):
            simulation.ask(ask(str(number), text(15, seed=number % 4), 4))
    for one, other in zip(plain.outcome.reports, loaded.outcome.reports, strict=True):
        assert (one.kv_capacity, one.kv_used, one.evicted) == (other.kv_capacity, other.kv_used, other.evicted)
        assert one.admitted == other.admitted
    assert plain.outcome.counts["evicted"] > 0


@pytest.mark.parametrize("blocks", range(11, 20))
@pytest.mark.parametrize("depth", [1, 3, 9])
def test_rejected_drafts_preempt_evict_and_refuse_nobody(blocks: int, depth: int) -> None:
    requests = [ask(str(n), text(3 + 2 * n, seed=n % 3), 12, choices=1 + n % 2) for n in range(6)]
    plain = Simulation(Setting(blocks=blocks, budget=1000)).ask(*requests)
    drafting = Simulation(Setting(blocks=blocks, budget=1000, skill=0.0, depth=depth)).ask(*requests)
    assert drafting.counts["drafted"] > 0
    assert drafting.counts["accepted"] == 0
    for one, other in zip(plain.reports, drafting.reports, strict=True):
        assert (one.admitted, one.preempted, one.evicted) == (other.admitted, other.preempted, other.evicted)
        assert [row.emitted for row in one.rows] == [row.emitted for row in other.rows]


def test_without_a_drafter_nothing_is_said_of_drafts() -> None:
    outcome = Simulation(Setting()).run(workload(2))
    told = {(row.drafted, row.accepted, row.source) for report in outcome.reports for row in report.rows}
    assert told == {(0, 0, "")}
    outcome = Simulation(Setting(skill=1.0)).ask(ask("a", text(9), 12, speculate="off"))
    assert [row.reason for row in rows(outcome, "a")[1:]] == ["disabled"] * 11
    assert outcome.counts["drafted"] == 0


@each_drafter
def test_accounts_count_delivered_tokens(setting: Setting) -> None:
    arrivals = [replace(arrival, abort=None) for arrival in workload(6, requests=12)]
    outcome = Simulation(setting).run(arrivals)
    for arrival in arrivals:
        for choice in range(arrival.request.choices):
            mine = [row for row in rows(outcome, arrival.request.id) if row.choice == choice]
            passes = sum(1 for row in mine if row.emitted)
            delivered = sum(len(row.emitted) for row in mine)
            assert delivered == len(answer(arrival.request, choice, CONTEXT)[0])
            assert passes + sum(row.accepted for row in mine) == delivered


@each_drafter
@pytest.mark.parametrize("length", [1, 9, 22])
def test_the_first_token_comes_as_early_as_without_a_drafter_cold_and_warm(setting: Setting, length: int) -> None:
    def first_token(setting: Setting) -> list[int]:
        simulation, waited = Simulation(replace(setting, budget=5)), []
        for name in ("cold", "warm"):
            simulation.engine.add(ask(name, text(length), 6))
            waited.append(0)
            while not rows(simulation.outcome, name) or not rows(simulation.outcome, name)[-1].emitted:
                assert simulation.step().rows[0].drafted == 0
                waited[-1] += 1
            while not simulation.engine.idle:
                simulation.step()
        return waited

    assert first_token(setting) == first_token(Setting()) == [-(-length // 5), 1]


# -- isolation -------------------------------------------------------------------------------------------------------


@each_model
def test_the_same_namespace_hits_and_another_does_not(setting: Setting) -> None:
    simulation = Simulation(setting)
    simulation.ask(ask("first", text(22), namespace="a"))
    simulation.ask(ask("other", text(22), namespace="b"))
    assert (simulation.outcome.cached["other", 0], model(simulation).counts.reused) == (0, 0)
    simulation.ask(ask("same", text(22), namespace="a"))
    assert simulation.outcome.cached["same", 0] == 21
    assert model(simulation).counts.reused > 0


@each_model
def test_nobody_can_tell_from_a_report_what_another_namespace_asked(setting: Setting) -> None:
    def seen(*before: Request) -> list[Any]:
        simulation = Simulation(replace(setting, skill=1.0))
        simulation.ask(*before, ask("mine", text(22), 12, namespace="b"))
        mine = [(r.start, r.computed, r.drafted, r.accepted, r.emitted) for r in rows(simulation.outcome, "mine")]
        admitted = [a for report in simulation.outcome.reports for a in report.admitted if a.request == "mine"]
        return [mine, [(a.cached, a.miss_reason) for a in admitted]]

    alone = seen(ask("theirs", text(22, seed=9), namespace="a"))
    assert seen(ask("theirs", text(22), namespace="a")) == alone
    assert alone[1] == [(0, "cold")]


def test_who_opts_out_neither_reads_nor_leaves_anything() -> None:
    simulation = Simulation(Setting(skill=0.7, lookahead=1))
    simulation.ask(ask("private", text(22), prefix_cache=False))
    assert all(len(space.index) == 0 for space in simulation.space)
    simulation.ask(ask("public", text(22)))
    assert simulation.outcome.cached["public", 0] == 0
    simulation.ask(ask("private again", text(22), prefix_cache=False))
    assert simulation.outcome.cached["private again", 0] == 0


def test_the_prediction_of_a_client_is_no_part_of_a_key() -> None:
    assert cached(Setting(), ask("a", text(22), prediction=(1, 2)), ask("b", text(22), prediction=(3,)))[1] == 21


def test_the_model_of_the_suite_is_a_function_of_tokens_seed_choice_and_position() -> None:
    assert digests("", (1, 2, 3)) == digests("", [1, 2, 3])
    assert len({digests("", (1, 2))[-1], digests("", (2, 1))[-1], digests("b", (1, 2))[-1]}) == 3
    assert len({pick(5, seed, choice, place) for seed in range(9) for choice in range(9) for place in range(9)}) == 7
