"""Messages are made plain or refused with their path."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from twostroke.errors import InvalidParameter
from twostroke.text.conversation import Message, Part, Tool, ToolCall
from twostroke.text.messages import (
    ROLES,
    check_calls,
    late_systems_as_users,
    plain_messages,
    takes_late_systems,
    template_message,
    template_tool,
)
from twostroke.text.template import CHATML, ChatTemplate


def plain(**message: Any) -> dict[str, object]:
    return plain_messages([message])[0]


@pytest.mark.parametrize("role", ROLES)
def test_a_string_stays_as_it_is(role: str) -> None:
    assert plain(role=role, content=" text \n") == {"role": role, "content": " text \n"}


def test_text_parts_become_one_text() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert plain(role="user", content=parts)["content"] == "one\ntwo"
    assert plain(role="user", content=[])["content"] == ""


def test_nulls_are_absent() -> None:
    assert plain(role="user", content="a", name=None, tool_calls=None) == {"role": "user", "content": "a"}


def test_an_assistant_that_only_calls_tools_has_empty_content() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"b": 1, "a": [2]}'}}
    message = plain(role="assistant", content=None, tool_calls=[call])
    function = {"name": "f", "arguments": {"b": 1, "a": [2]}}
    assert message["content"] == ""
    assert message["tool_calls"] == [{"id": "1", "type": "function", "function": function}]


@pytest.mark.parametrize("arguments", ["not json", "[1]", '"text"', {"a": 1}, None])
def test_arguments_that_are_no_json_object_stay_as_they_are(arguments: object) -> None:
    message = plain(role="assistant", tool_calls=[{"function": {"name": "f", "arguments": arguments}}])
    assert message["tool_calls"] == [{"function": {"name": "f", "arguments": arguments}}]


def test_a_call_of_another_form_stays_as_it_is() -> None:
    assert plain(role="assistant", tool_calls=["x", {"name": "f"}])["tool_calls"] == ["x", {"name": "f"}]


def test_what_the_caller_sent_is_not_changed() -> None:
    call = {"function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    plain_messages([message])
    assert message["content"] is None
    assert call["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("message", "param", "words"),
    [
        ("text", "messages[0]", "is str"),
        ({"content": "a"}, "messages[0].role", "None"),
        ({"role": "admin", "content": "a"}, "messages[0].role", "'admin'.*system, developer"),
        ({"role": "user|>", "content": "a"}, "messages[0].role", "must be one of"),
        ({"role": ["user"], "content": "a"}, "messages[0].role", "must be one of"),
        ({"role": "user"}, "messages[0].content", "missing"),
        ({"role": "user", "content": 3}, "messages[0].content", "is int"),
        ({"role": "user", "content": ["a"]}, "messages[0].content[0].type", "'str'"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "messages[0].content[0].type", "'image_url'"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages[0].content[0].text", "NoneType"),
        ({"role": "assistant", "tool_calls": "x"}, "messages[0].tool_calls", "not a list"),
    ],
)
def test_what_cannot_be_made_plain_is_refused(message: Any, param: str, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words) as caught:
        plain_messages([message])
    assert caught.value.param == param


def test_the_path_counts_messages() -> None:
    with pytest.raises(InvalidParameter, match=r"messages\[1\]\.content"):
        plain_messages([{"role": "user", "content": "a"}, {"role": "user", "content": None}])


def test_no_messages_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="messages is empty"):
        plain_messages([])


def says(role: Any, text: str = "", **fields: Any) -> Message:
    return Message(role, (Part(text),) if text else (), **fields)


CALLS = says("assistant", calls=(ToolCall("c1", "f", '{"b": 1, "a": [2]}'),), path="messages[1]")
RESULT = says("tool", "2", call_id="c1", path="messages[2]")


def test_a_message_is_rendered_with_what_it_has_and_nothing_else() -> None:
    assert template_message(says("user", "a")) == {"role": "user", "content": "a"}
    assert template_message(says("assistant", "b", reasoning="hm")) == {
        "role": "assistant",
        "content": "b",
        "reasoning_content": "hm",
    }
    function = {"name": "f", "arguments": {"b": 1, "a": [2]}}
    assert template_message(CALLS)["tool_calls"] == [{"id": "c1", "type": "function", "function": function}]
    assert template_message(RESULT) == {"role": "tool", "content": "2", "tool_call_id": "c1"}


def test_a_tool_is_rendered_in_the_order_sent_and_nothing_is_added() -> None:
    parameters = {"type": "object", "properties": {"z": {}, "a": {}}, "required": []}
    function = template_tool(Tool("f", "d", parameters))["function"]
    assert list(function) == ["name", "description", "parameters"]
    assert list(function["parameters"]["properties"]) == ["z", "a"]
    assert template_tool(Tool("f")) == {"type": "function", "function": {"name": "f"}}


def test_results_belong_to_earlier_calls() -> None:
    check_calls([CALLS, RESULT])
    check_calls([CALLS, says("system", "reminder"), RESULT], results_required=True)
    for messages in ([RESULT], [RESULT, CALLS]):
        with pytest.raises(InvalidParameter, match=r"'c1'.*no message before it made") as caught:
            check_calls(messages)
        assert caught.value.param == "messages[2]"


def test_a_call_without_a_result_is_refused_where_results_are_required() -> None:
    for messages in ([CALLS], [CALLS, says("user", "go on"), RESULT]):
        check_calls(messages)
        with pytest.raises(InvalidParameter, match="'c1', which has no result") as caught:
            check_calls(messages, results_required=True)
        assert caught.value.param == "messages[1].tool_calls[0]"


@pytest.mark.parametrize("arguments", ["", "[1]", '"text"', '{"a": '])
def test_arguments_that_are_no_json_object_are_refused_with_their_path(arguments: str) -> None:
    message = says("assistant", calls=(ToolCall("c1", "f", arguments),), path="messages[4]")
    with pytest.raises(InvalidParameter, match="JSON text of an object") as caught:
        check_calls([message])
    assert caught.value.param == "messages[4].tool_calls[0].function.arguments"


def test_a_template_shows_whether_it_takes_late_system_messages() -> None:
    drops = "{{ messages[0].content }}{{ messages[-1].content }}"
    refuses = "{% for m in messages[1:] %}{% if m.role == 'system' %}{{ raise_exception('x') }}{% endif %}{% endfor %}"
    for source, takes in {CHATML: True, drops: False, refuses: False}.items():
        assert takes_late_systems(partial(_text, ChatTemplate(source))) is takes


def _text(template: ChatTemplate, messages: list[dict[str, Any]]) -> str:
    return template.render(messages).text


def test_late_system_messages_speak_as_users_and_turns_alternate() -> None:
    messages = [says("system", "s"), says("user", "a"), says("system", "b"), says("user", "c"), says("assistant", "d")]
    found = late_systems_as_users([*messages, says("system", "e")])
    assert [(message.role, message.text) for message in found] == [
        ("system", "s"),
        ("user", "a\nb\nc"),
        ("assistant", "d"),
        ("user", "e"),
    ]


def test_messages_without_late_systems_stay_as_they_are() -> None:
    messages = (says("system", "s"), says("user", "a"), says("user", "b"), says("assistant", "d"))
    assert late_systems_as_users(messages) == messages
