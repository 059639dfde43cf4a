"""Responses and their streams: byte for byte, by the client's own models, and as the client adds them up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.serve.responses.plain import GROUP, PATCH, TOOL, Served, call, events, payloads
from twostroke.errors import Draining, RunnerFailed
from twostroke.serve.responses.items import unsealed
from twostroke.types import Delta, Done, FinishReason

GOLDEN = Path(__file__).parent / "golden"
MODEL: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
LENGTH, STOP = FinishReason.LENGTH, FinishReason.STOP
TOOLS = [TOOL, PATCH, GROUP]
ANSWERS = {
    "words": ("Hello, you.", {}, (6,), STOP),
    "cut-off": ("Hello, yo", {"max_output_tokens": 9}, (), LENGTH),
    "nothing": ("", {}, (), STOP),
    "call": (call("look", q="x"), {"tools": [TOOL]}, (), STOP),
    "cut-off-call": ('<tool_call>\n{"name": "look", "arguments": {"q": "x', {"tools": [TOOL]}, (), LENGTH),
    "everything": (
        f"<think>Hm.</think>\n\nFirst\n{call('look', q='x')}\n{call('spawn')}{call('apply_patch', input='*** Go')}",
        {"tools": TOOLS, "include": ["reasoning.encrypted_content"], "instructions": "Be brief."},
        (5, 70),
        STOP,
    ),
    "logprobs": ("Hé", {"top_logprobs": 1}, (2,), STOP),
    "obfuscated": ("Hi", {"stream_options": {"include_obfuscation": True}}, (), STOP),
    "prewarm": ("x", {"prompt_cache_options": {"prewarm": True}}, (), LENGTH),
}  # fmt: skip


@pytest.fixture
def served() -> Served:
    return Served()


def stream(served: Served, name: str) -> bytes:
    answer, fields, cuts, reason = ANSWERS[name]
    submission = served.parsed(stream=True, **fields)
    return served.streamed(submission, events(submission, answer, cuts, reason, cached=2))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_stream_is_what_it_was_byte_for_byte(name: str, served: Served) -> None:
    assert stream(served, name) == (GOLDEN / f"{name}.sse").read_bytes()


@pytest.mark.parametrize("name", ANSWERS)
def test_every_event_fits_the_clients_own_model(name: str, served: Served) -> None:
    for event in payloads(stream(served, name)):
        assert MODEL.validate_python(event).type == event["type"]


@pytest.mark.parametrize("name", ANSWERS)
def test_a_whole_response_fits_the_clients_model_and_is_what_the_stream_ends_with(name: str, served: Served) -> None:
    answer, fields, cuts, reason = ANSWERS[name]
    submission = served.parsed(**fields)
    body = served.whole(submission, events(submission, answer, cuts, reason, cached=2))
    assert Response.model_validate(body).id == "resp_ab1"
    assert payloads(stream(served, name))[-1]["response"] == body


@pytest.mark.parametrize("name", ANSWERS)
def test_the_client_adds_a_stream_up_to_the_whole_response(name: str, served: Served) -> None:
    raw = stream(served, name)
    ending = payloads(raw)[-1]
    kind = {"content-type": "text/event-stream"}
    reply = httpx.MockTransport(lambda _: httpx.Response(200, content=raw, headers=kind))
    with (
        openai.OpenAI(api_key="-", base_url="http://x/v1", http_client=httpx.Client(transport=reply)) as client,
        client.responses.stream(model="echo", input="hello") as told,
    ):
        seen = list(told)
        final = told.get_final_response() if ending["type"] == "response.completed" else None
    assert [event.type for event in seen] == [event["type"] for event in payloads(raw)]
    text = "".join(event.delta for event in seen if event.type == "response.output_text.delta")
    assert text == Response.model_validate(ending["response"]).output_text
    if final is not None:
        assert final.output_text == text
        assert [item.id for item in final.output] == [item["id"] for item in ending["response"]["output"]]


def test_events_come_in_the_documented_order(served: Served) -> None:
    assert [event["type"].removeprefix("response.") for event in payloads(stream(served, "words"))] == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip


def test_items_are_told_apart(served: Served) -> None:
    output = payloads(stream(served, "everything"))[-1]["response"]["output"]
    assert [(item["type"], item["id"]) for item in output] == [
        ("reasoning", "rs_ab100"), ("message", "msg_ab101"), ("function_call", "fc_ab102"),
        ("function_call", "fc_ab103"), ("custom_tool_call", "ctc_ab104"),
    ]  # fmt: skip
    assert (output[0]["content"][0]["text"], unsealed(output[0]["encrypted_content"])) == ("Hm.", "Hm.")
    assert (output[2]["name"], json.loads(output[2]["arguments"])) == ("look", {"q": "x"})
    assert (output[3]["name"], output[3]["namespace"]) == ("spawn", "agents")
    assert (output[4]["name"], output[4]["input"]) == ("apply_patch", "*** Go")
    assert len({item["call_id"] for item in output[2:]}) == 3


def test_reasoning_is_sealed_only_where_asked_for(served: Served) -> None:
    body = served.answered("<think>Hm.</think>Yes", stream=False)
    assert body["output"][0]["encrypted_content"] is None


def test_a_call_that_the_limit_cut_off_is_incomplete(served: Served) -> None:
    body = payloads(stream(served, "cut-off-call"))[-1]["response"]
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert body["output"][0]["status"] == "incomplete"


def test_usage_adds_up(served: Served) -> None:
    submission = served.parsed("hello")
    body = served.whole(submission, events(submission, "<think>Hm.</think>Yes", cached=2))
    assert body["usage"] == {
        "input_tokens": 6,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 4},
        "output_tokens": 22,
        "output_tokens_details": {"reasoning_tokens": 18},
        "total_tokens": 28,
    }
    assert body["phases"]["prefill"]["cached_tokens"] == 2


def test_a_request_without_the_cache_writes_nothing_to_it(served: Served) -> None:
    body = served.answered("Yes", prefix_cache=False)
    assert body["usage"]["input_tokens_details"] == {"cached_tokens": 0, "cache_write_tokens": 0}


def test_a_prewarmed_prompt_has_no_output(served: Served) -> None:
    body = payloads(stream(served, "prewarm"))[-1]["response"]
    assert (body["status"], body["output"], body["usage"]["output_tokens"]) == ("completed", [], 0)


def test_an_answer_is_remembered_for_the_next_turn(served: Served) -> None:
    served.answered("Yes")
    assert [(words, tokens[:3]) for _, words, _, _, tokens in served.text.remembered] == [("Yes", tuple(b"Yes"))]


@pytest.mark.parametrize(("reason", "raised"), [(FinishReason.ERROR, RunnerFailed), (FinishReason.ABORT, Draining)])
def test_a_stream_that_fails_says_so_before_it_raises(served: Served, reason: FinishReason, raised: type) -> None:
    writer = served.format.writer(served.parsed(), served.service)
    found = [*writer.begin(), *writer.take(0, Delta(0, (72,)))]
    with pytest.raises(raised, match="broke"):
        found.extend(writer.take(0, Done(0, reason, None, "it broke")))
    last = payloads(b"".join(found))[-1]
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert last["response"]["error"] == {"code": "server_error", "message": "it broke"}
    assert MODEL.validate_python(last)
    assert len(served.store) == 0


def test_the_event_of_an_error_fits_the_clients_model(served: Served) -> None:
    event = served.format.error_event(RunnerFailed("it broke"), "req_1")
    assert MODEL.validate_python(payloads(event)[0]).message == "it broke"


def test_several_boundaries_inside_one_step_come_out_right(served: Served) -> None:
    submission = served.parsed(tools=TOOLS)
    answer = "<think>a</think>b" + call("look", q="1") + call("look", q="2")
    kinds = [item["type"] for item in served.whole(submission, events(submission, answer))["output"]]
    assert kinds == ["reasoning", "message", "function_call", "function_call"]


def test_white_space_between_calls_is_no_message(served: Served) -> None:
    body = served.answered(call("look") + "\n\n" + call("look") + "\n", tools=[TOOL])
    assert [item["type"] for item in body["output"]] == ["function_call", "function_call"]


def test_log_probabilities_go_with_the_text_they_brought(served: Served) -> None:
    submission = served.parsed(include=["message.output_text.logprobs"], top_logprobs=2)
    body = served.whole(submission, events(submission, "<think>a</think>bé"))
    shown = body["output"][1]["content"][0]["logprobs"]
    assert [entry["bytes"] for entry in shown] == [[ord("b")], [0xC3], [0xA9]]
    assert {len(entry["top_logprobs"]) for entry in shown} == {2}


PIECES = st.lists(
    st.sampled_from(
        ["word ", "é", "\n", "<", call("look", q="é"), call("spawn"), call("apply_patch", input="a\nb"), "x"]
    )
)


@given(
    st.booleans(), PIECES, st.lists(st.integers(1, 400), max_size=12), st.sampled_from([STOP, LENGTH]), st.booleans()
)
def test_a_stream_adds_up_to_the_whole_however_it_is_cut(
    thinks: bool, pieces: list[str], cuts: list[int], reason: FinishReason, scored: bool
) -> None:
    served = Served()
    answer = ("<think>Hm.</think>" if thinks else "") + "".join(pieces)
    submission = served.parsed(tools=TOOLS, **({"top_logprobs": 1} if scored else {}))
    body = served.whole(submission, events(submission, answer, (), reason))
    told = payloads(served.streamed(submission, events(submission, answer, cuts, reason)))
    assert told[-1]["response"] == body
    done = [event["item"] for event in told if event["type"] == "response.output_item.done"]
    assert done == body["output"]
    for item in body["output"]:
        mine = [event for event in told if event.get("item_id") == item["id"] and "delta" in event]
        text = "".join(event["delta"] for event in mine)
        assert text == (
            item.get("arguments") or item.get("input") or "".join(p["text"] for p in item.get("content", []))
        )
        if item["type"] == "message":
            assert [entry for event in mine for entry in event["logprobs"]] == item["content"][0]["logprobs"]
