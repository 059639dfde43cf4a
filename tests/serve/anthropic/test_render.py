"""Events become messages and streams that Anthropic's own models accept; whole and streamed say the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.serve.anthropic.plain import (
    FORMAT,
    SERVICE,
    TOOL,
    done,
    events,
    parsed,
    payloads,
    serving,
    streamed,
    tokens,
    whole,
)
from twostroke.errors import Draining, RunnerFailed
from twostroke.serve.submission import Caller
from twostroke.types import Delta, Done, FinishReason

GOLDEN = Path(__file__).parent / "golden"
EVENTS: Sequence[TypeAdapter[Any]] = (TypeAdapter(RawMessageStreamEvent), TypeAdapter(BetaRawMessageStreamEvent))
LOOP = '\x01Hm.\x02\n\nI look.\x03look\x04{"a": "é"}\x05\n\x03look\x04{}\x05'
HOUR = {"type": "ephemeral", "ttl": "1h"}
AGENT = {
    "tools": [TOOL],
    "system": "brief",
    "diagnostics": {"previous_message_id": None},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "cache_control": HOUR,
}


def check_message(message: dict[str, Any]) -> None:
    for model in (Message, BetaMessage):
        model.model_validate(message, strict=True)


def check_events(found: Sequence[dict[str, Any]]) -> None:
    for event in found:
        if event["type"] != "ping":
            for adapter in EVENTS:
                adapter.validate_python(event)


def added_up(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the official client makes of a stream."""
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for event in found:
        if event["type"] != "ping":
            parsed_event = EVENTS[0].validate_python(event)
            snapshot = accumulate_event(event=parsed_event, current_snapshot=snapshot, json_bufs=buffers)
    made: dict[str, Any] = json.loads(json.dumps(snapshot.to_dict()))
    return made


