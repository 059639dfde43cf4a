"""What a chat body may say, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serve.openai.talk import CALLER, USER, TaggedText, chat, refused, tagged, text
from tests.serve.scripted import END
from twostroke.errors import InvalidParameter, PromptTooLong, RequestError, UnknownModel
from twostroke.serve.openai import names
from twostroke.serve.openai.chat import EFFORTS
from twostroke.serve.submission import Submission
from twostroke.types import Request


def only(submission: Submission) -> Request:
    (request,) = submission.requests
    return request


def test_the_smallest_chat() -> None:
    submission = chat()
    request = only(submission)
    assert (submission.model, submission.stream, submission.prefilled_only) == ("echo", False, False)
    assert (request.id, request.prompt, request.choices) == ("chatcmpl-1", tuple(b"hello"), 1)
    assert request.max_tokens == 256 - 5
    assert request.stop_ids == {END}
    assert (request.stop, request.grammar, request.prompt_logprobs, request.retain) == (None, None, None, ())
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
            stop=["a", "b", "c", "d", "e"],
            prefix_cache=False,
            speculate="ngram",
            draft_tokens=4,
            stop_token_ids=[1],
            prediction={"type": "content", "content": [{"type": "text", "text": "guess"}]},
            logprobs=True,
            top_logprobs=5,
            presence_penalty=0.5,
            frequency_penalty=-0.5,
            repetition_penalty=1.25,
            logit_bias={"5": -100},
            min_tokens=2,
            priority=-3,
            prompt_logprobs=4,
        )
    )
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (0.5, 0.9, 40, 0.1)
    assert (sampling.seed, sampling.logprobs, request.prompt_logprobs, request.priority) == (7, 5, 4, -3)
    assert (sampling.presence_penalty, sampling.frequency_penalty, sampling.repetition_penalty) == (0.5, -0.5, 1.25)
    assert (sampling.bias, sampling.min_tokens, sampling.withheld) == (((5, -100.0),), 2, (1, END))
    assert (request.max_tokens, request.choices, request.stop_ids) == (3, 2, {1, END})
    assert (request.prefix_cache, request.speculate, request.draft_tokens) == (False, "ngram", 4)
    assert request.prediction == tuple(b"guess")
    assert request.stop is not None


class Begun(TaggedText):
    """A vocabulary whose prompts begin with a token of their own."""

    def encode(self, text: str, *, bos: bool = True) -> Sequence[int]:
        return (*([END] if bos else []), *super().encode(text))


def test_a_prediction_goes_on_and_so_begins_with_no_token_of_its_own() -> None:
    begun = replace(tagged(), text=Begun())
    assert only(chat(begun, prediction={"type": "content", "content": "guess"})).prediction == tuple(b"guess")


def test_settings_are_the_defaults_and_the_request_wins() -> None:
    over = tagged(temperature=0.2, top_k=3, top_p=0.5, min_p=0.25, seed=9, max_tokens=4, stop=("x",))
    request = only(chat(over))
    assert (request.sampling.temperature, request.sampling.top_k, request.sampling.top_p) == (0.2, 3, 0.5)
    assert (request.sampling.min_p, request.sampling.seed, request.max_tokens) == (0.25, 9, 4)
    assert chat(over).stops == ("x",)
    request = only(chat(over, temperature=0, top_k=0, seed=1, max_tokens=6, stop="y"))
    assert (request.sampling.temperature, request.sampling.top_k, request.sampling.seed) == (0, 0, 1)
    assert request.max_tokens == 6


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_no_token_asked_for_is_a_prompt_that_is_only_read(field: str) -> None:
    submission = chat(**{field: 0})
    assert submission.prefilled_only
    assert only(submission).max_tokens == 1
    assert chat(prompt_cache_options={"prewarm": True}, max_tokens=5).prefilled_only


def test_an_answer_never_outgrows_the_context() -> None:
    assert only(chat(max_tokens=64_000)).max_tokens == 256 - 5


def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers() -> None:
    error = refused(chat, messages=[{"role": "user", "content": "x" * 256}])
    assert isinstance(error, PromptTooLong)
    assert (error.code, error.param) == ("context_length_exceeded", "messages")
    assert "256 tokens" in error.message


def test_an_unknown_model_lists_those_that_are() -> None:
    error = refused(chat, model="gpt-9")
    assert isinstance(error, UnknownModel)
    assert (error.status, error.code, error.param) == (404, "model_not_found", "model")
    assert "echo, echo-alias" in error.message


WRONG: dict[str, list[object]] = {
    "temperature": [-0.1, float("nan"), float("inf"), "hot", True],
    "top_p": [1.5, -1, float("nan")],
    "top_k": [-2, 1.5],
    "min_p": [1.1, -0.1],
    "max_tokens": [-1, "many", 1.5],
    "max_completion_tokens": [-1],
    "n": [0, 129, 1.5],
    "seed": [2**63, "x"],
    "stop": ["", ["a", ""], 3, [1]],
    "stop_token_ids": ["1", [1.5], [257]],
    "stream": ["yes", 1],
    "stream_options": [[]],
    "logprobs": [1],
    "top_logprobs": [21, -1],
    "prompt_logprobs": [21, -1, True],
    "return_token_ids": [1],
    "presence_penalty": [3, "0"],
    "frequency_penalty": [-2.5, True],
    "repetition_penalty": [0, "1"],
    "logit_bias": [[], {"x": 1}, {"257": 1}, {"1": 101}],
    "min_tokens": [-1],
    "priority": ["high"],
    "prefix_cache": ["no"],
    "speculate": [True, "magic"],
    "draft_tokens": [-1, 65],
    "cache_salt": ["", "x" * 129, 5],
    "user_id": ["", "x" * 513, 5],
    "ignore_eos": [1],
    "model": [5],
    "prediction": ["text", {"type": "guess", "content": "x"}, {"type": "content"}, {"type": "content", "content": 5}],
    "messages": ["hello", {}, []],
    "tools": [{}, ["x"], [{"type": "custom", "custom": {"name": "f"}}], [{"type": "function"}]],
    "tool_choice": ["always", "required", {"type": "function", "function": {"name": "f"}}, 5],
    "functions": [{}, ["x"], [{"name": "a b"}]],
    "parallel_tool_calls": ["yes"],
    "reasoning_effort": ["huge", 5],
    "thinking": [True, {"type": "maybe"}],
    "chat_template_kwargs": ["x"],
    "continue_final_message": [True, "yes"],
    "add_generation_prompt": [False],
    "prompt_cache_options": ["x", {"mode": "none"}, {"ttl": "5m"}, {"prewarm": 1}],
    "prompt_cache_retention": ["1h"],
    "response_format": ["text", {"type": "xml"}, {"type": "json_schema"}],
    "structured_outputs": [{}, {"regex": "a", "choice": ["b"]}],
    "audio": [{"voice": "x"}],
    "modalities": [["text", "audio"]],
    "web_search_options": [{}],
    "use_beam_search": [True],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values])
def test_wrong_values_are_refused_by_name(field: str, value: object) -> None:
    error = refused(chat, **{field: value})
    assert isinstance(error, InvalidParameter)
    assert error.status == 400
    assert (error.param or "").split(".")[0].split("[")[0] == field
    assert field in error.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tools", []), ("tool_choice", "auto"), ("tool_choice", "none"), ("response_format", {"type": "text"}),
        ("modalities", ["text"]), ("prompt_cache_options", {"mode": "implicit"}), ("functions", []),
        ("add_generation_prompt", True), ("skip_special_tokens", True), ("bad_words", []),
    ],
)  # fmt: skip
def test_values_that_ask_for_nothing_are_taken(name: str, value: object) -> None:
    assert only(chat(**{name: value})).prompt == tuple(b"hello")


@pytest.mark.parametrize("name", sorted(names.ACCEPTED - {"prompt_cache_retention"}))
def test_what_says_nothing_to_a_model_changes_nothing(name: str) -> None:
    plain, told = chat(tagged(seed=1)), chat(tagged(seed=1), **{name: {"any": "thing"}})
    assert only(told) == only(plain)


@pytest.mark.parametrize("retention", ["in_memory", "24h"])
def test_a_retention_is_a_maximum_and_asks_for_nothing(retention: str) -> None:
    assert only(chat(prompt_cache_retention=retention)).retain == ()


@pytest.mark.parametrize("name", sorted(names.REFUSED))
def test_null_is_absent(name: str) -> None:
    assert only(chat(**{name: None})).prompt == tuple(b"hello")


def test_an_unknown_field_is_ignored_or_under_strict_refused_with_its_neighbours() -> None:
    assert only(chat(temprature=1)).prompt == tuple(b"hello")
    error = refused(chat, over=tagged(strict=True), temprature=1)
    assert error.message.startswith("Unrecognized request argument supplied: temprature")
    assert "temperature" in error.message
    assert refused(chat, over=tagged(strict=True), prompt="x").param == "prompt"
    assert refused(text, over=tagged(strict=True), messages=USER).param == "messages"


def test_alternatives_need_logprobs() -> None:
    assert refused(chat, top_logprobs=2).param == "top_logprobs"
    assert only(chat(top_logprobs=0)).sampling.logprobs is None
    assert only(chat(logprobs=True)).sampling.logprobs == 0
    assert only(chat(logprobs=False)).sampling.logprobs is None


def test_stream_options_need_a_stream() -> None:
    options = {"include_usage": True, "continuous_usage_stats": True, "include_obfuscation": True}
    found = chat(stream=True, stream_options=options).details
    assert (found.include_usage, found.every_usage, found.obfuscation) == (True, True, True)
    assert chat(stream=True, stream_options={"continuous_usage_stats": True}).details.every_usage is False
    assert refused(chat, stream_options={"include_usage": True}).param == "stream_options"
    assert refused(chat, stream=True, stream_options={"include_usage": 1}).param == "stream_options.include_usage"
    strict = tagged(strict=True)
    assert refused(chat, over=strict, stream=True, stream_options={"usage": True}).param == "usage"


def test_prompt_logprobs_are_not_streamed() -> None:
    assert refused(chat, stream=True, prompt_logprobs=1).param == "prompt_logprobs"


@pytest.mark.parametrize(
    ("fields", "thinking"),
    [
        ({}, None),
        ({"reasoning_effort": "none"}, False),
        *(({"reasoning_effort": effort}, True) for effort in EFFORTS if effort != "none"),
        ({"thinking": {"type": "enabled"}}, True),
        ({"thinking": {"type": "disabled"}}, False),
        ({"thinking": {"type": "adaptive"}}, None),
        ({"chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "high"}, False),
    ],
)
def test_whether_to_think(fields: dict[str, Any], thinking: bool | None) -> None:
    conversation = chat(**fields).conversation
    assert conversation is not None
    assert conversation.thinking is thinking


def test_variables_of_the_template_arrive() -> None:
    conversation = chat(chat_template_kwargs={"style": "short"}).conversation
    assert conversation is not None
    assert conversation.arguments == {"style": "short"}


def test_an_answer_may_be_begun() -> None:
    begun = [*USER, {"role": "assistant", "content": "Once"}]
    conversation = chat(messages=begun, continue_final_message=True, add_generation_prompt=False).conversation
    assert conversation is not None
    assert conversation.continue_final
    error = refused(chat, messages=begun, continue_final_message=True, add_generation_prompt=True)
    assert error.param == "add_generation_prompt"
    assert refused(chat, continue_final_message=True).param == "continue_final_message"


def test_the_namespace_comes_from_key_salt_and_user_id_and_the_prompt_is_asked_for_in_it() -> None:
    own = replace(CALLER, key="key")
    over = tagged()
    found = {
        only(chat(over, caller, cache_salt=salt, user_id=user)).namespace
        for caller in (CALLER, own)
        for salt in (None, "s")
        for user in (None, "s")
    }
    assert len(found) == 8
    assert "" in found
    assert isinstance(over.text, TaggedText)
    assert set(over.text.named) == found


@given(
    st.dictionaries(
        st.sampled_from(sorted(names.CHAT | names.TEXT | names.ACCEPTED | names.REFUSED.keys())),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["function", "auto", "required"]),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["type", "name", "function", "content", "role", "json"]), inner)
            ),
            max_leaves=8,
        ),
    )
)
def test_any_body_is_a_submission_or_an_error_of_the_callers(fields: dict[str, Any]) -> None:
    for read in (chat, text):
        found: object
        try:
            found = read(**fields)
        except RequestError as error:
            found = error
        assert isinstance(found, Submission | RequestError)
