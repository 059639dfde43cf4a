"""Parameters are a schema of an object or are refused, and XML parameters are held to it."""

from __future__ import annotations

from typing import Any

import llguidance
import pytest

from tests.text.tools.reading import NOW, WEATHER
from twostroke.errors import InvalidParameter
from twostroke.text.conversation import Tool
from twostroke.text.tools.parameters import schema_of
from twostroke.text.tools.qwen3_coder import elements


def test_parameters_stay_as_sent() -> None:
    assert schema_of(WEATHER) is WEATHER.parameters
    assert schema_of(Tool("f", parameters={})) == {"type": "object"}
    assert schema_of(NOW)["properties"] == {}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("text", "are 'text'; send a JSON schema"),
        ([], "send a JSON schema"),
        ({"type": "string"}, 'the type "string"; the type must be "object"'),
        ({"type": ["object", "null"]}, "must be"),
        ({"type": "object", "properties": ["a"]}, "properties must be an object"),
        ({"type": "object", "required": "a"}, "required must be an array"),
    ],
)
def test_parameters_that_are_no_schema_of_an_object_are_refused(parameters: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words) as caught:
        schema_of(Tool("f", parameters=parameters, path="tools[3]"))
    assert caught.value.param == "tools[3]"


def fits(tool: Tool, text: str) -> bool:
    matcher = llguidance.LLMatcher(llguidance.LLTokenizer("byte"), llguidance.grammar_from("lark", elements(tool)))
    assert not matcher.get_error()
    taken = matcher.try_consume_tokens(list(text.encode()))
    return taken == len(text.encode()) and bool(matcher.is_accepting())


def parameter(key: str, value: str) -> str:
    return f"<parameter={key}>\n{value}\n</parameter>\n"


CITY = parameter("city", "Paris\n<b> é")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (CITY, True),
        (CITY + parameter("days", "3") + parameter("exact", "false"), True),
        (CITY + parameter("units", "C"), True),
        (CITY + parameter("place", '{"x": 1}'), True),
        ("", False),
        (parameter("days", "3"), False),
        (CITY + parameter("days", "many"), False),
        (CITY + parameter("units", "K"), False),
        (CITY + parameter("other", "x"), False),
        (parameter("days", "3") + CITY, False),
    ],
)
def test_xml_parameters_fit_the_schema(text: str, wanted: bool) -> None:
    assert fits(WEATHER, text) is wanted


def test_a_tool_without_parameters_takes_none() -> None:
    assert fits(NOW, "")
    assert not fits(NOW, CITY)


def test_definitions_are_known_to_every_parameter() -> None:
    defined = {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}
    assert fits(Tool("f", parameters=defined), parameter("n", "3"))
    assert not fits(Tool("f", parameters=defined), parameter("n", "x"))
