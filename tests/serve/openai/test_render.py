"""Events become bodies: whole and streamed say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serve.scripted import END, ByteText, service
from twostroke.errors import Draining, RunnerFailed, TwostrokeError
from twostroke.serve.fields import Fields
from twostroke.serve.openai import parse, render
from twostroke.serve.openai.render import Answer
from twostroke.types import (
    DecodePhase,
    Delta,
    Done,
    Event,
    FinishReason,
    Logprobs,
    Phases,
    PrefillPhase,
    TokenLogprob,
)

SERVICE = service()
CALLER = parse.Caller("chatcmpl-1", created=17)


def answer(*, chat: bool = True, **fields: Any) -> Answer:
    if chat:
        body = {"messages": [{"role": "user", "content": "hello"}], **fields}
        return Answer(parse.chat(Fields(body), SERVICE, CALLER), ByteText())
    return Answer(parse.completion(Fields({"prompt": "hello", **fields}), SERVICE, CALLER), ByteText())


def phases(*, drafted: int = 0, accepted: tuple[int, ...] = (), steps: int = 1, cached: int = 2) -> Phases:
    return Phases(
        queue_ms=1.0,
        ttft_ms=3.0,
        tpot_ms=4.0,
        prefill=PrefillPhase(5, cached, 5 - cached, 2.0, 2.0, 0.5, None),
        decode=DecodePhase(
            output_tokens=steps + sum(accepted), steps=steps, drafted=drafted, accepted=sum(accepted),
            accepted_per_position=accepted, ms=8.0, own_ms=8.0, draft_ms=0.0, saved_ms=0.0,
            drafted_steps=steps if drafted else 0, accepted_by={"prediction": sum(accepted)},
        ),
    )  # fmt: skip


def done(choice: int = 0, reason: FinishReason = FinishReason.STOP, account: Phases | None = None) -> Done:
    return Done(choice, reason, account or phases())


def chunks(whole: Answer, *events: Event, place: int = 0) -> list[dict[str, Any]]:
    found = list(whole.begin())
    for event in events:
        found += whole.take(place, event)
    return found + list(whole.finish())


def delta(text: str, choice: int = 0) -> Delta:
    return Delta(choice, tuple(text.encode()))


def test_a_chat_stream_is_role_text_finish() -> None:
    role, text, finish = chunks(answer(stream=True), delta("hi"), done())
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert text["choices"][0]["delta"] == {"content": "hi"}
    assert finish["choices"][0]["delta"] == {}
    assert [c["choices"][0]["finish_reason"] for c in (role, text, finish)] == [None, None, "stop"]
    for chunk in (role, text, finish):
        assert (chunk["id"], chunk["object"], chunk["created"]) == ("chatcmpl-1", "chat.completion.chunk", 17)
        assert "usage" not in chunk


def test_usage_is_null_on_every_chunk_and_whole_on_the_last() -> None:
    *others, last = chunks(answer(stream=True, stream_options={"include_usage": True}), delta("hi"), done())
    assert [chunk["usage"] for chunk in others] == [None] * 3
    assert last["choices"] == []
    assert last["usage"] == {
        "prompt_tokens": 5,
        "completion_tokens": 2,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 2},
    }
    assert last["phases"]["prefill"]["cached_tokens"] == 2
    assert last["metrics"]["time_to_first_token_ms"] == 3.0


def test_a_text_stream_has_the_shape_of_a_whole_text() -> None:
    echo, text, finish = chunks(answer(chat=False, stream=True, echo=True), delta("!"), done())
    assert [c["choices"][0]["text"] for c in (echo, text, finish)] == ["hello", "!", ""]
    assert {c["object"] for c in (echo, text, finish)} == {"text_completion"}
    assert finish["choices"][0]["finish_reason"] == "stop"


def test_a_whole_chat() -> None:
    whole = answer()
    chunks(whole, delta("hi"), done(reason=FinishReason.LENGTH))
    body = whole.whole()
    (choice,) = body["choices"]
    assert choice == {
        "index": 0,
        "message": {"role": "assistant", "content": "hi", "refusal": None},
        "logprobs": None,
        "finish_reason": "length",
    }
    assert (body["object"], body["usage"]["total_tokens"]) == ("chat.completion", 7)


@given(st.text(st.characters(codec="utf-8"), max_size=30), st.data())
def test_streamed_pieces_add_up_to_the_whole_text(text: str, data: st.DataObject) -> None:
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=5)))
    pieces = [Delta(0, tuple(raw[a:b])) for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    whole = answer()
    found = chunks(whole, *pieces, done())
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in found) == text
    assert whole.whole()["choices"][0]["message"]["content"] == text
    assert whole.whole()["usage"]["completion_tokens"] == len(raw)


def test_an_unfinished_character_is_held_back_and_at_the_end_replaced() -> None:
    found = chunks(answer(), Delta(0, (0xE2, 0x82)), done())
    assert [c["choices"][0]["delta"].get("content") for c in found] == ["", "\N{REPLACEMENT CHARACTER}", None]


def test_the_token_that_ends_an_answer_is_counted_but_not_shown() -> None:
    entry = Logprobs(TokenLogprob(104, -0.1), ())
    last = Logprobs(TokenLogprob(END, -0.2), ())
    whole = answer(logprobs=True)
    chunks(whole, Delta(0, (104, END), (entry, last)), done())
    body = whole.whole()
    assert body["choices"][0]["message"]["content"] == "h"
    assert len(body["choices"][0]["logprobs"]["content"]) == 1
    assert body["usage"]["completion_tokens"] == 2


def test_a_stop_string_is_cut_off_across_pieces() -> None:
    found = chunks(answer(stop="END"), delta("one E"), delta("N"), delta("D"), done())
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in found) == "one "


def test_log_probabilities_of_a_chat() -> None:
    euro = Logprobs(TokenLogprob(0xE2, -0.5), (TokenLogprob(0xE2, -0.5), TokenLogprob(97, -1.5)))
    whole = answer(logprobs=True, top_logprobs=2)
    chunks(whole, Delta(0, (0xE2,), (euro,)), done())
    (entry,) = whole.whole()["choices"][0]["logprobs"]["content"]
    assert (entry["bytes"], entry["logprob"], entry["token"]) == ([0xE2], -0.5, "\N{REPLACEMENT CHARACTER}")
    assert [t["bytes"] for t in entry["top_logprobs"]] == [[0xE2], [97]]


def test_log_probabilities_of_a_text() -> None:
    entries = (
        Logprobs(TokenLogprob(97, -0.5), (TokenLogprob(98, -0.25),)),
        Logprobs(TokenLogprob(98, -0.5), (TokenLogprob(98, -0.5),)),
    )
    whole = answer(chat=False, logprobs=1)
    chunks(whole, Delta(0, (97, 98), entries), done())
    assert whole.whole()["choices"][0]["logprobs"] == {
        "tokens": ["a", "b"],
        "token_logprobs": [-0.5, -0.5],
        "top_logprobs": [{"b": -0.25, "a": -0.5}, {"b": -0.5}],
        "text_offset": [0, 1],
    }


def test_a_probability_of_nothing_is_still_json() -> None:
    entry = Logprobs(TokenLogprob(97, float("-inf")), (TokenLogprob(97, float("-inf")),))
    for chat, fields in ((True, {"logprobs": True, "top_logprobs": 1}), (False, {"logprobs": 1})):
        whole = answer(chat=chat, **fields)
        chunks(whole, Delta(0, (97,), (entry,)), done())
        assert "-9999.0" in json.dumps(whole.whole()["choices"][0]["logprobs"], allow_nan=False)


def test_several_choices_have_their_own_accounts_and_a_sum() -> None:
    whole = answer(n=2)
    chunks(whole, delta("a"), delta("bc", choice=1), done(0), done(1, account=phases(steps=2)))
    body = whole.whole()
    assert [c["message"]["content"] for c in body["choices"]] == ["a", "bc"]
    assert [c["phases"]["decode"]["steps"] for c in body["choices"]] == [1, 2]
    assert body["phases"]["decode"]["steps"] == 3
    assert body["metrics"] is None
    assert body["usage"]["prompt_tokens"] == 5
    assert body["usage"]["completion_tokens"] == 3


def test_several_prompts_are_numbered_through() -> None:
    whole = answer(chat=False, prompt=["hello", "hi"], n=2)
    for place in (0, 1):
        for choice in (0, 1):
            list(whole.take(place, delta(f"{place}{choice}", choice=choice)))
            list(whole.take(place, done(choice)))
    body = whole.whole()
    assert [(c["index"], c["text"]) for c in body["choices"]] == [(0, "00"), (1, "01"), (2, "10"), (3, "11")]
    assert body["usage"]["prompt_tokens"] == 7
    assert body["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}


def test_speculation_is_told_in_the_names_of_others() -> None:
    account = render.metrics(phases(drafted=12, accepted=(3, 1, 0, 0), steps=3))
    assert account["speculative_decoding"] == {
        "mean_acceptance_length": round(1 + 4 / 3, 6),
        "draft_acceptance_rate": round(4 / 12, 6),
        "acceptance_histogram": [0, 2, 1, 0, 0],
        "num_spec_steps": 3,
        "num_accepted_draft_tokens": 4,
        "num_draft_tokens": 12,
        "num_spec_tokens": 4,
    }
    assert account["tokens_per_second"] == 250.0
    assert render.metrics(phases())["speculative_decoding"] is None


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_the_histogram_counts_every_step_and_every_draft(reached: list[int]) -> None:
    accepted = tuple(sorted(reached, reverse=True))
    steps = 9
    histogram = render.speculative_decoding(phases(drafted=steps * 6, accepted=accepted, steps=steps))[
        "acceptance_histogram"
    ]
    assert sum(histogram) == steps
    assert sum(kept * count for kept, count in enumerate(histogram)) == sum(accepted)
    assert len(histogram) == len(accepted) + 1


def test_predictions_are_accounted_only_where_the_client_sent_one() -> None:
    whole = answer(prediction={"type": "content", "content": "guesses"})
    chunks(whole, delta("a"), done(account=phases(drafted=4, accepted=(2, 1))))
    assert whole.whole()["usage"]["completion_tokens_details"] == {
        "accepted_prediction_tokens": 3,
        "rejected_prediction_tokens": 4,
    }
    whole = answer()
    chunks(whole, delta("a"), done())
    assert "completion_tokens_details" not in whole.whole()["usage"]


@pytest.mark.parametrize(
    ("reason", "kind", "status"), [(FinishReason.ERROR, RunnerFailed, 500), (FinishReason.ABORT, Draining, 503)]
)
def test_an_answer_without_an_end_is_an_error(reason: FinishReason, kind: type[TwostrokeError], status: int) -> None:
    with pytest.raises(kind) as caught:
        chunks(answer(), delta("a"), Done(0, reason, None, None))
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (404, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "server_error"),
        (503, "service_unavailable_error"),
    ],
)
def test_errors_have_the_shape_clients_read(status: int, kind: str) -> None:
    problem = TwostrokeError("said", param="field")
    problem.status = status
    assert render.error(problem) == {
        "error": {"message": "said", "type": kind, "param": "field", "code": "internal_error"}
    }


def test_a_model_card() -> None:
    card = render.card("m", 5, 4096)
    assert card == {"id": "m", "object": "model", "created": 5, "owned_by": "twostroke", "max_model_len": 4096}
