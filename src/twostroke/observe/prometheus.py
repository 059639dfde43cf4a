"""The server's counters, under the names clients already read, with the prefix `twostroke:`.

Counters of the cache count tokens.  Savings are gauges, because a saving can be negative.  Every server has a registry
of its own.  No label names a tenant, so that nobody learns of another's prompts here.
"""

from __future__ import annotations

from collections import Counter as Sums
from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from twostroke.observe.phases import Finished, accepted_drafts
from twostroke.observe.watched import Explain, Watched
from twostroke.types import Admission, FinishReason, Report, SequenceReport

FIRST_TOKEN_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
)  # fmt: skip
TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
REQUEST_S = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000)


class Metrics:
    """An observer of steps, and a sink of finished accounts; `exposition` is what `/metrics` answers."""

    def __init__(self, model: str) -> None:
        self._registry = CollectorRegistry()
        self._model = model
        self._last_s: dict[tuple[str, int], float] = {}  # when a choice that goes on last grew
        self._counters()
        self._gauges()
        self._histograms()

    def exposition(self) -> bytes:
        """The Prometheus text format, version 0.0.4."""
        return generate_latest(self._registry)

    def watch(self, explain: Explain, faults: Callable[[], Mapping[str, int]]) -> None:
        """Also expose what a governor says of itself, and the faults that the engine put up with."""
        self._registry.register(Watched(self._model, explain, faults))

    def kv_memory(self, sizes: Mapping[str, int]) -> None:
        """Expose how many bytes of KV each group was given, the draft model's apart from the target's."""
        for group, size in sizes.items():
            self._kv_bytes.labels(self._model, group).set(size)

    def __call__(self, report: Report) -> None:
        for admission in report.admitted:
            if not admission.resumed:
                self._admitted(admission)
        self._generated.inc(sum(len(row.emitted) for row in report.rows))
        self._drafts_of(report.rows)
        for row in report.rows:
            self._latency(row, report.ended_s)
        for end in report.ended:
            self._last_s.pop((end.request, end.choice), None)
        if report.rows:
            self._step_tokens.observe(sum(row.computed for row in report.rows))
        self._preemptions.inc(len(report.preempted))
        self._evicted.inc(report.evicted)
        self._running.set(report.running)
        self._waiting.set(report.waiting)
        self._kv_usage.set(report.kv_used / report.kv_capacity if report.kv_capacity else 0.0)

    def finished(self, account: Finished) -> None:
        """Count one closed account."""
        phases = account.phases
        self._success.labels(self._model, account.reason.value).inc()
        self._saved.labels(self._model, "prefill").inc(phases.prefill.saved_ms / 1000)
        self._saved.labels(self._model, "decode").inc(phases.decode.saved_ms / 1000)
        self._request_s.observe(account.total_s)
        self._queue_s.observe(phases.queue_ms / 1000)
        self._prompt_size.observe(phases.prefill.prompt_tokens)
        self._answer_size.observe(phases.decode.output_tokens)
        if phases.decode.output_tokens:
            self._first_token_s.observe(phases.ttft_ms / 1000)
            self._prefill_s.observe(phases.prefill.ms / 1000)
            self._decode_s.observe(phases.decode.ms / 1000)
        if phases.decode.output_tokens > 1:
            self._per_token_s.observe(phases.tpot_ms / 1000)

    def rejected(self, reason: str) -> None:
        """Count a request that was turned away at the door."""
        self._rejections.labels(self._model, reason).inc()

    def _admitted(self, admission: Admission) -> None:
        self._queries.inc(admission.prompt_tokens)
        self._hits.inc(admission.cached)
        self._prompt.inc(admission.prompt_tokens)
        self._prompt_cached.inc(admission.cached)
        if admission.miss_reason:
            self._misses.labels(self._model, admission.miss_reason).inc()

    def _drafts_of(self, rows: Sequence[SequenceReport]) -> None:
        """Summed over a step before they are counted: a counter costs as much as ten additions."""
        drafted: Sums[str] = Sums()
        accepted: Sums[str] = Sums()
        places: Sums[str] = Sums()
        undrafted: Sums[str] = Sums()
        for row in rows:
            if row.drafted:
                kept = accepted_drafts(row)
                drafted[row.source] += row.drafted
                accepted[row.source] += kept
                places.update(map(str, range(kept)))
            elif row.emitted and row.reason:
                undrafted[row.reason] += 1
        self._drafts.inc(sum(row.drafted > 0 for row in rows))
        self._draft_tokens.inc(drafted.total())
        self._accepted.inc(accepted.total())
        self._add(self._drafted_by, drafted)
        self._add(self._accepted_by, accepted)
        self._add(self._accepted_at, places)
        self._add(self._undrafted, undrafted)

    def _add(self, counter: Counter, sums: Sums[str]) -> None:
        for label, count in sums.items():
            counter.labels(self._model, label).inc(count)

    def _latency(self, row: SequenceReport, at_s: float) -> None:
        """One observation a step, as others count it: tokens that come together share the time since the last."""
        key = (row.request, row.choice)
        if row.emitted and key in self._last_s:
            self._between_s.observe((at_s - self._last_s[key]) / len(row.emitted))
        if row.emitted:
            self._last_s[key] = at_s
        if row.finished is not None:
            self._last_s.pop(key, None)

    def _counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Counter:
        counter = Counter(f"twostroke:{name}", help, ("model_name", *labels), registry=self._registry)
        return counter if labels else counter.labels(self._model)

    def _gauge(self, name: str, help: str, labels: Sequence[str] = ()) -> Gauge:
        gauge = Gauge(f"twostroke:{name}", help, ("model_name", *labels), registry=self._registry)
        return gauge if labels else gauge.labels(self._model)

    def _histogram(self, name: str, help: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(f"twostroke:{name}", help, ("model_name",), buckets=buckets, registry=self._registry).labels(
            self._model
        )

    def _counters(self) -> None:
        self._queries = self._counter("prefix_cache_queries", "Prompt tokens looked up in the prefix cache.")
        self._hits = self._counter("prefix_cache_hits", "Prompt tokens found in the prefix cache.")
        self._misses = self._counter(
            "prefix_cache_misses", "Admissions whose prefix was not whole, by reason.", ["reason"]
        )
        self._prompt = self._counter("prompt_tokens", "Prompt tokens of admitted answers.")
        self._prompt_cached = self._counter("prompt_tokens_cached", "Prompt tokens reused, not computed.")
        self._generated = self._counter("generation_tokens", "Tokens written.")
        self._drafts = self._counter("spec_decode_num_drafts", "Sequence steps in which drafts were verified.")
        self._draft_tokens = self._counter("spec_decode_num_draft_tokens", "Drafts verified.")
        self._accepted = self._counter("spec_decode_num_accepted_tokens", "Drafts accepted.")
        self._accepted_at = self._counter(
            "spec_decode_num_accepted_tokens_per_pos", "Drafts accepted, by their place in the draft.", ["position"]
        )
        self._drafted_by = self._counter("draft_tokens_by_source", "Drafts verified, by drafter.", ["source"])
        self._accepted_by = self._counter("accepted_tokens_by_source", "Drafts accepted, by drafter.", ["source"])
        self._undrafted = self._counter("undrafted_steps", "Steps of an answer without drafts, by reason.", ["reason"])
        self._preemptions = self._counter("num_preemptions", "Answers set aside for want of KV memory.")
        self._evicted = self._counter("kv_evicted_tokens", "Cached positions given up for others.")
        self._success = self._counter("request_success", "Answers ended, by reason.", ["finished_reason"])
        for reason in FinishReason:
            self._success.labels(self._model, reason.value)
        self._rejections = self._counter("admission_rejections", "Requests turned away at the door.", ["reason"])

    def _gauges(self) -> None:
        self._running = self._gauge("num_requests_running", "Answers being written.")
        self._waiting = self._gauge("num_requests_waiting", "Answers waiting to start.")
        self._kv_usage = self._gauge("kv_cache_usage_perc", "Share of KV memory in use, 0 to 1.")
        self._kv_bytes = self._gauge("kv_memory_bytes", "KV memory given at the start, by group.", ["group"])
        self._saved = self._gauge("saved_seconds", "Request seconds saved since the start, by phase.", ["phase"])
        for phase in ("prefill", "decode"):
            self._saved.labels(self._model, phase)

    def _histograms(self) -> None:
        self._first_token_s = self._histogram("time_to_first_token_seconds", "Arrival to first token.", FIRST_TOKEN_S)
        self._per_token_s = self._histogram("request_time_per_output_token_seconds", "Mean per later token.", TOKEN_S)
        self._between_s = self._histogram("inter_token_latency_seconds", "Per token, by step of an answer.", TOKEN_S)
        self._request_s = self._histogram("e2e_request_latency_seconds", "Arrival to last token.", REQUEST_S)
        self._queue_s = self._histogram("request_queue_time_seconds", "Arrival to first step.", REQUEST_S)
        self._prefill_s = self._histogram("request_prefill_time_seconds", "First step to first token.", REQUEST_S)
        self._decode_s = self._histogram("request_decode_time_seconds", "First token to last.", REQUEST_S)
        self._prompt_size = self._histogram("request_prompt_tokens", "Prompt lengths.", TOKENS)
        self._answer_size = self._histogram("request_generation_tokens", "Answer lengths.", TOKENS)
        self._step_tokens = self._histogram("iteration_tokens", "Positions computed in one step.", TOKENS)
