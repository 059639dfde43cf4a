"""The exposition says what the steps did, under the names clients read."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from prometheus_client.parser import text_string_to_metric_families

from tests.observe.reports import Run, admission, report, request, row, runs
from twostroke.observe.phases import Accounts, accepted_drafts
from twostroke.observe.prometheus import FIRST_TOKEN_S, Metrics
from twostroke.observe.rates import MeasuredRates
from twostroke.types import FinishReason, Report


def read(metrics: Metrics) -> Mapping[tuple[str, ...], float]:
    """Values by sample name and labels other than the model's."""
    found = {}
    for family in text_string_to_metric_families(metrics.exposition().decode()):
        for sample in family.samples:
            assert sample.labels.pop("model_name") == "m"
            found[(sample.name, *sample.labels.values())] = sample.value
    return found


def fold(*reports: Report, asked: int = 1) -> Mapping[tuple[str, ...], float]:
    metrics = Metrics("m")
    accounts = Accounts(MeasuredRates(), sinks=(metrics.finished,))
    for number in range(asked):
        accounts.accept(request("r" if asked == 1 else f"r{number}"))
    for told in reports:
        accounts(told)
        metrics(told)
    return read(metrics)


def test_names_that_clients_scrape_are_there_from_the_start() -> None:
    names = {key[0].removeprefix("twostroke:") for key in read(Metrics("m"))}
    assert {
        "prefix_cache_queries_total", "prefix_cache_hits_total", "prompt_tokens_total", "prompt_tokens_cached_total",
        "generation_tokens_total", "spec_decode_num_drafts_total", "spec_decode_num_draft_tokens_total",
        "spec_decode_num_accepted_tokens_total", "num_requests_running", "num_requests_waiting",
        "kv_cache_usage_perc", "num_preemptions_total", "request_success_total", "time_to_first_token_seconds_bucket",
        "request_time_per_output_token_seconds_bucket", "e2e_request_latency_seconds_bucket",
        "request_queue_time_seconds_bucket", "request_prefill_time_seconds_bucket",
        "request_decode_time_seconds_bucket", "saved_seconds",
    } <= names  # fmt: skip


def test_counters_of_one_answer() -> None:
    values = fold(
        report(row(computed=6), admitted=(admission(cached=4),)),
        report(row(emitted=3, drafted=4, accepted=2), at_s=101, kv_used=3, kv_capacity=12, waiting=2),
        report(row(reason="load", finished=FinishReason.LENGTH), at_s=102, running=0, preempted=(9,), evicted=16),
    )
    expected = {
        ("prefix_cache_queries_total",): 10,
        ("prefix_cache_hits_total",): 4,
        ("prefix_cache_misses_total", "cold"): 1,
        ("generation_tokens_total",): 5,
        ("spec_decode_num_drafts_total",): 1,
        ("spec_decode_num_draft_tokens_total",): 4,
        ("spec_decode_num_accepted_tokens_total",): 2,
        ("spec_decode_num_accepted_tokens_per_pos_total", "0"): 1,
        ("spec_decode_num_accepted_tokens_per_pos_total", "1"): 1,
        ("draft_tokens_by_source_total", "ngram"): 4,
        ("undrafted_steps_total", "load"): 1,
        ("num_preemptions_total",): 1,
        ("kv_evicted_tokens_total",): 16,
        ("request_success_total", "length"): 1,
        ("request_success_total", "stop"): 0,
        ("num_requests_running",): 0,
        ("time_to_first_token_seconds_count",): 1,
        ("request_generation_tokens_sum",): 5,
    }
    found = {(name, *labels): values[("twostroke:" + name, *labels)] for name, *labels in expected}
    assert found == expected
    assert ("twostroke:spec_decode_num_accepted_tokens_per_pos_total", "2") not in values


@given(runs())
def test_totals_are_the_sums_of_the_steps(run: Run) -> None:
    metrics = Metrics("m")
    for told in run.reports:
        metrics(told)
    values = read(metrics)
    rows = [x for told in run.reports for x in told.rows]
    assert values[("twostroke:generation_tokens_total",)] == sum(len(x.emitted) for x in rows)
    assert values[("twostroke:spec_decode_num_draft_tokens_total",)] == sum(x.drafted for x in rows)
    accepted = sum(accepted_drafts(x) for x in rows if x.drafted)
    assert values[("twostroke:spec_decode_num_accepted_tokens_total",)] == accepted
    by_place = [v for key, v in values.items() if key[0].endswith("tokens_per_pos_total")]
    assert sum(by_place) == accepted


def test_tokens_that_come_together_share_the_time_between() -> None:
    values = fold(
        report(row(computed=6), at_s=100, admitted=(admission(),)),
        report(row(emitted=0), at_s=101),
        report(row(emitted=4, drafted=3, accepted=3, finished=FinishReason.STOP), at_s=102),
    )
    assert values[("twostroke:inter_token_latency_seconds_count",)] == 1
    assert values[("twostroke:inter_token_latency_seconds_sum",)] == 0.5


def test_the_gauge_of_memory_is_a_share() -> None:
    values = fold(report(row(), kv_used=3, kv_capacity=12))
    assert values[("twostroke:kv_cache_usage_perc",)] == 0.25


def test_the_memory_of_each_group_is_told() -> None:
    metrics = Metrics("m")
    metrics.kv_memory({"target": 2**28, "draft": 2**26})
    found = read(metrics)
    assert found["twostroke:kv_memory_bytes", "target"] == 2**28
    assert found["twostroke:kv_memory_bytes", "draft"] == 2**26


def test_a_resumed_admission_is_no_second_lookup() -> None:
    values = fold(report(row(), admitted=(admission(),)), report(row(), admitted=(admission(resumed=True),)))
    assert values[("twostroke:prefix_cache_queries_total",)] == 10


def test_rejections_are_counted_by_reason() -> None:
    metrics = Metrics("m")
    metrics.rejected("draining")
    assert read(metrics)[("twostroke:admission_rejections_total", "draining")] == 1


def test_buckets_are_those_of_the_reference() -> None:
    bounds = [float(key[1]) for key in read(Metrics("m")) if key[0] == "twostroke:time_to_first_token_seconds_bucket"]
    assert bounds == [*FIRST_TOKEN_S, float("inf")]


def test_two_servers_in_one_process_do_not_meet() -> None:
    first, second = Metrics("m"), Metrics("m")
    first(report(row(emitted=2)))
    assert read(second)[("twostroke:generation_tokens_total",)] == 0
