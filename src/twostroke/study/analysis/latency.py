"""Latencies of one arm as a client saw them: distributions, the rate of tokens, and where the time went."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np

from twostroke.study.analysis.result import Distribution, Stages
from twostroke.study.records import Record, ServerAccount

PERCENTILES = tuple(range(0, 101, 5))


def distribution(values: Iterable[float | None]) -> Distribution | None:
    """Of the values that are known; None where none is."""
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not known.size:
        return None
    p50, p90, p99, *curve = (float(value) for value in np.percentile(known, (50, 90, 99, *PERCENTILES)))
    return Distribution(known.size, float(known.mean()), p50, p90, p99, tuple(curve))


def gaps(records: Iterable[Record]) -> Distribution | None:
    """Between the chunks of each answer, over all answers."""
    return distribution(chain.from_iterable(record.gaps_ms for record in records))


def tokens_per_s(records: Iterable[Record]) -> float | None:
    """Output tokens per second in which at least one request was in flight.

    Blocks of arms alternate and the waits between requests say nothing of the server, so only that time counts.
    """
    answered = sorted(records, key=lambda record: record.sent_s)
    busy_s, until_s = 0.0, -np.inf
    for record in answered:
        end_s = record.sent_s + record.total_ms / 1000
        busy_s += max(end_s - max(record.sent_s, until_s), 0.0)
        until_s = max(until_s, end_s)
    return sum(record.output_tokens for record in answered) / busy_s if busy_s > 0 else None


def stages(records: tuple[Record, ...]) -> Stages | None:
    """Means over the requests: by the server's accounts if each has one, else by the client's clock."""
    if not records:
        return None
    accounts = [record.account for record in records if record.account is not None]
    total_ms = _mean(record.total_ms for record in records)
    if len(accounts) < len(records):
        return _by_client(records, total_ms)
    return _by_server(accounts, total_ms)


def _by_client(records: tuple[Record, ...], total_ms: float) -> Stages:
    ttft_ms = _mean(record.ttft_ms for record in records)
    return Stages("client", None, ttft_ms, None, total_ms - ttft_ms, 0.0, total_ms)


def _by_server(accounts: list[ServerAccount], total_ms: float) -> Stages:
    """Drafting happens within the time of decode, and is shown apart from it."""
    queue_ms = _mean(account.queue_ms for account in accounts)
    prefill_ms = _mean(account.prefill_ms for account in accounts)
    draft_ms = _mean(account.draft_ms for account in accounts)
    decode_ms = _mean(account.decode_ms for account in accounts)
    other_ms = total_ms - queue_ms - prefill_ms - decode_ms
    return Stages("server", queue_ms, prefill_ms, draft_ms, decode_ms - draft_ms, other_ms, total_ms)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(tuple(values)))
