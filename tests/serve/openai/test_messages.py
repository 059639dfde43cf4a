"""Messages: roles, parts, calls and their results."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serve.openai.talk import USER, chat, refused, tagged
from twostroke.text.conversation import Message, Part, ToolCall


def read(*messages: Any) -> tuple[Message, ...]:
    conversation = chat(messages=list(messages)).conversation
    assert conversation is not None
    return conversation.messages


def call(identity: str = "c1", **function: Any) -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": "f", "arguments": "{}", **function}}


def calling(*calls: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def result(name: Any = "c1", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": "3", **more}


def test_roles_and_paths() -> None:
    found = read(
        {"role": "developer", "content": "brief", "name": "me"},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": "three", "reasoning_content": "hm"},
        {"role": "system", "content": "four"},
        USER[0],
    )
    assert [m.role for m in found] == ["system", "user", "assistant", "system", "user"]
    assert [m.text for m in found] == ["brief", "one\ntwo", "three", "four", "hello"]
    assert [p.path for p in found[1].parts] == ["messages[1].content[0]", "messages[1].content[1]"]
    assert (found[0].name, found[0].path, found[0].parts[0].path) == ("me", "messages[0]", "messages[0].content")
    assert found[2].reasoning == "hm"
    assert read({"role": "assistant", "content": "a", "reasoning": "so"}, *USER)[0].reasoning == "so"


def test_a_tool_loop() -> None:
    found = read(*USER, calling(call(arguments='{"a": 1}'), call("c2")), result(), result("c2"), *USER)
    assert found[1].calls == (ToolCall("c1", "f", '{"a": 1}'), ToolCall("c2", "f", "{}"))
    assert found[1].parts == ()
    assert [(m.role, m.call_id, m.text) for m in found[2:4]] == [("tool", "c1", "3"), ("tool", "c2", "3")]


@pytest.mark.parametrize(
    ("given", "kept"), [("", "{}"), (None, "{}"), ({"a": "ü"}, '{"a": "ü"}'), ('{ "a":1}', '{ "a":1}')]
)
def test_arguments_as_clients_send_them(given: Any, kept: str) -> None:
    assert read(calling(call(arguments=given)), result())[0].calls[0].arguments == kept


def test_the_older_way_of_calling() -> None:
    called = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    found = read(*USER, called, {"role": "function", "name": "f", "content": "3"}, *USER)
    assert found[1].calls[0].name == "f"
    assert found[2].role == "tool"
    assert found[2].call_id == found[1].calls[0].id != ""
    assert read(*USER, called, *USER)[1].calls == found[1].calls


def test_a_refusal_is_what_was_said() -> None:
    assert read({"role": "assistant", "content": None, "refusal": "no"}, *USER)[0].text == "no"
    part = {"type": "refusal", "refusal": "never"}
    assert read({"role": "assistant", "content": [part]}, *USER)[0].parts == (Part("never", "messages[0].content[0]"),)


def test_nulls_of_other_clients_are_taken() -> None:
    said = {"role": "assistant", "content": "a", "refusal": None, "annotations": [], "tool_calls": None, "audio": None}
    assert read(said, *USER)[0].text == "a"


@pytest.mark.parametrize("name", ["c9", "c1"])
def test_a_result_without_a_call_before_it_is_refused_by_path_and_id(name: str) -> None:
    error = refused(chat, messages=[*USER, result(name), calling(call())])
    assert error.param == "messages[1]"
    assert f"messages[1] is the result of the call '{name}'" in error.message


@pytest.mark.parametrize("after", [[], USER, [result("c1"), *USER]])
def test_a_call_without_a_result_is_refused_by_path_and_id(after: list[Any]) -> None:
    error = refused(chat, messages=[*USER, calling(call("c1"), call("c2")), *after])
    assert error.param in ("messages[1].tool_calls[0]", "messages[1].tool_calls[1]")
    assert "'c1'" in error.message or "'c2'" in error.message


@pytest.mark.parametrize(
    ("messages", "path"),
    [
        (["hello"], "messages[0]"),
        ([{"content": "a"}], "messages[0].role"),
        ([{"role": "wizard", "content": "a"}], "messages[0].role"),
        ([{"role": "tool", "content": "a"}], "messages[0].tool_call_id"),
        ([{"role": "function", "content": "a"}], "messages[0].name"),
        ([{"role": "function", "content": "a", "name": "f"}], "messages[0].name"),
        ([*USER, {"role": "user"}], "messages[1].content"),
        ([{"role": "assistant", "content": None}], "messages[0].content"),
        ([{"role": "user", "content": 5}], "messages[0].content"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0].type"),
        ([{"role": "user", "content": [{"type": "input_audio"}]}], "messages[0].content[0].type"),
        ([{"role": "user", "content": [{"type": "file"}]}], "messages[0].content[0].type"),
        ([{"role": "user", "content": [{"type": "poem"}]}], "messages[0].content[0].type"),
        ([{"role": "user", "content": [{"text": "a"}]}], "messages[0].content[0].type"),
        ([{"role": "user", "content": ["a"]}], "messages[0].content[0]"),
        ([{"role": "user", "content": [{"type": "text", "text": 5}]}], "messages[0].content[0].text"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text"),
        ([calling({})], "messages[0].tool_calls[0]"),
        ([calling(call(""))], "messages[0].tool_calls[0].id"),
        ([calling({**call(), "type": "custom"})], "messages[0].tool_calls[0].type"),
        ([calling(call(name=""))], "messages[0].tool_calls[0].function.name"),
        ([calling(call(arguments=5))], "messages[0].tool_calls[0].function.arguments"),
        ([calling(call(arguments="{cut"))], "messages[0].tool_calls[0].function.arguments"),
        ([calling(call(arguments="[1]"))], "messages[0].tool_calls[0].function.arguments"),
        ([{"role": "assistant", "content": "a", "audio": {"id": "x"}}], "messages[0].audio"),
    ],
)
def test_wrong_messages_are_refused_by_path(messages: list[object], path: str) -> None:
    error = refused(chat, messages=messages)
    assert error.param == path
    assert path in error.message


def test_a_medium_no_model_here_reads_is_named() -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}
    assert "reads no images" in refused(chat, messages=[image]).message


def test_an_unknown_field_of_a_message_is_refused_under_strict() -> None:
    odd = [{"role": "user", "content": "a", "mood": "glad"}]
    assert chat(messages=odd).requests[0].prompt == (97,)
    assert "messages[0].mood" in refused(chat, over=tagged(strict=True), messages=odd).message
