"""Events become chats: whole and streamed say the same."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.serve.openai.talk import (
    CHAT,
    TaggedText,
    chat,
    chunks,
    cut,
    delta,
    done,
    events,
    logprob,
    phases,
    tagged,
    whole,
    writer,
)
from tests.serve.scripted import END
from twostroke.errors import Draining, RunnerFailed, TwostrokeError
from twostroke.types import Delta, Done, Event, FinishReason, Logprobs, TokenLogprob

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
USAGE = {"include_usage": True}
LOOP = 'Hm.[t]why?[/t]So:[c f]{"a":1}[/c][c g]{}[/c]!'


def streamed(*given: Event, **fields: Any) -> list[Any]:
    found = chunks(events(writer(stream=True, **fields), *given))
    for chunk in found:
        ChatCompletionChunk.model_validate(chunk)
    return found


def body(*given: Event, **fields: Any) -> dict[str, Any]:
    found = whole(writer(**fields), *given)
    ChatCompletion.model_validate(found)
    return found


def added(stream: list[Any]) -> dict[int, dict[str, Any]]:
    """Each choice's deltas added up to a message, the way a client does."""
    found: dict[int, dict[str, Any]] = defaultdict(lambda: {"content": "", "calls": {}, "logprobs": [], "ids": []})
    for chunk in stream:
        for choice in chunk["choices"]:
            into, part = found[choice["index"]], choice["delta"]
            into["role"] = into.get("role") or part.get("role")
            into["content"] += part.get("content") or ""
            into["thought"] = into.get("thought", "") + part.get("reasoning_content", "")
            into["finish"] = choice["finish_reason"]
            into["logprobs"] += (choice["logprobs"] or {"content": []})["content"]
            into["ids"] += choice.get("token_ids", [])
            for call in part.get("tool_calls", ()):
                known = into["calls"].setdefault(call["index"], {"id": call.get("id"), "name": "", "arguments": ""})
                assert call.get("id") in (None, known["id"])
                for name, piece in call["function"].items():
                    known[name] += piece
    return found


def test_a_stream_is_role_text_finish() -> None:
    role, text, finish = streamed(delta("hi"), done())
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert text["choices"][0]["delta"] == {"content": "hi"}
    assert finish["choices"][0]["delta"] == {}
    assert [c["choices"][0]["finish_reason"] for c in (role, text, finish)] == [None, None, "stop"]
    for chunk in (role, text, finish):
        assert (chunk["id"], chunk["object"], chunk["created"]) == (
            "chatcmpl-1",
            "chat.completion.chunk",
            1700000000,
        )
        assert "usage" not in chunk


def test_the_account_stands_on_the_last_chunk_of_the_last_choice_where_no_usage_is_asked_for() -> None:
    *others, last = streamed(delta("a"), done(0), delta("b", choice=1), done(1), n=2)
    assert last["phases"]["decode"]["output_tokens"] == 2
    assert last["timings"]["predicted_n"] == 2
    assert not any("phases" in chunk for chunk in others)


def test_usage_is_null_on_every_chunk_and_whole_on_the_last() -> None:
    *others, last = streamed(delta("hi"), done(), stream_options=USAGE)
    assert [chunk["usage"] for chunk in others] == [None] * 3
    assert last["choices"] == []
    assert last["usage"] == {
        "prompt_tokens": 5,
        "completion_tokens": 2,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 2},
        "completion_tokens_details": {
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
            "reasoning_tokens": 0,
        },
        "prompt_cache_hit_tokens": 2,
        "prompt_cache_miss_tokens": 3,
    }
    assert last["phases"]["prefill"]["cached_tokens"] == 2
    assert last["metrics"]["time_to_first_token_ms"] == 3.0


def test_usage_so_far_may_stand_on_every_chunk() -> None:
    found = streamed(delta("hi"), delta("!"), done(), stream_options=USAGE | {"continuous_usage_stats": True})
    assert [chunk["usage"]["completion_tokens"] for chunk in found] == [0, 2, 3, 3, 3]


