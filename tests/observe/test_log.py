"""One line per answer, and nobody's words in it."""

from __future__ import annotations

import logging

import pytest

from tests.observe.reports import admission, report, request, row
from twostroke.observe.log import log_finished, request_line
from twostroke.observe.phases import Accounts, Finished
from twostroke.observe.rates import MeasuredRates
from twostroke.types import End, FinishReason, Report


def finished(*reports: Report) -> Finished:
    closed: list[Finished] = []
    accounts = Accounts(MeasuredRates(), sinks=(closed.append,))
    accounts.accept(request())
    for told in reports:
        accounts(told)
    return closed[0]


def answered() -> Finished:
    return finished(
        report(row(computed=6), admitted=(admission(cached=4),)),
        report(row(emitted=3, drafted=4, accepted=2, finished=FinishReason.STOP), at_s=101),
    )


def failed() -> Finished:
    return finished(report(ended=(End(0, "r", 0, FinishReason.ERROR, "out of\nluck"),)))


def test_the_line_is_pairs_on_one_line() -> None:
    line = request_line(answered())
    pairs = dict(pair.split("=", 1) for pair in line.split(" "))
    assert pairs["request"] == "r"
    assert (pairs["prompt"], pairs["cached"], pairs["output"]) == ("10", "4", "4")
    assert (pairs["drafted"], pairs["accepted"], pairs["finish"], pairs["miss"]) == ("4", "2", "stop", "cold")
    assert float(pairs["ttft_ms"]) == 1000.0


def test_an_error_stays_on_the_line() -> None:
    assert "\n" not in request_line(failed())
    assert "error='out of\\nluck'" in request_line(failed())


def test_levels_tell_failures_from_answers(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "twostroke.requests"):
        log_finished(answered())
        log_finished(failed())
    assert [record.levelno for record in caplog.records] == [logging.INFO, logging.ERROR]
