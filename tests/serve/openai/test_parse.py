"""What a body may say, what it may not, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serve.scripted import END, ByteText, service
from twostroke.errors import InvalidParameter, PromptTooLong, RequestError, UnknownModel
from twostroke.serve.fields import Fields
from twostroke.serve.openai import parse
from twostroke.serve.openai.parse import HARMLESS, NOT_BUILT, Ask, Caller
from twostroke.serve.service import Service
from twostroke.types import Request

CALLER = Caller("chatcmpl-1", arrived_s=5.0, created=1700000000)
USER = [{"role": "user", "content": "hello"}]
SERVICE = service()


def chat(over: Service = SERVICE, caller: Caller = CALLER, **fields: Any) -> Ask:
    return parse.chat(Fields({"messages": USER, **fields}), over, caller)


def text(over: Service = SERVICE, **fields: Any) -> Ask:
    return parse.completion(Fields({"prompt": "hello", **fields}), over, replace(CALLER, id="cmpl-1"))


def only(ask: Ask) -> Request:
    (request,) = ask.requests
    return request


def refused(read: Any, **fields: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        read(**fields)
    return caught.value


def test_the_smallest_chat() -> None:
    ask = chat()
    request = only(ask)
    assert (ask.chat, ask.model, ask.stream, ask.include_usage, ask.logprobs) == (True, "echo", False, False, None)
    assert (request.id, request.prompt, request.choices) == ("chatcmpl-1", tuple(b"hello"), 1)
    assert request.max_tokens == 256 - 5
    assert request.stop_ids == {END}
    assert request.stop is None
    assert request.arrived_s == 5.0
    assert (request.namespace, request.prefix_cache, request.speculate, request.draft_tokens) == ("", True, None, None)
    assert request.sampling.temperature == 1.0


def test_everything_that_may_be_chosen_arrives() -> None:
    request = only(
        chat(
            model="echo-alias",
            temperature=0.5,
            top_p=0.9,
            top_k=40,
            min_p=0.1,
            seed=7,
            max_completion_tokens=3,
            n=2,
            stop=["a", "b"],
            prefix_cache=False,
            speculate="ngram",
            draft_tokens=4,
            stop_token_ids=[1],
            prediction={"type": "content", "content": "guess"},
            logprobs=True,
            top_logprobs=5,
        )
    )
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (0.5, 0.9, 40, 0.1)
    assert (sampling.seed, sampling.logprobs) == (7, 5)
    assert (request.max_tokens, request.choices, request.stop_ids) == (3, 2, {1, END})
    assert (request.prefix_cache, request.speculate, request.draft_tokens) == (False, "ngram", 4)
    assert request.prediction == tuple(b"guess")
    assert request.stop is not None


class Begun(ByteText):
    """A vocabulary whose prompts begin with a token of their own."""

    def encode(self, text: str, *, bos: bool = True) -> Sequence[int]:
        return (*([END] if bos else []), *super().encode(text))


def test_a_prediction_goes_on_and_so_begins_with_no_token_of_its_own() -> None:
    begun = replace(service(), text=Begun())
    request = only(chat(begun, prediction={"type": "content", "content": "guess"}))
    assert (request.prompt, request.prediction) == ((END, *b"hello"), tuple(b"guess"))


def test_settings_are_the_defaults_and_the_request_wins() -> None:
    over = service(
        temperature=0.2, top_k=3, top_p=0.5, min_p=0.25, seed=9, max_tokens=4, stop=("x",), prefix_cache=False
    )
    request = only(chat(over))
    assert (request.sampling.temperature, request.sampling.top_k, request.sampling.top_p) == (0.2, 3, 0.5)
    assert (request.sampling.min_p, request.sampling.seed, request.max_tokens) == (0.25, 9, 4)
    assert (chat(over).stops, request.prefix_cache) == (("x",), False)
    request = only(chat(over, temperature=0, top_k=0, seed=1, max_tokens=6, stop="y", prefix_cache=True))
    assert (request.sampling.temperature, request.sampling.top_k, request.sampling.seed) == (0, 0, 1)
    assert (request.max_tokens, request.prefix_cache) == (6, True)


def test_a_seed_nobody_chose_differs_by_request() -> None:
    assert only(chat()).sampling.seed != only(chat()).sampling.seed


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_64_bit_seed_is_taken_and_repeats(seed: int) -> None:
    first, second = only(chat(seed=seed)), only(chat(seed=seed))
    assert first.sampling == second.sampling
    assert 0 <= first.sampling.seed < 2**63


def test_an_answer_never_outgrows_the_context() -> None:
    assert only(chat(max_tokens=10_000)).max_tokens == 256 - 5


def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers() -> None:
    long = [{"role": "user", "content": "x" * 256}]
    error = refused(chat, messages=long)
    assert isinstance(error, PromptTooLong)
    assert (error.code, error.param) == ("context_length_exceeded", "messages")
    assert "256 tokens" in error.message
    assert "context is 256" in error.message
    assert refused(text, prompt="x" * 300).param == "prompt"
    assert only(text(prompt="x" * 255)).max_tokens == 1


def test_an_unknown_model_lists_those_that_are() -> None:
    error = refused(chat, model="gpt-9")
    assert isinstance(error, UnknownModel)
    assert (error.status, error.code, error.param) == (404, "model_not_found", "model")
    assert "echo, echo-alias" in error.message


WRONG: dict[str, list[object]] = {
    "temperature": [-0.1, float("nan"), float("inf"), "hot", True],
    "top_p": [0, 1.5, -1, float("nan")],
    "top_k": [-2, 1.5],
    "min_p": [1.1, -0.1],
    "max_tokens": [0, -1, "many", 1.5],
    "max_completion_tokens": [-1, 0],
    "n": [0, 129, 1.5],
    "seed": [2**63, "x"],
    "stop": ["", ["a", ""], ["a"] * 5, 3, [1]],
    "stop_token_ids": ["1", [1.5]],
    "stream": ["yes", 1],
    "stream_options": [[]],
    "logprobs": [1],
    "prefix_cache": ["no"],
    "speculate": [True, "magic"],
    "draft_tokens": [-1, 65],
    "cache_salt": ["", "x" * 129, 5],
    "ignore_eos": [1],
    "model": [5],
    "prediction": ["text"],
    "messages": ["hello", {}, []],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values])
def test_wrong_values_are_refused_by_name(field: str, value: object) -> None:
    error = refused(chat, **{field: value})
    assert isinstance(error, InvalidParameter)
    assert error.status == 400
    assert (error.param or "").split(".")[0].split("[")[0] == field
    assert field in error.message


def test_an_unknown_drafter_lists_the_known() -> None:
    assert "ngram, off" in refused(chat, speculate="magic").message


@pytest.mark.parametrize(
    ("messages", "path"),
    [
        (["hello"], "messages[0]"),
        ([{"content": "a"}], "messages[0].role"),
        ([{"role": "wizard", "content": "a"}], "messages[0].role"),
        ([{"role": "tool", "content": "a"}], "messages[0].role"),
        ([*USER, {"role": "user"}], "messages[1].content"),
        ([{"role": "user", "content": 5}], "messages[0].content"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0]"),
        ([{"role": "user", "content": [{"text": "a"}]}], "messages[0].content[0]"),
        ([{"role": "user", "content": ["a"]}], "messages[0].content[0]"),
        ([{"role": "user", "content": [{"type": "text", "text": 5}]}], "messages[0].content[0].text"),
        ([{"role": "assistant", "content": "a", "tool_calls": [{}]}], "messages[0].tool_calls"),
        ([{"role": "user", "content": "a", "mood": "glad"}], "messages[0].mood"),
    ],
)
def test_wrong_messages_are_refused_by_path(messages: list[object], path: str) -> None:
    error = refused(chat, messages=messages)
    assert error.param == path
    assert path in error.message


def test_messages_may_be_parts_and_carry_the_nulls_of_other_clients() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    said = {"role": "assistant", "content": "a", "refusal": None, "annotations": [], "tool_calls": None}
    named = {"role": "developer", "content": "be brief", "name": "me"}
    assert only(chat(messages=[named, said, {"role": "user", "content": parts}])).prompt == tuple(b"one\ntwo")


@pytest.mark.parametrize("name", sorted(NOT_BUILT))
def test_what_is_not_built_is_refused_by_name_and_null_is_not(name: str) -> None:
    error = refused(chat, **{name: {"type": "json_object", "mode": "explicit"}})
    assert error.param == name
    assert "not supported yet" in error.message
    assert only(chat(**{name: None})).prompt == tuple(b"hello")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("frequency_penalty", 0), ("presence_penalty", 0.0), ("logit_bias", {}), ("tools", []), ("tool_choice", "auto"),
        ("response_format", {"type": "text"}), ("repetition_penalty", 1.0), ("modalities", ["text"]),
        ("prompt_cache_options", {"mode": "implicit"}), ("reasoning_effort", "none"), ("suffix", ""),
    ],
)  # fmt: skip
def test_values_that_ask_for_nothing_are_taken(name: str, value: object) -> None:
    assert only(chat(**{name: value})).prompt == tuple(b"hello")


@pytest.mark.parametrize("value", [0.5, -2, True, "0"])
def test_a_penalty_is_refused(value: object) -> None:
    assert refused(chat, frequency_penalty=value).param == "frequency_penalty"


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_what_changes_nothing_is_ignored(name: str) -> None:
    assert only(chat(**{name: {"any": "thing"}})).prompt == tuple(b"hello")


def test_an_unknown_field_is_refused_with_its_neighbours() -> None:
    error = refused(chat, temprature=1)
    assert error.message.startswith("Unrecognized request argument supplied: temprature")
    assert "temperature" in error.message
    assert "did you mean" not in refused(chat, qqqq=1).message


def test_fields_of_the_other_endpoint_are_unknown() -> None:
    assert "Unrecognized" in refused(chat, prompt="x").message
    assert "Unrecognized" in refused(text, messages=USER).message


def test_alternatives_need_logprobs() -> None:
    assert refused(chat, top_logprobs=2).param == "top_logprobs"
    assert refused(chat, logprobs=True, top_logprobs=21).param == "top_logprobs"
    assert only(chat(logprobs=True)).sampling.logprobs == 0
    assert only(chat(logprobs=False)).sampling.logprobs is None


def test_stream_options_need_a_stream_and_known_names() -> None:
    assert chat(stream=True, stream_options={"include_usage": True}).include_usage is True
    assert chat(stream=True, stream_options={"include_obfuscation": False}).include_usage is False
    assert refused(chat, stream_options={"include_usage": True}).param == "stream_options"
    assert refused(chat, stream=True, stream_options={"usage": True}).param == "stream_options.usage"
    assert refused(chat, stream=True, stream_options={"include_usage": 1}).param == "stream_options.include_usage"
    assert refused(chat, stream=True, stream_options={"include_obfuscation": True}).status == 400


def test_the_end_of_text_may_be_ignored() -> None:
    assert only(chat(ignore_eos=True)).stop_ids == frozenset()


@pytest.mark.parametrize(
    ("prediction", "param"),
    [
        ({"type": "guess", "content": "x"}, "prediction.type"),
        ({"type": "content", "content": 5}, "prediction.content"),
        ({"type": "content"}, "prediction.content"),
        ({"type": "content", "content": "x" * 257}, "prediction"),
    ],
)
def test_wrong_predictions_are_refused(prediction: object, param: str) -> None:
    assert refused(chat, prediction=prediction).param == param


@pytest.mark.parametrize(("server", "asked", "taken"), [
    ("ngram", None, "prediction"), ("ngram", "off", "off"), ("off", None, None), ("auto", None, None),
])  # fmt: skip
def test_a_prediction_is_read_by_a_drafter_that_can(server: str, asked: str | None, taken: str | None) -> None:
    over = replace(service(speculate=server), drafters=frozenset({"off", "ngram", "prediction"}))
    prediction = {"type": "content", "content": "guess"}
    assert only(chat(over, speculate=asked, prediction=prediction)).speculate == taken
    assert only(chat(over, speculate=asked)).speculate == asked


def test_the_namespace_comes_from_key_and_salt() -> None:
    own = replace(CALLER, key="key")
    names = {only(chat(caller=caller, cache_salt=salt)).namespace for caller in (CALLER, own) for salt in (None, "s")}
    assert len(names) == 4
    assert "" in names


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("ab", [b"ab"]),
        (["ab", "c"], [b"ab", b"c"]),
        ([97, 98], [b"ab"]),
        ([[97], [98, 99]], [b"a", b"bc"]),
    ],
)
def test_prompts_of_four_kinds(prompt: object, expected: list[bytes]) -> None:
    ask = text(prompt=prompt)
    assert [bytes(request.prompt) for request in ask.requests] == expected
    assert len({request.id for request in ask.requests}) == len(expected)
    assert ask.chat is False


@pytest.mark.parametrize("prompt", [None, "", [], [""], [[]], 5, {}, [1, "a"], [1.5], ["a", [1]], [257], [-1], [True]])
def test_wrong_prompts_are_refused(prompt: object) -> None:
    assert refused(text, prompt=prompt).param == "prompt"


def test_a_text_completion_may_echo_and_give_logprobs_but_not_both() -> None:
    assert text(prompt=["ab", "c"], echo=True).echo == ("ab", "c")
    assert text(prompt=[97, 98], echo=True).echo == ("ab",)
    assert only(text(logprobs=3)).sampling.logprobs == 3
    assert refused(text, logprobs=6).param == "logprobs"
    assert refused(text, logprobs=1, echo=True).param == "echo"


def test_best_of_may_only_repeat_n() -> None:
    assert only(text(n=2, best_of=2)).choices == 2
    assert refused(text, best_of=2).param == "best_of"


def test_more_answers_than_the_queue_holds_are_refused_at_once() -> None:
    error = refused(text, over=service(max_queue=4), prompt=["a", "b", "c"], n=2)
    assert error.param == "n"
    assert "queue of 4" in error.message


@given(
    st.dictionaries(
        st.sampled_from(sorted(parse.CHAT | parse.TEXT | NOT_BUILT.keys())),
        st.none()
        | st.booleans()
        | st.integers()
        | st.text()
        | st.lists(st.integers())
        | st.dictionaries(st.text(), st.text()),
    )
)
def test_any_body_is_an_ask_or_an_error_of_the_callers(fields: dict[str, Any]) -> None:
    for read in (parse.chat, parse.completion):
        try:
            found: object = read(Fields(fields), SERVICE, CALLER)
        except RequestError as error:
            found = error
        assert isinstance(found, Ask | RequestError)
