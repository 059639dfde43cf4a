"""Events go to whoever asked, in order, and every choice ends exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given

from tests.observe.reports import Run, admission, report, request, row, runs
from twostroke.observe.delivery import Batch, Delivery
from twostroke.types import Delta, Done, End, Event, FinishReason, Logprobs, Phases, TokenLogprob


def listen(delivery: Delivery, name: str = "r", choices: int = 1) -> list[Event]:
    heard: list[Event] = []
    delivery.accept(request(name, choices=choices), heard.extend)
    return heard


def endings(events: Sequence[Event]) -> list[int]:
    return [event.choice for event in events if isinstance(event, Done)]


def test_tokens_then_one_ending() -> None:
    delivery = Delivery()
    heard = listen(delivery)
    delivery(report(row(emitted=2)))
    delivery(report(row(emitted=1, finished=FinishReason.LENGTH)))
    assert heard == [Delta(0, (0, 1)), Delta(0, (0,)), Done(0, FinishReason.LENGTH, None)]
    assert delivery.open == ()


@given(runs())
def test_every_choice_ends_once_and_loses_no_token(run: Run) -> None:
    delivery = Delivery()
    heard = {r.id: listen(delivery, r.id) for r in run.requests}
    for told in run.reports:
        delivery(told)
    for name, events in heard.items():
        assert endings(events) == [0]
        assert isinstance(events[-1], Done)
        sent = [token for event in events if isinstance(event, Delta) for token in event.tokens]
        assert sent == [token for r in run.reports for x in r.rows if x.request == name for token in x.emitted]


def test_a_row_that_emitted_nothing_is_no_event() -> None:
    delivery = Delivery()
    heard = listen(delivery)
    delivery(report(row(emitted=0)))
    assert heard == []


def test_a_second_ending_and_tokens_after_the_end_are_dropped() -> None:
    delivery = Delivery()
    heard = listen(delivery, choices=2)
    delivery(report(row(finished=FinishReason.STOP)))
    delivery(report(row(), ended=(End(0, "r", 0, FinishReason.ABORT),)))
    assert endings(heard) == [0]
    delivery(report(row(choice=1, finished=FinishReason.STOP)))
    assert endings(heard) == [0, 1]


def test_failure_ends_what_is_open_and_nothing_else() -> None:
    delivery = Delivery()
    heard = listen(delivery, choices=3)
    delivery(report(row(choice=1, finished=FinishReason.STOP)))
    delivery.fail("r", "boom")
    delivery.fail("r", "boom")
    assert endings(heard) == [1, 0, 2]
    assert heard[-1] == Done(2, FinishReason.ERROR, None, "boom")
    assert delivery.open == ()


def test_an_abort_reported_by_the_engine_ends_the_choice() -> None:
    delivery = Delivery()
    heard = listen(delivery)
    delivery(report(ended=(End(0, "r", 0, FinishReason.ABORT),)))
    assert heard == [Done(0, FinishReason.ABORT, None)]


def test_strangers_and_the_forgotten_hear_nothing() -> None:
    delivery = Delivery()
    heard = listen(delivery)
    delivery.forget("r")
    delivery(report(row(finished=FinishReason.STOP), row("stranger", finished=FinishReason.STOP)))
    assert heard == []
    assert delivery.open == ()


def test_one_batch_per_step_carries_all_requests() -> None:
    batches: list[Batch] = []
    delivery = Delivery(post=batches.append)
    listen(delivery, "a")
    listen(delivery, "b")
    delivery(report(row("a"), row("b")))
    delivery(report(row("a", emitted=0), row("b", emitted=0)))
    assert [len(batch) for batch in batches] == [2]


def test_the_ending_carries_the_account() -> None:
    asked: list[tuple[str, int]] = []

    def phases(name: str, choice: int) -> Phases | None:
        asked.append((name, choice))
        return None

    delivery = Delivery(phases)
    listen(delivery)
    delivery(report(row(finished=FinishReason.STOP)))
    assert asked == [("r", 0)]


def test_scores_are_told_before_there_is_a_token_and_reuse_with_the_first_one() -> None:
    delivery = Delivery()
    heard = listen(delivery)
    score = Logprobs(TokenLogprob(4, -1.0), ())
    delivery(report(replace(row(emitted=0), scores=(score,)), admitted=(admission(cached=3),)))
    delivery(report(row(emitted=1)))
    delivery(report(row(emitted=1)))
    assert heard == [Delta(0, (), (), (score,)), Delta(0, (0,), cached=3), Delta(0, (0,))]


def test_an_answer_that_failed_says_why() -> None:
    delivery = Delivery()
    heard = listen(delivery)
    delivery(report(replace(row(emitted=0, finished=FinishReason.ERROR), error="the grammar failed: no")))
    assert heard == [Done(0, FinishReason.ERROR, None, "the grammar failed: no")]
