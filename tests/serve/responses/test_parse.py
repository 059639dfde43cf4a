"""Bodies become conversations and requests; what cannot be honoured is refused by its path."""

from __future__ import annotations

import contextlib
import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serve.responses.plain import GROUP, PATCH, TOOL, Served
from twostroke.config import Settings
from twostroke.errors import InvalidParameter, PromptTooLong, RequestError, UnknownModel
from twostroke.serve.fields import Fields
from twostroke.serve.responses import input_tokens
from twostroke.serve.responses.items import sealed
from twostroke.serve.responses.parse import KNOWN
from twostroke.text.conversation import Message, Part, ToolCall, ToolChoice
from twostroke.text.formats import AnyJson, JsonSchema
from twostroke.types import Retention

CALL = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "seen"}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]}
USER = {"role": "user", "content": "hello"}
WEB = {"type": "web_search"}


@pytest.fixture
def served() -> Served:
    return Served()


def test_a_string_is_a_users_message(served: Served) -> None:
    assert served.talk("hello").messages == (Message("user", (Part("hello", "input.content[0]"),), path="input"),)


def test_instructions_come_first_and_developers_are_the_system(served: Served) -> None:
    talk = served.talk([{"role": "developer", "content": "Be kind."}, USER], instructions="Be brief.")
    assert [(m.role, m.text, m.path) for m in talk.messages] == [
        ("system", "Be brief.", "instructions"),
        ("system", "Be kind.", "input[0]"),
        ("user", "hello", "input[1]"),
    ]


def test_what_the_assistant_did_in_one_answer_is_one_message(served: Served) -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed("Hm.")}
    again = {**SAID, "content": [{"type": "output_text", "text": " Done."}]}
    talk = served.talk([USER, reasoning, SAID, CALL, again, OUTPUT, USER], tools=[TOOL])
    assert talk.messages[1] == Message(
        "assistant",
        (Part("Let me look. Done.", "input[2].content[0]"),),
        "Hm.",
        (ToolCall("call_1", "look", "{}"),),
        path="input[1]",
    )
    assert talk.messages[2] == Message(
        "tool", (Part("seen", "input[5].output"),), call_id="call_1", name="look", path="input[5]"
    )
    assert [message.role for message in talk.messages] == ["user", "assistant", "tool", "user"]


def test_reasoning_in_the_open_is_read_too(served: Served) -> None:
    item = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
    assert served.talk([USER, item, SAID]).messages[1].reasoning == "Hm."


@pytest.mark.parametrize("content", ["gAAAAABfoo", "twostroke:!!", "twostroke:/w==", None])
def test_reasoning_that_is_not_ours_is_left_out(served: Served, content: str | None) -> None:
    item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": content}
    assert [m.role for m in served.talk([USER, item]).messages] == ["user"]


def test_outputs_may_be_parts(served: Served) -> None:
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    assert served.talk([USER, CALL, {**OUTPUT, "output": parts}]).messages[2].text == "a\nb"


def test_free_text_calls_go_in_as_they_came_out(served: Served) -> None:
    made = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** é"}
    seen = {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"}
    talk = served.talk([USER, made, seen], tools=[PATCH])
    assert talk.messages[1].calls == (ToolCall("c", "apply_patch", '{"input": "*** é"}'),)


def test_tools_become_functions(served: Served) -> None:
    talk = served.talk(tools=[TOOL, PATCH, GROUP])
    assert [(t.name, t.path) for t in talk.tools] == [
        ("look", "tools[0]"), ("apply_patch", "tools[1]"),
        ("spawn", "tools[2].tools[0]"), ("wait", "tools[2].tools[1]"),
    ]  # fmt: skip
    assert talk.tools[2].description == "agents: Other agents.\n\nStarts one."
    assert talk.tools[1].parameters is not None
    assert "start: /.+/" in json.dumps(talk.tools[1].parameters)


def test_a_functions_group_is_named_where_another_tool_has_its_name(served: Served) -> None:
    other = {"type": "function", "name": "spawn"}
    made = {**CALL, "name": "spawn", "namespace": "agents"}
    talk = served.talk([USER, made, OUTPUT], tools=[other, GROUP])
    assert [tool.name for tool in talk.tools] == ["spawn", "agents__spawn", "wait"]
    assert talk.messages[1].calls[0].name == "agents__spawn"


def test_tools_a_provider_would_run_are_left_out_with_a_line_in_the_log(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert [tool.name for tool in served.talk(tools=[WEB, TOOL]).tools] == ["look"]
    assert "tools[0]" in caplog.text


@pytest.mark.parametrize(
    ("fields", "choice"),
    [
        ({}, ToolChoice()),
        ({"tool_choice": "none"}, ToolChoice("none")),
        ({"tool_choice": "required", "parallel_tool_calls": False}, ToolChoice("required", parallel=False)),
        ({"tool_choice": {"type": "function", "name": "look"}}, ToolChoice("required", "look")),
        ({"tool_choice": {"type": "custom", "name": "apply_patch"}}, ToolChoice("required", "apply_patch")),
        ({"tool_choice": {"type": "function", "name": "wait"}}, ToolChoice("required", "wait")),
        (
            {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]}},
            ToolChoice(allowed=("look",)),
        ),
    ],
)
def test_tool_choice(served: Served, fields: dict[str, Any], choice: ToolChoice) -> None:
    assert served.talk(tools=[TOOL, PATCH, GROUP], **fields).choice == choice


