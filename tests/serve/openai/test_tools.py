"""Which functions may be called, must be, or must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serve.openai.talk import TaggedText, chat, refused, tagged
from twostroke.text.conversation import Conversation, Tool, ToolChoice
from twostroke.text.formats import AnyJson

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NAMED = {"type": "function", "function": {"name": "g"}}


def tool(name: str = "f", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **more}}


TOOLS = [tool("f", description="d", parameters=SCHEMA, strict=True), tool("g")]


def read(**fields: Any) -> Conversation:
    conversation = chat(**fields).conversation
    assert conversation is not None
    return conversation


def test_tools_arrive_in_the_order_sent() -> None:
    assert read(tools=TOOLS).tools == (Tool("f", "d", SCHEMA, True, "tools[0]"), Tool("g", path="tools[1]"))
    backwards = read(tools=[tool(parameters={"b": 1, "a": 2})]).tools[0].parameters
    assert backwards is not None
    assert list(backwards) == ["b", "a"]


@pytest.mark.parametrize(
    ("choice", "read_as"),
    [
        (None, ToolChoice()),
        ("auto", ToolChoice()),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        (NAMED, ToolChoice("required", "g")),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}},
         ToolChoice("required", allowed=("g",))),
        ({"type": "allowed_tools", "mode": "auto", "tools": [NAMED]}, ToolChoice("auto", allowed=("g",))),
    ],
)  # fmt: skip
def test_choices(choice: Any, read_as: ToolChoice) -> None:
    conversation = read(tools=TOOLS, tool_choice=choice)
    assert conversation.choice == read_as
    assert len(conversation.tools) == 2
    names = [item.name for item in conversation.callable_tools]
    assert names == (["g"] if "g" in str(choice) else [] if choice == "none" else ["f", "g"])


def test_one_call_at_a_time() -> None:
    assert read(tools=TOOLS, parallel_tool_calls=False).choice == ToolChoice(parallel=False)


def test_the_older_way() -> None:
    submission = chat(functions=[{"name": "f", "parameters": SCHEMA}, {"name": "g"}], function_call={"name": "g"})
    assert submission.conversation is not None
    assert submission.details.legacy
    assert submission.conversation.tools == (
        Tool("f", None, SCHEMA, path="functions[0]"),
        Tool("g", path="functions[1]"),
    )
    assert submission.conversation.choice == ToolChoice("required", "g", parallel=False)
    assert read(functions=[{"name": "f"}], function_call="none").choice.mode == "none"
    assert read(functions=[{"name": "f"}], function_call="auto").choice.mode == "auto"
    assert refused(chat, functions=[{"name": "f"}], function_call="always").param == "function_call"
    assert refused(chat, functions=[{"name": "f"}], function_call={"name": "h"}).param == "function_call.name"
    assert refused(chat, functions=[{"name": "f"}], tools=TOOLS).param == "functions"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"tools": [5]}, "tools[0]"),
        ({"tools": [{"type": "custom"}]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [tool("a b")]}, "tools[0].function.name"),
        ({"tools": [tool("")]}, "tools[0].function.name"),
        ({"tools": [tool(parameters=5)]}, "tools[0].function.parameters"),
        ({"tools": [tool(parameters={"type": "string"})]}, "tools[0].function.parameters.type"),
        ({"tools": [tool(strict="yes")]}, "tools[0].function.strict"),
        ({"tools": [tool(description=5)]}, "tools[0].function.description"),
        ({"tools": [tool(), tool()]}, "tools[1]"),
        ({"tools": TOOLS, "tool_choice": "always"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "mcp"}}, "tool_choice.type"),
        ({"tools": TOOLS, "tool_choice": {"type": "function"}}, "tool_choice.function"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "h"}}}, "tool_choice.function.name"),
        ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "some"}}, "tool_choice.mode"),
        ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "tools": [5]}}, "tool_choice.tools[0].type"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [], "tool_choice": NAMED}, "tool_choice.function.name"),
    ],
)
def test_wrong_tools_are_refused_by_path(fields: dict[str, Any], path: str) -> None:
    error = refused(chat, **fields)
    assert error.param == path
    assert path in error.message


def test_a_grammar_is_asked_for_with_the_tools_and_a_forced_call_has_its_own_shape() -> None:
    for choice, shape in (("auto", AnyJson()), ("required", None)):
        over = tagged()
        chat(over, tools=TOOLS, tool_choice=choice, response_format={"type": "json_object"})
        assert isinstance(over.text, TaggedText)
        ((found, conversation),) = over.text.shapes
        assert found == shape
        assert conversation is not None
        assert conversation.choice.mode == choice
