"""Events become texts: whole and streamed have one shape and say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types import Completion

from tests.serve.openai.talk import CHAT, TEXT, chunks, cut, delta, done, events, logprob, whole, writer
from tests.serve.scripted import END
from twostroke.types import Delta, Event, FinishReason, Logprobs, TokenLogprob

SCORES = (logprob(101, 97), logprob(108, 108), logprob(108, 97), logprob(111, 97))  # of "hello", from the second on
ECHO = {"echo": True, "logprobs": 1}


def streamed(*given: Event, **fields: Any) -> list[Any]:
    found = chunks(events(writer(TEXT, stream=True, **fields), *given))
    for chunk in found:
        Completion.model_validate(filled(chunk))
    return found


def body(*given: Event, **fields: Any) -> dict[str, Any]:
    found = whole(writer(TEXT, **fields), *given)
    Completion.model_validate(filled(found))
    return found


def filled(body: dict[str, Any]) -> dict[str, Any]:
    """The body without its nulls that OpenAI sends too and its client's model does not know.

    They are the finish reason of an unfinished choice, and what comes before the first token of a repeated prompt.
    """
    return body | {
        "choices": [
            choice
            | {"finish_reason": choice["finish_reason"] or "stop"}
            | {"logprobs": {k: v[v[:1] == [None] :] for k, v in (choice["logprobs"] or {}).items()}}
            for choice in body["choices"]
        ]
    }


def test_a_stream_has_the_shape_of_a_whole_text() -> None:
    echo, text, finish = streamed(delta("!"), done(), echo=True)
    assert [c["choices"][0]["text"] for c in (echo, text, finish)] == ["hello", "!", ""]
    assert {c["object"] for c in (echo, text, finish)} == {"text_completion"}
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert body(delta("!"), done(), echo=True)["choices"][0]["text"] == "hello!"


def test_marks_of_calls_are_text_here() -> None:
    assert body(delta("[c f]{}[/c]"), done())["choices"][0]["text"] == "[c f]{}[/c]"


def test_log_probabilities() -> None:
    entries = (
        Logprobs(TokenLogprob(97, -0.5), (TokenLogprob(98, -0.25),)),
        Logprobs(TokenLogprob(98, -0.5), (TokenLogprob(98, -0.5),)),
    )
    assert body(Delta(0, (97, 98), entries), done(), logprobs=1)["choices"][0]["logprobs"] == {
        "tokens": ["a", "b"],
        "token_logprobs": [-0.5, -0.5],
        "top_logprobs": [{"b": -0.25, "a": -0.5}, {"b": -0.5}],
        "text_offset": [0, 1],
    }


def test_a_repeated_prompt_has_its_log_probabilities() -> None:
    answer = Delta(0, (33,), (logprob(33, 97),), scores=SCORES)
    choice = body(answer, done(), **ECHO)["choices"][0]
    assert choice["text"] == "hello!"
    assert choice["logprobs"] == {
        "tokens": ["h", "e", "l", "l", "o", "!"],
        "token_logprobs": [None, -0.5, -0.5, -0.5, -0.5, -0.5],
        "top_logprobs": [None, {"a": -1.0, "e": -0.5}, {"l": -1.0}, {"a": -1.0, "l": -0.5}, {"a": -1.0, "o": -0.5},
                         {"a": -1.0, "!": -0.5}],
        "text_offset": [0, 1, 2, 3, 4, 5],
    }  # fmt: skip


def test_a_prompt_may_be_scored_without_an_answer_as_lm_eval_does() -> None:
    answer = Delta(0, (33,), (logprob(33, 97),), scores=SCORES)
    found = body(answer, done(reason=FinishReason.STOP), max_tokens=0, **ECHO)
    (choice,) = found["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("hello", "length")
    assert choice["logprobs"]["tokens"] == ["h", "e", "l", "l", "o"]
    assert choice["logprobs"]["token_logprobs"] == [None, -0.5, -0.5, -0.5, -0.5]
    assert found["usage"]["completion_tokens"] == 0
    first, last = streamed(answer, done(), max_tokens=0, **ECHO)
    assert (first["choices"][0]["text"], last["choices"][0]["text"]) == ("hello", "")
    assert first["choices"][0]["logprobs"] == choice["logprobs"]


def test_a_prompt_of_one_token_has_nothing_before_it() -> None:
    (choice,) = body(delta("a"), done(), prompt="x", **ECHO)["choices"]
    assert choice["logprobs"]["token_logprobs"] == [None]


@given(st.lists(st.integers(0, 4), max_size=3), st.lists(st.integers(0, 12), max_size=5), st.text(max_size=6))
def test_however_it_is_cut_the_stream_adds_up_to_the_whole(scored: list[int], cuts: list[int], said: str) -> None:
    raw = [*said.encode("utf-8", "replace"), END]
    edges = sorted(scored)
    parts = [SCORES[a:b] for a, b in zip([0, *edges], [*edges, 4], strict=True)]
    deltas = [Delta(0, (), scores=part) for part in parts]
    deltas += [Delta(0, d.tokens, tuple(logprob(t, 97) for t in d.tokens)) for d in cut(raw, cuts)]
    for fields in (
        ECHO,
        {"logprobs": 1},
        {"echo": True},
        {"return_token_ids": True},
        ECHO | {"return_token_ids": True},
    ):
        (choice,) = body(*deltas, done(), **fields)["choices"]
        pieces = [chunk["choices"][0] for chunk in streamed(*deltas, done(), **fields)]
        assert "".join(piece["text"] for piece in pieces) == choice["text"]
        assert pieces[-1]["finish_reason"] == choice["finish_reason"]
        assert [t for piece in pieces for t in piece.get("token_ids", [])] == choice.get("token_ids", [])
        told = [piece["logprobs"] for piece in pieces if piece["logprobs"]]
        for name, values in (choice["logprobs"] or {}).items():
            assert [value for one in told for value in one[name]] == values


def test_several_prompts_are_numbered_through() -> None:
    wire = writer(TEXT, prompt=["hello", "hi"], n=2)
    for place in (0, 1):
        for choice in (0, 1):
            list(wire.take(place, delta(f"{place}{choice}", choice=choice)))
            list(wire.take(place, done(choice)))
    found = wire.whole()
    assert [(c["index"], c["text"]) for c in found["choices"]] == [(0, "00"), (1, "01"), (2, "10"), (3, "11")]
    assert found["usage"]["prompt_tokens"] == 7
    assert found["usage"]["prompt_tokens_details"]["cached_tokens"] == 4


def test_scores_that_came_with_one_continuation_are_those_of_all() -> None:
    first = Delta(0, (33,), (logprob(33, 97),), scores=SCORES)
    second = Delta(1, (33,), (logprob(33, 97),))
    found = body(first, second, done(0), done(1), n=2, **ECHO)
    assert found["choices"][0]["logprobs"] == found["choices"][1]["logprobs"]


def test_token_ids_and_prompt_logprobs_stand_on_each_choice() -> None:
    answer = Delta(0, (97, END), scores=SCORES)
    (choice,) = body(answer, done(), return_token_ids=True, prompt_logprobs=1)["choices"]
    assert (choice["prompt_token_ids"], choice["token_ids"]) == (list(b"hello"), [97, END])
    assert choice["prompt_logprobs"][0] is None
    assert len(choice["prompt_logprobs"]) == 5
    first, *_ = streamed(answer, done(), return_token_ids=True)
    assert first["choices"][0]["prompt_token_ids"] == list(b"hello")


@pytest.mark.parametrize(("wire", "fields"), [(CHAT, {"logprobs": True, "top_logprobs": 1}), (TEXT, {"logprobs": 1})])
def test_a_probability_of_nothing_is_still_json(wire: Any, fields: dict[str, Any]) -> None:
    entry = Logprobs(TokenLogprob(97, float("-inf")), (TokenLogprob(97, float("-inf")),))
    found = whole(writer(wire, **fields), Delta(0, (97,), (entry,)), done())
    assert "-9999.0" in json.dumps(found["choices"][0]["logprobs"], allow_nan=False)