def test_allowed_tools_leave_the_prompt_as_it_is(served: Served) -> None:
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]}
    some, every = served.parsed(tools=[TOOL, PATCH], tool_choice=allowed), served.parsed(tools=[TOOL, PATCH])
    assert some.prompts == every.prompts
    assert some.conversation is not None
    assert [tool.name for tool in some.conversation.callable_tools] == ["look"]


@pytest.mark.parametrize(
    ("effort", "thinking"), [(None, None), ("none", False), ("minimal", True), ("low", True), ("high", True)]
)
def test_effort_decides_whether_the_model_thinks(served: Served, effort: str | None, thinking: bool | None) -> None:
    assert served.talk(reasoning={"effort": effort, "summary": "auto"}).thinking is thinking


def test_text_formats(served: Served) -> None:
    served.parsed(text={"format": {"type": "text"}, "verbosity": "low"})
    served.parsed(text={"format": {"type": "json_object"}})
    served.parsed(text={"format": {"type": "json_schema", "name": "n", "strict": True, "schema": {"type": "object"}}})
    assert served.text.formats == [None, AnyJson(), JsonSchema({"type": "object"}, "text.format.schema")]


def test_limits_are_clamped_and_sampling_is_read(served: Served) -> None:
    request = served.parsed(max_output_tokens=10**6, temperature=0.5, top_p=0.9, seed=3, top_k=4).requests[0]
    assert request.max_tokens == 4096 - len(request.prompt)
    assert (request.sampling.temperature, request.sampling.top_p, request.sampling.seed, request.sampling.top_k) == (
        0.5, 0.9, 3, 4,
    )  # fmt: skip


def test_breakpoints_become_lifetimes(served: Served) -> None:
    mark = {"mode": "explicit", "ttl": "12h"}
    parts = [
        {"type": "input_text", "text": "abc", "prompt_cache_breakpoint": mark},
        {"type": "input_text", "text": "d"},
    ]
    request = served.parsed([{"role": "user", "content": parts}], prompt_cache_options={"ttl": "30m"}).requests[0]
    assert request.retain == (Retention(3, 43200.0), Retention(4, 1800.0))


