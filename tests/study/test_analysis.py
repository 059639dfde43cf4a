"""What an analysis says of whole studies: true effects, lying servers, lost requests, controls, accounts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from tests.study.synthetic import Truth, heavy, normal, records
from twostroke.errors import ConfigError
from twostroke.study.analysis import analyse
from twostroke.study.analysis.latency import distribution, tokens_per_s
from twostroke.study.analysis.result import Effect, Finding, Interaction, LoadAnalysis, Phase, Severity, WarmCold
from twostroke.study.arms import ARMS, BY_NAME
from twostroke.study.records import Record

Change = Callable[[Record], Record]


def headline(of: list[Record]) -> LoadAnalysis:
    return analyse(of, resamples=2_000).headline


def changed(of: list[Record], arms: tuple[str, ...], change: Change) -> list[Record]:
    return [change(record) if record.arm in arms else record for record in of]


def effect(found: LoadAnalysis, switch: str, phase: Phase, other_on: bool) -> Effect:
    return next(e for e in found.effects if (e.switch, e.phase, e.other_on) == (switch, phase, other_on))


def interaction(found: LoadAnalysis, phase: Phase) -> Interaction:
    return next(one for one in found.interactions if one.phase == phase)


def said(found: LoadAnalysis, subject: str, severity: Severity) -> str:
    return "\n".join(f.sentence for f in found.findings if f.subject == subject and f.severity == severity)


def invalid(found: LoadAnalysis) -> list[str]:
    return [arm.arm for arm in found.arms if not arm.valid]


def test_an_independent_pair_is_said_to_be_one_with_its_effects() -> None:
    found = headline(records(Truth()))
    assert found.valid
    assert found.overall.kind == "independent"
    assert [one.verdict.kind for one in found.interactions] == ["independent"] * 3
    own: tuple[tuple[str, Phase, float], ...] = (("cache", "prefill", 0.1), ("speculation", "decode", 0.5))
    for switch, phase, truth in own:
        for other_on in (False, True):
            expected = effect(found, switch, phase, other_on)
            assert expected.expected
            assert not expected.below_noise_floor
            assert expected.ratio is not None
            assert expected.ratio.low < truth < expected.ratio.high
            assert (expected.ratio.prompts, expected.ratio.pairs, expected.ratio.clusters) == (40, 120, 40)
    crossing: tuple[tuple[str, Phase], ...] = (("cache", "decode"), ("speculation", "prefill"))
    for switch, phase in crossing:
        cross = effect(found, switch, phase, False)
        assert not cross.expected
        assert cross.ratio is not None
        assert cross.ratio.value == pytest.approx(1, abs=0.03)
    assert [(f.severity, f.subject) for f in found.findings] == []


def test_end_to_end_a_ratio_interacts_by_arithmetic_and_milliseconds_do_not() -> None:
    found = interaction(headline(records(Truth(noise=normal(0.01)))), "end to end")
    assert found.ratio is not None
    assert found.ratio.high < 0.9  # "speculation is better on a hit"
    assert found.difference_ms is not None
    assert found.difference_ms.low < 0 < found.difference_ms.high
    assert found.verdict.kind == "independent"


def test_a_fighting_pair_speculation_loses_its_win_on_hits() -> None:
    found = headline(records(Truth(decode_interaction=2.0)))
    assert found.overall.kind == interaction(found, "decode").verdict.kind == "fight"
    assert interaction(found, "prefill").verdict.kind == "independent"
    on_hits = effect(found, "speculation", "decode", True)
    assert on_hits.ratio is not None
    assert on_hits.ratio.value == pytest.approx(1, abs=0.03)
    decode = interaction(found, "decode").ratio
    assert decode is not None
    assert decode.low < 2 < decode.high
    assert "They fight" in found.overall.sentence
    assert interaction(found, "end to end").verdict.kind == "fight"


def test_a_helping_pair() -> None:
    found = headline(records(Truth(prefill_interaction=0.7)))
    assert found.overall.kind == interaction(found, "prefill").verdict.kind == "help"
    assert interaction(found, "decode").verdict.kind == "independent"


def test_phases_that_disagree_are_decided_by_milliseconds_end_to_end() -> None:
    found = headline(records(Truth(prefill_interaction=0.7, decode_interaction=1.5)))
    assert [one.verdict.kind for one in found.interactions] == ["help", "fight", "fight"]
    assert found.overall.kind == "fight"


def test_a_difference_that_is_real_and_within_the_margin_is_independent_and_stated() -> None:
    found = headline(records(Truth(decode_interaction=1.04, noise=normal(0.01))))
    decode = interaction(found, "decode").verdict
    assert (decode.kind, decode.negligible, found.overall.negligible) == ("independent", True, True)
    assert "is real, and too small to matter" in decode.sentence


def test_too_few_prompts_get_no_verdict_and_a_number() -> None:
    found = headline(records(Truth(calls=6)))
    assert found.overall.kind == "inconclusive"
    assert found.overall.needed is not None
    assert (found.overall.needed.purpose, found.overall.needed.prompts) == ("interval", 10)
    assert "at least 10 prompts × 3 repeats = 30 requests per arm" in interaction(found, "decode").verdict.sentence


def test_too_much_noise_gets_no_verdict_and_a_number() -> None:
    found = headline(records(Truth(calls=20, repeats=1, noise=heavy(0.3))))
    assert found.overall.kind == "inconclusive"
    assert found.overall.needed is not None
    assert found.overall.needed.prompts > 20
    assert found.overall.needed.requests == 4 * found.overall.needed.requests_per_arm


def test_one_prompt_is_not_analysed_and_no_record_is_an_error() -> None:
    found = headline(records(Truth(calls=1)))
    assert found.overall.kind == "inconclusive"
    assert all(e.ratio is None for e in found.effects)
    with pytest.raises(ConfigError, match="no record"):
        analyse([])


def test_failed_and_dropped_requests_leave_their_pairs_out_and_are_counted() -> None:
    def fail(record: Record) -> Record:
        return replace(record, error="timed out", ttft_ms=9e9, total_ms=9e9) if record.call in ("c1", "c2") else record

    study = changed(records(Truth()), ("both",), fail)
    study = [record for record in study if (record.arm, record.call) != ("cache", "c3")]
    found = headline(study)
    both, cache = (next(arm for arm in found.arms if arm.arm == name) for name in ("both", "cache"))
    assert (both.sent, both.failed, both.errors, both.missing) == (120, 6, (("timed out", 6),), 0)
    assert (cache.sent, cache.failed, cache.missing) == (117, 0, 3)
    pairs = {(e.switch, e.other_on): e.ratio.pairs for e in found.effects if e.phase == "prefill" and e.ratio}
    assert pairs[("cache", False)] == 117
    assert pairs[("cache", True)] == 114
    assert pairs[("speculation", True)] == 111
    assert pairs[("speculation", False)] == 120
    assert found.overall.kind == "independent"
    assert "6 of 120 requests failed (6 × timed out)" in said(found, "both", "warning")


def test_a_call_that_was_sent_again_after_it_failed_counts() -> None:
    study = records(Truth())
    failed = replace(study[0], error="refused", place=-1)
    found = headline([*study, failed])
    assert found.arms[0].failed == 1
    assert effect(found, "cache", "prefill", False).ratio == effect(headline(study), "cache", "prefill", False).ratio


def test_answers_of_one_token_have_no_decode() -> None:
    found = headline(records(Truth(tokens=1)))
    assert interaction(found, "decode").ratio is None
    assert interaction(found, "prefill").verdict.kind == "independent"
    assert found.overall.kind == "inconclusive"
    assert all(arm.tpot_ms is None for arm in found.arms)
    assert "leave nothing to draft" in said(found, "both", "note")


def test_an_answer_in_one_piece_has_no_time_per_token() -> None:
    study = changed(records(Truth()), tuple(BY_NAME), lambda record: replace(record, total_ms=record.ttft_ms))
    found = headline(study)
    assert interaction(found, "decode").ratio is None
    assert "came in one piece" in said(found, "neither", "warning")


def test_answers_of_other_lengths_are_told_and_leave_the_time_per_token_alone() -> None:
    def longer(record: Record) -> Record:
        decode_ms = record.total_ms - record.ttft_ms
        factor = (2 * record.output_tokens - 1) / (record.output_tokens - 1)
        return replace(
            record,
            text=record.text + " and more",
            output_tokens=2 * record.output_tokens,
            total_ms=record.ttft_ms + decode_ms * factor,
        )

    found = headline(changed(records(Truth()), ("both",), longer))
    assert interaction(found, "decode").verdict.kind == "independent"
    assert "differ from those of neither, 120 of them in length" in said(found, "both", "warning")
    of_both = next(comparison for comparison in found.outputs if comparison.arm == "both")
    assert (of_both.compared, of_both.differing, of_both.differing_share) == (120, 120, 1.0)
    assert {c.arm: c.differing for c in found.outputs if c.arm != "both"} == {
        "cache": 0,
        "speculation": 0,
        "neither-again": 0,
    }


def test_hits_claimed_and_none_happened() -> None:
    found = headline(records(Truth(cache_on_prefill=1.0)))
    assert invalid(found) == ["cache", "both"]
    for arm in ("cache", "both"):
        assert "hits claimed, no time saved" in said(found, arm, "invalid")
    assert found.overall.kind == "invalid"
    assert not effect(found, "cache", "prefill", False).valid
    assert effect(found, "speculation", "decode", False).valid


def test_hits_that_save_little_are_told_and_hits_that_save_are_not() -> None:
    little = headline(records(Truth(cache_on_prefill=0.8)))
    assert "less than half of what the hits promise" in said(little, "cache", "warning")
    assert little.valid


def test_acceptances_claimed_and_no_time_saved() -> None:
    found = headline(records(Truth(speculation_on_decode=1.0)))
    for arm in ("speculation", "both"):
        assert "acceptances claimed, no time saved" in said(found, arm, "warning")
    loses = headline(records(Truth(speculation_on_decode=1.3)))  # an honest loss is a result, not a lie
    assert "acceptances claimed" not in said(loses, "speculation", "warning")


@pytest.mark.parametrize(
    ("arms", "change", "sentence"),
    [
        (("neither",), {"cached_tokens": 900}, "the cache is off, and 108000 prompt tokens were reused"),
        (("cache", "both"), {"cached_tokens": 0}, "the cache is on, and no prompt token was reused"),
        (("cache",), {"drafted": 9, "accepted": 3}, "speculation is off, and 1080 drafts were made"),
        (("both",), {"drafted": 0, "accepted": 0}, "speculation is on, and no draft was made"),
        (("both",), {"drafted": 9, "accepted": 0}, "1080 drafts were made and none was accepted"),
        (("different-prefix",), {"cached_tokens": 900}, "reused though every prompt begins differently"),
    ],
)
def test_a_switch_that_is_ignored_is_detected(arms: tuple[str, ...], change: dict[str, Any], sentence: str) -> None:
    found = headline(changed(records(Truth()), arms, lambda record: replace(record, **change)))
    assert invalid(found) == [arm.name for arm in ARMS if arm.name in arms]
    for arm in arms:
        assert sentence in said(found, arm, "invalid")
    assert found.valid == (arms == ("different-prefix",))


def silent(record: Record) -> Record:
    return replace(record, prompt_tokens=None, cached_tokens=None, drafted=None, accepted=None, account=None)


def test_a_server_without_usage_is_measured_by_the_clock_and_told_what_is_lost() -> None:
    found = headline(changed(records(Truth()), tuple(BY_NAME), silent))
    assert found.valid
    assert found.overall.kind == "independent"
    assert "no usage; prompt lengths, hits and acceptance are lost" in said(found, "cache", "note")
    assert "no cached tokens" in said(found, "cache", "note")
    assert "no drafts" in said(found, "both", "note")
    assert found.acceptance == WarmCold(None, None, None)
    assert found.calibration == ()
    assert found.arms[0].cached_share is None


def test_a_server_that_reports_nothing_and_does_nothing_is_suspected() -> None:
    nothing = Truth(cache_on_prefill=1.0, speculation_on_decode=1.0, noise=normal(0.01))
    found = headline(changed(records(nothing), tuple(BY_NAME), silent))
    assert "no hits reported, no time saved" in said(found, "both", "warning") + said(found, "cache", "warning")
    assert "no acceptances reported, no time saved" in said(found, "speculation", "warning")


def test_a_gain_with_nothing_to_reuse_spoils_the_study() -> None:
    found = headline(records(Truth(different_prefix=0.7)))
    assert "a gain with nothing to reuse" in said(found, "study", "invalid")
    assert not found.valid
    assert found.overall.kind == "invalid"
    assert not any(e.valid for e in found.effects)
    slower = headline(records(Truth(different_prefix=1.3)))  # a cache that costs on a miss is a result
    assert slower.valid
    assert "a cache without hits costs time" in slower.controls[0].sentence


def test_an_arm_that_differs_from_itself_spoils_the_study() -> None:
    found = headline(records(Truth(again=1.3)))
    assert "the same arm differs from itself" in said(found, "study", "invalid")
    assert found.overall.kind == "invalid"


def test_effects_below_the_noise_floor_are_said_to_be_so() -> None:
    found = headline(records(Truth(again=1.06, cache_on_decode=1.03, noise=normal(0.01))))
    assert found.valid
    small = effect(found, "cache", "decode", False)
    assert small.ratio is not None
    assert small.ratio.low > 1  # it looks real
    assert small.below_noise_floor
    assert "smaller than the noise floor" in small.sentence
    assert "effects mean nothing" in next(c.sentence for c in found.controls if c.phase == "decode")


def test_a_study_without_controls_says_so() -> None:
    found = headline(
        [record for record in records(Truth()) if record.arm in ("neither", "cache", "speculation", "both")]
    )
    assert found.valid
    assert found.overall.kind == "independent"
    assert [control.passed for control in found.controls] == [None] * 4
    assert "noise floor is unknown" in said(found, "neither-again", "note")


def test_a_study_of_two_arms_has_the_effect_and_no_verdict() -> None:
    found = headline([record for record in records(Truth()) if record.arm in ("neither", "speculation")])
    assert effect(found, "speculation", "decode", False).ratio is not None
    assert effect(found, "speculation", "decode", True).ratio is None
    assert found.overall.kind == "inconclusive"


def test_a_server_whose_story_is_longer_than_the_clients_is_told() -> None:
    def boast(record: Record) -> Record:
        assert record.account is not None
        return replace(record, account=replace(record.account, prefill_ms=record.ttft_ms * 1.2 + 10))

    found = headline(changed(records(Truth()), ("cache",), boast))
    assert "took longer than the client waited" in said(found, "cache", "warning")
    assert said(found, "neither", "warning") == ""


def test_arms_that_were_asked_something_else_are_told() -> None:
    found = headline(changed(records(Truth()), ("both",), lambda record: replace(record, prompt_tokens=1100)))
    assert "120 of 120 prompts have another number of tokens" in said(found, "both", "warning")


@pytest.mark.parametrize(("factor", "error"), [(1.0, 0), (1.25, 25), (0.5, -50)])
def test_calibration_finds_the_error_of_the_accounts(factor: float, error: float) -> None:
    def scale(record: Record) -> Record:
        assert record.account is not None
        saved = (record.account.prefill_saved_ms * factor, record.account.decode_saved_ms * factor)
        return replace(record, account=replace(record.account, prefill_saved_ms=saved[0], decode_saved_ms=saved[1]))

    found = headline([scale(record) for record in records(Truth(noise=normal(0.02)))])
    assert [(row.phase, row.arm) for row in found.calibration] == [
        ("prefill", "cache"),
        ("prefill", "both"),
        ("prefill", "all"),
        ("decode", "speculation"),
        ("decode", "both"),
        ("decode", "all"),
    ]
    for row in found.calibration:
        assert row.error_percent is not None
        assert row.error_percent.value == pytest.approx(error, abs=3)
        assert row.error_percent.value == pytest.approx(100 * (row.claimed_ms / row.measured_ms - 1))


def test_a_saving_that_may_be_zero_has_no_error_in_percent() -> None:
    found = headline(records(Truth(speculation_on_decode=1.0)))
    assert all(row.error_percent is None for row in found.calibration if row.phase == "decode")


def test_stages_add_up_to_the_total_and_name_their_source() -> None:
    by_server, by_client = (headline(records(Truth(), accounts=known)).arms[3].stages for known in (True, False))
    assert by_server is not None
    assert by_client is not None
    assert (by_server.source, by_client.source) == ("server", "client")
    assert by_server.queue_ms is not None
    assert by_server.draft_ms is not None
    parts = (by_server.queue_ms, by_server.prefill_ms, by_server.draft_ms, by_server.decode_ms, by_server.other_ms)
    assert sum(parts) == pytest.approx(by_server.total_ms)
    assert by_client.queue_ms is by_client.draft_ms is None
    assert by_client.prefill_ms + by_client.decode_ms == pytest.approx(by_client.total_ms)


def test_warm_acceptance_is_compared_with_cold() -> None:
    def worse(record: Record) -> Record:
        kept = record.output_tokens // 4
        return replace(record, accepted=kept, accepted_per_position=(kept - 1, 1), account=None)

    found = headline(changed(records(Truth(), accounts=False), ("both",), worse)).acceptance
    assert found.cold is not None
    assert found.warm is not None
    assert found.cold.tokens_per_step == pytest.approx(2, abs=0.05)
    assert found.warm.tokens_per_step == pytest.approx(4 / 3, abs=0.05)
    assert len(found.warm.by_position) == 2
    assert found.tokens_per_step_ratio is not None
    assert found.tokens_per_step_ratio.high < 0.7


def test_tokens_per_second_counts_the_time_in_flight_once() -> None:
    first = replace(records(Truth(calls=1, repeats=1))[0], sent_s=0.0, total_ms=2000.0, output_tokens=10)
    beside, later = replace(first, sent_s=1.0), replace(first, sent_s=100.0)
    assert tokens_per_s([first]) == 5.0
    assert tokens_per_s([later, beside, first]) == pytest.approx(30 / 5)
    assert tokens_per_s([]) is None


def test_a_distribution_leaves_out_what_is_unknown() -> None:
    found = distribution([None, *map(float, range(101))])
    assert found is not None
    assert (found.count, found.mean, found.p50, found.p90, found.p99) == (101, 50.0, 50.0, 90.0, 99.0)
    assert found.curve == pytest.approx(range(0, 101, 5))
    assert distribution([None]) is None


def test_loads_are_apart_and_one_at_a_time_is_the_headline() -> None:
    alone, loaded = records(Truth()), records(Truth(decode_interaction=1.5), load="4")
    found = analyse([*loaded, *alone], resamples=2_000)
    assert (found.headline.load, [one.load for one in found.loaded]) == ("1", ["4"])
    assert (found.headline.overall.kind, found.loaded[0].overall.kind) == ("independent", "fight")
    assert "requests share the machine" in said(found.loaded[0], "study", "note")
    assert found.headline == headline(alone)


def test_ten_sessions_are_clusters_and_fewer_are_told() -> None:
    many, few = (headline(records(Truth(calls=40, calls_per_session=size))) for size in (4, 8))
    assert (many.clustered_by, few.clustered_by) == ("session", "call")
    found = effect(many, "cache", "prefill", False).ratio
    assert found is not None
    assert (found.prompts, found.clusters) == (40, 10)
    assert "fewer than ten sessions" in said(few, "study", "note")
    assert said(many, "study", "note") == ""


def test_the_same_records_and_seed_give_the_same_analysis_in_any_order() -> None:
    study = records(Truth(calls=12))
    first = analyse(study, seed=3, resamples=2_000)
    assert analyse(study, seed=3, resamples=2_000) == first
    assert analyse(study[::-1], seed=3, resamples=2_000) == first
    other = analyse(study, seed=4, resamples=2_000)
    assert other.headline.effects[0].ratio != first.headline.effects[0].ratio


def test_an_analysis_is_json() -> None:
    studies = (records(Truth()), records(Truth(calls=1, tokens=1)), changed(records(Truth()), tuple(BY_NAME), silent))
    for study in studies:
        text = json.dumps(asdict(analyse(study, resamples=1_000)), allow_nan=False)
        assert json.loads(text)["headline"]["load"] == "1"


def test_a_study_in_which_every_request_failed_is_reported() -> None:
    study = [replace(record, error="connection refused") for record in records(Truth(calls=3))]
    found = headline(study)
    assert all(arm.failed == arm.sent and arm.ttft_ms is None for arm in found.arms)
    assert found.overall.kind == "inconclusive"
    assert Finding in {type(f) for f in found.findings}
