"""Messages are made plain or refused with their path."""

from __future__ import annotations

from typing import Any

import pytest

from twostroke.errors import InvalidParameter
from twostroke.text.messages import ROLES, plain_messages


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