@pytest.mark.parametrize(("mode", "kept"), [("implicit", 3), ("explicit", 4)])
def test_the_latest_breakpoints_count(served: Served, mode: str, kept: int) -> None:
    parts = [{"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}} for _ in range(6)]
    request = served.parsed([{"role": "user", "content": parts}], prompt_cache_options={"mode": mode}).requests[0]
    assert [retention.tokens for retention in request.retain] == list(range(7 - kept, 7))


def test_a_prewarmed_prompt_asks_for_no_answer(served: Served) -> None:
    submission = served.parsed(prompt_cache_options={"prewarm": True}, max_output_tokens=9)
    assert submission.prefilled_only
    assert submission.requests[0].max_tokens == 1


def test_a_prompt_that_is_too_long_is_refused_whatever_truncation_says(served: Served) -> None:
    with pytest.raises(PromptTooLong) as refused:
        served.parsed("x" * 5000, truncation="auto")
    assert refused.value.param == "input"


def test_tokens_are_counted_without_an_answer(served: Served) -> None:
    fields = Fields({"model": "echo", "input": "hello", "instructions": "Hi", "personality": "friendly"})
    counted = input_tokens(fields, served.service, served.caller, served.store)
    assert counted == {"object": "response.input_tokens", "input_tokens": 8}


def test_unknown_fields_are_logged_or_refused(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        served.parsed(frobnicate=1)
    assert "frobnicate" in caplog.text
    object.__setattr__(served.service, "settings", Settings(strict=True))
    with pytest.raises(InvalidParameter, match="frobnicate"):
        served.parsed(frobnicate=1)


def test_what_is_known_and_changes_nothing_is_quiet(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    served.parsed(
        prompt_cache_key="k", prompt_cache_retention="24h", safety_identifier="s", service_tier="priority", user="u",
        metadata={"a": "b"}, client_metadata={"thread_id": "t"}, max_tool_calls=3, background=False, truncation="auto",
        include=["web_search_call.results"], stream_options={"include_obfuscation": False},
    )  # fmt: skip
    assert caplog.text == ""


def image(kind: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": kind, "image_url": "data:"}]}]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"input": None}, "input"),
    ({"input": []}, "input"),
    ({"input": 3}, "input"),
    ({"input": ["x"]}, "input[0]"),
    ({"input": [{"type": "compaction"}]}, "input[0].type"),
    ({"input": [{}]}, "input[0].id"),
    ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
    ({"input": [{"role": ["user"], "content": "x"}]}, "input[0].role"),
    ({"input": [{"role": "user", "content": 3}]}, "input[0].content"),
    ({"input": [{"role": "user", "content": [{"type": []}]}]}, "input[0].content[0].type"),
    ({"input": [{"type": [1]}]}, "input[0].type"),
    ({"input": [{"role": "user"}]}, "input[0].content"),
    ({"input": image("input_image")}, "input[0].content[0].type"),
    ({"input": image("input_file")}, "input[0].content[0].type"),
    ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text"),
    ({"input": [USER, OUTPUT]}, "input[1].call_id"),
    ({"input": [USER, CALL, OUTPUT, OUTPUT]}, "input[3].call_id"),
    ({"input": [USER, CALL]}, "input[1]"),
    ({"input": [USER, CALL, USER]}, "input[1]"),
    ({"input": [USER, {**CALL, "call_id": None}]}, "input[1].call_id"),
    ({"input": [USER, {**CALL, "arguments": {}}]}, "input[1].arguments"),
    ({"input": [USER, CALL, {**OUTPUT, "output": {}}]}, "input[2].output"),
    ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0].id"),
    ({"instructions": ["x"]}, "instructions"),
    ({"background": True}, "background"),
    ({"conversation": "conv_1"}, "conversation"),
    ({"prompt": {"id": "pmpt_1"}}, "prompt"),
    ({"context_management": [{"type": "compaction"}]}, "context_management"),
    ({"moderation": {"model": "m"}}, "moderation"),
    ({"truncation": "middle"}, "truncation"),
    ({"metadata": {"a": 1}}, "metadata.a"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"temperature": "hot"}, "temperature"),
    ({"top_logprobs": 21}, "top_logprobs"),
    ({"include": ["everything"]}, "include[0]"),
    ({"include": [[]]}, "include[0]"),
    ({"reasoning": {"effort": "some"}}, "reasoning.effort"),
    ({"reasoning": {"summary": "long"}}, "reasoning.summary"),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
    ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema"),
    ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name"),
    ({"text": {"verbosity": "loud"}}, "text.verbosity"),
    ({"tools": [3]}, "tools[0]"),
    ({"tools": [{}]}, "tools[0].type"),
    ({"tools": [{"type": []}]}, "tools[0].type"),
    ({"tools": [{"type": "function"}]}, "tools[0].name"),
    ({"tools": [{"type": "function", "name": "f", "parameters": 3}]}, "tools[0].parameters"),
    ({"tools": [TOOL, TOOL]}, "tools"),
    ({"tools": [{"type": "namespace", "name": "n", "tools": [WEB]}]}, "tools[0].tools[0].type"),
    (
        {"tools": [{**PATCH, "format": {"type": "grammar", "syntax": "peg", "definition": "x"}}]},
        "tools[0].format.syntax",
    ),
    ({"tools": [{**PATCH, "format": {"type": "grammar", "syntax": "lark"}}]}, "tools[0].format.definition"),
    ({"tool_choice": "always"}, "tool_choice"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tool_choice": "required", "tools": [WEB]}, "tool_choice"),
    ({"tool_choice": {"type": "web_search_preview"}, "tools": [WEB]}, "tool_choice.type"),
    ({"tool_choice": {"type": "function", "name": "no"}, "tools": [TOOL]}, "tool_choice.name"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "none", "tools": []}}, "tool_choice.mode"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [WEB]}}, "tool_choice.tools"),
    ({"prompt_cache_options": {"mode": "always"}}, "prompt_cache_options.mode"),
    ({"prompt_cache_options": {"ttl": "1h"}}, "prompt_cache_options.ttl"),
    ({"previous_response_id": "resp_no"}, "previous_response_id"),
    ({"stream": "yes"}, "stream"),
    ({"store": 1}, "store"),
]


@pytest.mark.parametrize(("fields", "path"), BAD, ids=lambda value: json.dumps(value)[:70])
def test_bad_input_is_refused_by_its_path(served: Served, fields: dict[str, Any], path: str) -> None:
    with pytest.raises(RequestError) as refused:
        served.parsed(**{"input": "hello", **fields})
    assert (refused.value.status, refused.value.param) == (400, path)
    body = served.format.error(refused.value, "req_1")["error"]
    assert (body["type"], body["param"]) == ("invalid_request_error", path)


def test_an_unknown_model_is_a_404(served: Served) -> None:
    with pytest.raises(UnknownModel):
        served.parsed(model="gpt-5")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["message", "function", "user", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "role", "content", "text", "id", "call_id", "name", "tools", "format", "mode"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(sorted(KNOWN | {"unknown"})), JSON, max_size=5))
def test_a_body_of_any_shape_is_read_or_refused(fields: dict[str, Any]) -> None:
    with contextlib.suppress(RequestError):
        Served().parsed(**{"input": "hello", **fields})