def ends(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The last counts and reasons of a stream."""
    return next(event for event in found if event["type"] == "message_delta")


CASES: dict[str, tuple[dict[str, Any], str, list[int], FinishReason]] = {
    "words": ({}, "Hi there.", [2, 5], FinishReason.STOP),
    "calls": (AGENT, LOOP, [3, 16, 40], FinishReason.STOP),
    "only-a-call": ({"tools": [TOOL]}, '\x03look\x04{"a": 1}\x05', [], FinishReason.STOP),
    "nothing": ({}, "", [], FinishReason.STOP),
    "cut-off": ({"tools": [TOOL], "max_tokens": 12}, '\x03look\x04{"a": 1', [], FinishReason.LENGTH),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_golden_streams(name: str) -> None:
    fields, text, cuts, reason = CASES[name]
    submission = parsed(stream=True, **fields)
    answer = tokens(text, ends=reason is FinishReason.STOP)
    stream = streamed(submission, events(submission, answer, cuts, reason, cached=3))
    check_events(payloads(stream))
    assert stream == (GOLDEN / f"{name}.sse").read_bytes()


@pytest.mark.parametrize("name", sorted(CASES))
def test_whole_messages_are_what_their_streams_add_up_to(name: str) -> None:
    fields, text, cuts, reason = CASES[name]
    submission = parsed(**fields)
    answer = tokens(text, ends=reason is FinishReason.STOP)
    happened = events(submission, answer, cuts, reason, cached=3)
    message = whole(submission, happened)
    check_message(message)
    heard = added_up(payloads(streamed(submission, happened)))
    for key in ("id", "model", "role", "type", "stop_reason", "stop_sequence"):
        assert heard[key] == message[key]
    if name != "cut-off":  # the client reads half a JSON object from a stream; a whole message cannot hold one
        assert heard["content"] == message["content"]


def test_a_message_holds_its_account() -> None:
    submission = parsed()
    message = whole(submission, events(submission, tokens("Hi"), cached=2))
    assert message["phases"]["prefill"]["cached_tokens"] == message["usage"]["cache_read_input_tokens"] == 2
    assert message["usage"]["output_tokens"] == 3


def test_blocks_of_a_tool_loop() -> None:
    submission = parsed(**AGENT)
    content = whole(submission, events(submission, tokens(LOOP)))["content"]
    assert [block["type"] for block in content] == ["thinking", "text", "tool_use", "tool_use"]
    assert content[0]["signature"]
    assert [block["input"] for block in content[2:]] == [{"a": "é"}, {}]
    assert len({block["id"] for block in content[2:]}) == 2


def test_ids_of_calls_differ_between_answers() -> None:
    found = []
    for name in ("msg_a1", "msg_b2"):
        submission = parsed(SERVICE, Caller(name), **AGENT)
        found.append(whole(submission, events(submission, tokens(LOOP)))["content"][2]["id"])
    assert found[0] != found[1]
    assert all(name.startswith("toolu_") for name in found)


def test_thoughts_that_the_client_omits_are_not_shown() -> None:
    submission = parsed(thinking={"type": "adaptive", "display": "omitted"})
    happened = events(submission, tokens("\x01secret\x02said"))
    content = whole(submission, happened)["content"]
    assert [block.get("thinking", block.get("text")) for block in content] == ["", "said"]
    assert b"secret" not in streamed(submission, happened)
    assert content[0]["signature"]


def test_white_space_alone_is_no_block_but_for_an_answer_of_nothing_else() -> None:
    submission = parsed(**AGENT)
    call = "\x03look\x04{}\x05"
    spaced = whole(submission, events(submission, tokens(f"\n\x01\n\x02\n{call}\n\n{call}\n")))["content"]
    assert [block["type"] for block in spaced] == ["tool_use", "tool_use"]
    assert whole(submission, events(submission, tokens("\n ")))["content"] == [{"type": "text", "text": "\n "}]
    assert whole(submission, events(submission, tokens("\n a")))["content"] == [{"type": "text", "text": "\n a"}]


@pytest.mark.parametrize(
    ("fields", "text", "reason", "expected"),
    [
        ({}, "a", FinishReason.STOP, ("end_turn", None)),
        ({"max_tokens": 1}, "a", FinishReason.LENGTH, ("max_tokens", None)),
        ({"max_tokens": 64000}, "a", FinishReason.LENGTH, ("model_context_window_exceeded", None)),
        ({"stop_sequences": ["xy"]}, "axy", FinishReason.STOP, ("stop_sequence", "xy")),
        ({"tools": [TOOL]}, "\x03look\x04{}\x05", FinishReason.STOP, ("tool_use", None)),
    ],
)
def test_why_an_answer_ended(fields: Any, text: str, reason: FinishReason, expected: tuple[str, str | None]) -> None:
    submission = parsed(**fields)
    answer = tokens(text, ends=reason is FinishReason.STOP and "stop_sequences" not in fields)
    happened = events(submission, answer, reason=reason)
    message = whole(submission, happened)
    delta = ends(payloads(streamed(submission, happened)))["delta"]
    assert (message["stop_reason"], message["stop_sequence"]) == expected
    assert delta == {"stop_reason": expected[0], "stop_sequence": expected[1]}


def test_max_tokens_0_answers_nothing() -> None:
    submission = parsed(max_tokens=0, cache_control=HOUR)
    message = whole(submission, events(submission, tokens("a", ends=False), reason=FinishReason.LENGTH))
    check_message(message)
    assert (message["content"], message["stop_reason"]) == ([], "max_tokens")
    assert message["usage"]["output_tokens"] == 0
    assert message["usage"]["cache_creation"] == {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 5}


def test_an_answer_that_failed_raises_before_anything_is_written() -> None:
    for reason, error in ((FinishReason.ERROR, RunnerFailed), (FinishReason.ABORT, Draining)):
        writer = FORMAT.writer(parsed(), SERVICE)
        assert list(writer.begin()) == []
        with pytest.raises(error):
            list(writer.take(0, Done(0, reason, None)))


def test_an_answer_without_an_account_still_adds_up() -> None:
    submission = parsed()
    message = whole(submission, [Delta(0, tokens("a")), Done(0, FinishReason.STOP, None)])
    assert (message["usage"]["input_tokens"], message["phases"]) == (6, None)


def test_message_start_counts_what_was_reused_where_the_first_event_tells() -> None:
    @dataclass(frozen=True, slots=True)
    class Telling(Delta):
        cached: int | None = None

    submission = parsed(stream=True, cache_control=HOUR)
    for first, expected in ((Delta(0, tokens("a")), (6, 0, 0)), (Telling(0, tokens("a"), cached=2), (1, 3, 2))):
        counts = payloads(streamed(submission, [first, done(submission, tokens("a"), cached=2)]))[0]["message"]["usage"]
        found = [counts[f"{name}input_tokens"] for name in ("", "cache_creation_", "cache_read_")]
        assert tuple(found) == expected


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_is_remembered_for_the_next_turn(stream: bool) -> None:
    service = serving()
    submission = parsed(service, **AGENT)
    happened = events(submission, tokens(LOOP))
    if stream:
        streamed(submission, happened, service)
    else:
        whole(submission, happened, service)
    ((words, thoughts, calls, ids),) = service.text.remembered  # type: ignore[attr-defined]
    assert (words.strip(), thoughts, [call.arguments for call in calls]) == ("I look.", "Hm.", ['{"a": "é"}', "{}"])
    assert ids == tokens(LOOP)


def test_several_boundaries_in_one_step_come_out_in_order() -> None:
    submission = parsed(**AGENT)
    answer = tokens(LOOP)
    at_once = payloads(streamed(submission, [Delta(0, answer), done(submission, answer)]))
    one_by_one = payloads(streamed(submission, events(submission, answer, range(len(answer)))))
    assert added_up(at_once)["content"] == added_up(one_by_one)["content"]
    starts = [event["content_block"]["type"] for event in at_once if event["type"] == "content_block_start"]
    assert starts == ["thinking", "text", "tool_use", "tool_use"]


ANSWERS = st.lists(
    st.one_of(
        st.text(alphabet="ab \né", max_size=6),
        st.text(alphabet="ab \n", max_size=4).map(lambda text: f"\x01{text}\x02"),
        st.dictionaries(st.sampled_from("ab"), st.text(alphabet='é"\\', max_size=3), max_size=2).map(
            lambda value: f"\x03look\x04{json.dumps(value, ensure_ascii=False)}\x05"
        ),
    ),
    max_size=6,
).map("".join)


@given(ANSWERS, st.lists(st.integers(0, 120), max_size=12))
def test_streams_add_up_to_whole_messages_wherever_steps_cut_them(text: str, cuts: list[int]) -> None:
    submission = parsed(tools=[TOOL], stream=True)
    happened = events(submission, tokens(text), cuts)
    message = whole(submission, happened)
    check_message(message)
    found = payloads(streamed(submission, happened))
    check_events(found)
    assert added_up(found)["content"] == message["content"]
    indices = [event["index"] for event in found if event["type"] == "content_block_start"]
    assert indices == list(range(len(message["content"])))
    assert ends(found)["usage"] == message["usage"]
