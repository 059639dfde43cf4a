"""The accounts add up, whatever the engine did."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.observe.reports import Run, admission, report, request, row, runs
from twostroke.observe.phases import Accounts, Finished, accepted_drafts, as_json, total
from twostroke.types import End, FinishReason, Phases, Report, Request


class FixedRates:
    """Ten milliseconds a prompt position; half a second a step and a tenth more for each position."""

    def prefill_s(self, tokens: int) -> float:
        return 0.01 * tokens

    def step_s(self, positions: int) -> float | None:
        return 0.5 + 0.1 * positions


class NoRates:
    def prefill_s(self, tokens: int) -> float:
        return 0.0

    def step_s(self, positions: int) -> float | None:
        return None


def fold(requests: list[Request], reports: list[Report], rates: FixedRates | NoRates | None = None) -> list[Finished]:
    closed: list[Finished] = []
    accounts = Accounts(rates or FixedRates(), sinks=(closed.append,))
    for asked in requests:
        accounts.accept(asked)
    for told in reports:
        accounts(told)
    return closed


def account(*reports: Report, asked: Request | None = None) -> Phases:
    (finished,) = fold([asked or request()], list(reports))
    return finished.phases


STOP = FinishReason.STOP


def test_the_example_of_one_answer() -> None:
    phases = account(
        report(row(computed=4, emitted=0), at_s=100.5, took_s=1, admitted=(admission(cached=4),)),
        report(row(computed=2, emitted=1), at_s=101.5, took_s=1),
        report(row(computed=4, emitted=3, drafted=3, accepted=2), at_s=102.5, took_s=2, draft_s=0.25),
        report(row(computed=1, emitted=1, reason="no_match", finished=STOP), at_s=104.5, took_s=0.5),
    )
    assert phases.queue_ms == pytest.approx(500)
    assert phases.ttft_ms == pytest.approx(2500)
    assert phases.prefill.ms == pytest.approx(2000)
    assert phases.decode.ms == pytest.approx(2500)
    assert phases.tpot_ms == pytest.approx(2500 / 4)
    assert (phases.prefill.prompt_tokens, phases.prefill.cached_tokens, phases.prefill.computed_tokens) == (10, 4, 6)
    assert phases.prefill.miss_reason == "cold"
    assert phases.prefill.saved_ms == pytest.approx(40)
    decode = phases.decode
    assert (decode.output_tokens, decode.steps, decode.drafted, decode.accepted) == (5, 3, 3, 2)
    assert decode.accepted_per_position == (1, 1, 0)
    assert decode.undrafted == {"no_match": 1}
    assert (decode.drafted_steps, decode.drafted_by, decode.accepted_by) == (1, {"ngram": 3}, {"ngram": 2})
    assert decode.draft_ms == pytest.approx(250)
    assert decode.saved_ms == pytest.approx(3 * 2000 * 0.6 / 0.9 - 2000 - 250)


@given(runs())
def test_every_token_is_a_step_or_an_accepted_draft(run: Run) -> None:
    for finished in fold(run.requests, run.reports):
        decode = finished.phases.decode
        assert decode.steps + decode.accepted == decode.output_tokens
        assert sum(decode.accepted_per_position) == decode.accepted == sum(decode.accepted_by.values())
        assert decode.drafted == sum(decode.drafted_by.values())
        assert list(decode.accepted_per_position) == sorted(decode.accepted_per_position, reverse=True)
        assert decode.drafted_steps + sum(decode.undrafted.values()) <= decode.steps


@given(runs())
def test_wall_times_add_up_to_the_whole(run: Run) -> None:
    for finished in fold(run.requests, run.reports):
        phases = finished.phases
        assert phases.ttft_ms == pytest.approx(phases.queue_ms + phases.prefill.ms)
        whole = phases.queue_ms + phases.prefill.ms + phases.decode.ms
        assert whole == pytest.approx(finished.total_s * 1000)
        assert min(phases.queue_ms, phases.prefill.ms, phases.decode.ms) >= 0


@given(runs())
def test_shares_of_all_answers_add_up_to_the_steps(run: Run) -> None:
    shares = sum(f.phases.prefill.own_ms + f.phases.decode.own_ms for f in fold(run.requests, run.reports))
    steps = sum(r.ended_s - r.started_s for r in run.reports if r.rows)
    assert shares == pytest.approx(steps * 1000)


def test_a_slow_moment_is_slow_in_both_what_was_and_what_would_have_been() -> None:
    def saved(scale: float) -> float:
        return account(
            report(row(), admitted=(admission(),)),
            report(row(computed=4, emitted=3, drafted=3, accepted=2, finished=STOP), at_s=101, took_s=scale),
        ).decode.saved_ms

    assert saved(2.0) == pytest.approx(2 * saved(1.0))
    assert saved(1.0) > 0


@given(runs())
def test_every_choice_closes_exactly_once(run: Run) -> None:
    closed = Counter((f.request, f.choice) for f in fold(run.requests, run.reports))
    assert closed == Counter((r.id, c) for r in run.requests for c in range(r.choices))


@given(runs())
def test_without_drafts_and_hits_nothing_was_saved(run: Run) -> None:
    plain = [
        replace(r, draft_s=0.0, rows=tuple(replace(x, drafted=0, accepted=0, emitted=x.emitted[:1]) for x in r.rows))
        for r in run.reports
    ]
    for finished in fold(run.requests, plain):
        assert finished.phases.decode.saved_ms == 0
        assert finished.phases.prefill.saved_ms == 0


@given(runs())
def test_unknown_rates_claim_no_more_than_accepted_tokens_times_the_step(run: Run) -> None:
    for finished in fold(run.requests, run.reports, NoRates()):
        longest = max(r.ended_s - r.started_s for r in run.reports)
        assert finished.phases.decode.saved_ms <= finished.phases.decode.accepted * longest * 1000 + 1e-6
        assert finished.phases.prefill.saved_ms == 0


def test_a_stop_inside_the_drafts_counts_its_last_token_as_the_step() -> None:
    assert accepted_drafts(row(emitted=2, drafted=4, accepted=2)) == 1
    assert accepted_drafts(row(emitted=3, drafted=4, accepted=2)) == 2
    assert accepted_drafts(row(emitted=0)) == 0


def test_a_second_admission_after_preemption_changes_neither_queue_nor_cached() -> None:
    phases = account(
        report(row(computed=6, emitted=1), at_s=101, admitted=(admission(cached=4),)),
        report(at_s=102),
        report(row(computed=3, emitted=0), at_s=103, admitted=(admission(cached=8, resumed=True),)),
        report(row(emitted=1, finished=STOP), at_s=104),
    )
    assert phases.queue_ms == pytest.approx(1000)
    assert phases.prefill.cached_tokens == 4
    assert phases.decode.ms == pytest.approx(3000)


def test_a_request_that_ends_in_the_queue_has_only_a_queue() -> None:
    phases = account(report(at_s=103, took_s=1, ended=(End(1, "r", 0, FinishReason.ABORT),)))
    assert (phases.queue_ms, phases.prefill.ms, phases.decode.ms) == (4000, 0, 0)
    assert (phases.decode.output_tokens, phases.tpot_ms) == (0, 0)


def test_a_failed_answer_keeps_its_error() -> None:
    (finished,) = fold([request()], [report(ended=(End(1, "r", 0, FinishReason.ERROR, "boom"),))])
    assert (finished.reason, finished.error) == (FinishReason.ERROR, "boom")


def test_an_arrival_nobody_noted_is_no_wait() -> None:
    phases = account(
        report(row(finished=STOP), at_s=50, admitted=(admission(),)), asked=replace(request(), arrived_s=0.0)
    )
    assert phases.queue_ms == 0
    assert phases.ttft_ms == pytest.approx(1000)


def test_the_closed_accounts_are_those_of_the_latest_report() -> None:
    accounts = Accounts(FixedRates())
    accounts.accept(request(choices=2))
    accounts(report(row(choice=0, finished=STOP), row(choice=1)))
    assert accounts.phases("r", 0) is not None
    assert accounts.phases("r", 1) is None
    accounts(report(row(choice=1, finished=STOP)))
    assert accounts.phases("r", 0) is None
    assert accounts.phases("r", 1) is not None


def test_forgotten_and_unknown_requests_leave_no_account() -> None:
    closed: list[Finished] = []
    accounts = Accounts(FixedRates(), sinks=(closed.append,))
    accounts.accept(request())
    accounts.forget(request())
    accounts(report(row(finished=STOP), row("stranger", finished=STOP)))
    assert closed == []


def test_the_cost_of_looking_in_vain_is_charged_but_not_of_a_switch_that_is_off() -> None:
    def charged(reason: str) -> float:
        phases = account(
            report(row(), admitted=(admission(),)),
            report(row(reason=reason, finished=STOP), at_s=101, draft_s=0.125),
        )
        return phases.decode.draft_ms

    assert charged("no_match") == pytest.approx(125)
    assert charged("disabled") == 0


@given(runs())
def test_the_sum_of_choices_adds_work_and_keeps_the_longest_times(run: Run) -> None:
    accounts = [f.phases for f in fold(run.requests, run.reports)]
    whole = total(accounts)
    assert whole.decode.output_tokens == sum(a.decode.output_tokens for a in accounts)
    assert whole.decode.steps + whole.decode.accepted == whole.decode.output_tokens
    assert sum(whole.decode.accepted_per_position) == whole.decode.accepted
    assert whole.decode.ms == max(a.decode.ms for a in accounts)
    assert whole.decode.own_ms == pytest.approx(sum(a.decode.own_ms for a in accounts))
    assert set(whole.decode.accepted_by) == {name for a in accounts for name in a.decode.accepted_by}


@given(runs())
def test_the_sum_of_one_account_is_itself(run: Run) -> None:
    for finished in fold(run.requests, run.reports):
        assert total([finished.phases]) == finished.phases


def test_nothing_has_no_sum() -> None:
    with pytest.raises(ValueError, match="no accounts"):
        total([])


@given(runs(), st.data())
def test_json_keeps_every_field(run: Run, data: st.DataObject) -> None:
    finished = data.draw(st.sampled_from(fold(run.requests, run.reports)))
    read = json.loads(json.dumps(as_json(finished.phases)))
    assert read["decode"]["output_tokens"] == finished.phases.decode.output_tokens
    assert read["decode"]["accepted_per_position"] == list(finished.phases.decode.accepted_per_position)
    assert read["prefill"]["miss_reason"] == finished.phases.prefill.miss_reason
    assert read["ttft_ms"] == round(finished.phases.ttft_ms, 3)