def test_thoughts_words_and_calls_of_one_step_come_in_their_order() -> None:
    found = streamed(delta(LOOP), done(), tools=TOOLS)
    deltas = [chunk["choices"][0]["delta"] for chunk in found]
    call = "call_1000"
    assert deltas == [
        {"role": "assistant", "content": ""},
        {"content": "Hm."},
        {"reasoning_content": "why?"},
        {"content": "So:"},
        {"tool_calls": [{"index": 0, "id": deltas[4]["tool_calls"][0]["id"], "type": "function",
                         "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":1}'}}]},
        {"tool_calls": [{"index": 1, "id": call[:-4] + "1001", "type": "function",
                         "function": {"name": "g", "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
        {"content": "!"},
        {},
    ]  # fmt: skip
    assert found[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_whole_chat_with_thoughts_and_calls() -> None:
    message = body(delta(LOOP), done(), tools=TOOLS)["choices"][0]["message"]
    assert message == {
        "role": "assistant",
        "content": "Hm.So:!",
        "refusal": None,
        "reasoning_content": "why?",
        "tool_calls": [
            {"id": "call_1000", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
            {"id": "call_1001", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }


def test_a_message_of_calls_alone_has_no_content() -> None:
    assert body(delta("[c f]{}[/c]"), done(), tools=TOOLS)["choices"][0]["message"]["content"] is None
    assert body(done())["choices"][0]["message"]["content"] == ""


def test_a_forced_call_ends_with_tool_calls_as_any_other() -> None:
    forced = {"type": "function", "function": {"name": "f"}}
    found = body(delta("[c f]{}[/c]"), done(), tools=TOOLS, tool_choice=forced)
    assert found["choices"][0]["finish_reason"] == "tool_calls"
    cut_off = body(delta("[c f]{"), done(reason=FinishReason.LENGTH), tools=TOOLS)
    assert cut_off["choices"][0]["finish_reason"] == "length"


def test_calls_of_the_older_way() -> None:
    fields: dict[str, Any] = {"functions": [{"name": "f"}]}
    choice = body(delta('[c f]{"a":1}[/c]'), done(), **fields)["choices"][0]
    assert choice["message"]["function_call"] == {"name": "f", "arguments": '{"a":1}'}
    assert "tool_calls" not in choice["message"]
    assert choice["finish_reason"] == "function_call"
    deltas = [c["choices"][0]["delta"] for c in streamed(delta("[c f]{}[/c][c f]{}[/c]"), done(), **fields)]
    assert deltas[1:] == [
        {"function_call": {"name": "f", "arguments": ""}},
        {"function_call": {"arguments": "{}"}},
        {},
    ]


PIECES = st.lists(
    st.sampled_from(["é", "€ ", "[t]", "[/t]", "[c f]", "[c g]", '{"a":', "}", "[/c]", "STOP", "ST", "[", "\N{OX}"]),
    max_size=12,
)


@given(PIECES, st.lists(st.integers(0, 60), max_size=8), st.booleans(), st.booleans())
def test_however_the_tokens_are_cut_the_stream_adds_up_to_the_whole(
    said: list[str], cuts: list[int], ids: bool, stops: bool
) -> None:
    raw = [*"".join(said).encode(), END]
    fields: dict[str, Any] = {"tools": TOOLS, "return_token_ids": ids, "logprobs": True, "top_logprobs": 1}
    fields |= {"stop": "STOP"} if stops else {}
    pieces = [Delta(0, d.tokens, tuple(logprob(t, 97) for t in d.tokens)) for d in cut(raw, cuts)]
    (choice,) = body(Delta(0, tuple(raw), tuple(logprob(t, 97) for t in raw)), done(), **fields)["choices"]
    (found,) = added(streamed(*pieces, done(), **fields)).values()
    message = choice["message"]
    assert (found["role"], found["finish"]) == ("assistant", choice["finish_reason"])
    assert found["content"] == (message["content"] or "")
    assert found["thought"] == message.get("reasoning_content", "")
    assert [found["calls"][i] for i in sorted(found["calls"])] == [
        {"id": call["id"], **call["function"]} for call in message.get("tool_calls", ())
    ]
    assert found["logprobs"] == choice["logprobs"]["content"]
    assert found["ids"] == choice.get("token_ids", [])


def test_an_unfinished_character_is_held_back_and_at_the_end_replaced() -> None:
    found = streamed(Delta(0, (0xE2, 0x82)), done())
    assert [c["choices"][0]["delta"].get("content") for c in found] == ["", "\N{REPLACEMENT CHARACTER}", None]


def test_the_token_that_ends_an_answer_is_counted_but_not_shown() -> None:
    found = body(Delta(0, (104, END), (logprob(104), logprob(END))), done(), logprobs=True)
    assert found["choices"][0]["message"]["content"] == "h"
    assert len(found["choices"][0]["logprobs"]["content"]) == 1
    assert found["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize(
    ("given", "fields", "reason"),
    [
        ("one END", {"stop": "END"}, "END"),
        ("a!", {"stop_token_ids": [33]}, 33),
        ("a", {}, None),
    ],
)
def test_what_ended_an_answer_is_told(given: str, fields: dict[str, Any], reason: object) -> None:
    choice = body(delta(given), done(), **fields)["choices"][0]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", reason)
    last = streamed(delta(given), done(), **fields)[-1]["choices"][0]
    assert (last["finish_reason"], last["stop_reason"]) == ("stop", reason)


def test_log_probabilities() -> None:
    euro = Logprobs(TokenLogprob(0xE2, -0.5), (TokenLogprob(0xE2, -0.5), TokenLogprob(97, -1.5)))
    found = body(Delta(0, (0xE2,), (euro,)), done(), logprobs=True, top_logprobs=2)
    (entry,) = found["choices"][0]["logprobs"]["content"]
    assert (entry["bytes"], entry["logprob"], entry["token"]) == ([0xE2], -0.5, "\N{REPLACEMENT CHARACTER}")
    assert [t["bytes"] for t in entry["top_logprobs"]] == [[0xE2], [97]]
    assert body(delta("a"), done())["choices"][0]["logprobs"] is None


def test_log_probabilities_of_the_prompt_as_vllm_tells_them() -> None:
    scores = (logprob(101, 97, 101), logprob(108, 97), logprob(108), logprob(111))
    found = body(Delta(0, (97,), scores=scores), done(), prompt_logprobs=2)
    assert found["prompt_logprobs"][0] is None
    assert len(found["prompt_logprobs"]) == 5
    assert found["prompt_logprobs"][1] == {
        "101": {"logprob": -2.0, "rank": 2, "decoded_token": "e"},
        "97": {"logprob": -1.0, "rank": 1, "decoded_token": "a"},
    }
    assert found["prompt_logprobs"][2]["108"] == {"logprob": -0.5, "rank": None, "decoded_token": "l"}


def test_token_ids_of_prompt_and_answer() -> None:
    found = body(Delta(0, (97, END)), done(), return_token_ids=True)
    assert found["prompt_token_ids"] == list(b"hello")
    assert found["choices"][0]["token_ids"] == [97, END]
    first, *_ = streamed(Delta(0, (97, END)), done(), return_token_ids=True)
    assert first["prompt_token_ids"] == list(b"hello")


def test_an_answer_that_was_only_prepared_says_nothing() -> None:
    for fields in ({"max_tokens": 0}, {"prompt_cache_options": {"prewarm": True}}):
        found = body(delta("a"), done(), **fields, return_token_ids=True, logprobs=True)
        (choice,) = found["choices"]
        assert (choice["message"]["content"], choice["finish_reason"], choice["token_ids"]) == ("", "length", [])
        assert found["usage"]["completion_tokens"] == 0
        assert len(streamed(delta("a"), done(), **fields)) == 2


def test_chunks_may_be_of_sizes_that_say_little() -> None:
    wire = writer(stream=True, stream_options={"include_obfuscation": True, "include_usage": True})
    stream = events(wire, delta("a"), delta("much more text than that"), done())
    *sizes, _, _ = [len(line.removeprefix(b"data: ")) for line in stream.removesuffix(b"\n\n").split(b"\n\n")]
    assert len(sizes) == 4
    assert {size % 256 for size in sizes} == {0}
    found = chunks(stream)
    assert all(isinstance(chunk["obfuscation"], str) for chunk in found[:-1])
    assert "obfuscation" not in found[-1]
    assert not any("obfuscation" in chunk for chunk in streamed(delta("a"), done()))


def test_several_choices_have_their_own_accounts_and_a_sum() -> None:
    found = body(delta("a"), delta("bc", choice=1), done(0), done(1, account=phases(steps=2)), n=2)
    assert [c["message"]["content"] for c in found["choices"]] == ["a", "bc"]
    assert [c["phases"]["decode"]["steps"] for c in found["choices"]] == [1, 2]
    assert found["phases"]["decode"]["steps"] == 3
    assert found["metrics"] is None
    assert (found["usage"]["prompt_tokens"], found["usage"]["completion_tokens"]) == (5, 3)


def test_calls_of_several_choices_have_ids_of_their_own() -> None:
    said = "[c f]{}[/c]"
    found = body(delta(said), delta(said, choice=1), done(0), done(1), n=2, tools=TOOLS)
    assert len({c["message"]["tool_calls"][0]["id"] for c in found["choices"]}) == 2


def test_an_answer_is_remembered_once_it_has_ended() -> None:
    over = tagged()
    wire = CHAT.writer(chat(over, tools=TOOLS), over)
    whole(wire, delta("a[t]b[/t][c f]{}[/c]"), done())
    assert isinstance(over.text, TaggedText)
    ((words, thoughts, calls, tokens),) = over.text.kept
    assert (words, thoughts, [call.name for call in calls]) == ("a", "b", ["f"])
    assert bytes(tokens) == b"a[t]b[/t][c f]{}[/c]"


@pytest.mark.parametrize(
    ("reason", "kind", "status"), [(FinishReason.ERROR, RunnerFailed, 500), (FinishReason.ABORT, Draining, 503)]
)
def test_an_answer_without_an_end_is_an_error(reason: FinishReason, kind: type[TwostrokeError], status: int) -> None:
    with pytest.raises(kind) as caught:
        events(writer(), delta("a"), Done(0, reason, None, None))
    assert caught.value.status == status
