"""Qwen3-Coder's XML becomes JSON, typed by the tool's schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.tools.reading import TOOLS, call, from_alphabet, pieces_of, read, summed, words
from twostroke.text.pieces import CallArguments, CallStart
from twostroke.text.tools.qwen3_coder import QWEN3_CODER, typed


def written(parameters: dict[str, str], name: str = "get_weather") -> str:
    inside = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in parameters.items())
    return f"<tool_call>\n<function={name}>\n{inside}</function>\n</tool_call>"


def test_a_call_is_read() -> None:
    first = written({"city": "Paris", "days": "3", "exact": "true", "place": '{"x": [1]}'})
    text = f"I look.\n\n{first}\n{written({}, 'now')}"
    arguments = '{"city": "Paris", "days": 3, "exact": true, "place": {"x": [1]}}'
    assert read(QWEN3_CODER, text) == [words("I look."), call("get_weather", arguments), call("now")]


def test_parameters_stream_one_by_one() -> None:
    reader = QWEN3_CODER.reader(TOOLS)
    first = "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=da"
    assert reader.feed(first) == (CallStart(0, "get_weather"), CallArguments(0, '{"city": "Rome"'))


@pytest.mark.parametrize(
    "value",
    [
        "42",
        "true",
        "null",
        " two\n\nlines ",
        'quotes " and \\',
        "é 日本 😀",
        "a < b",
        "</parameter> inside",
        "<tool_call>",
        "",
    ],
)
def test_a_string_is_the_text_as_it_stands(value: str) -> None:
    assert read(QWEN3_CODER, written({"city": value})) == [
        call("get_weather", json.dumps({"city": value}, ensure_ascii=False))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<function=now>\n</function>",
        "<tool_call><function=now></function></tool_call>",
        "<tool_call>\r\n<function=now>\r\n</function>\r\n</tool_call>\r\n",
        "<tool_call>\n<function=now>\n</tool_call>",
    ],
)
def test_tags_may_be_missing_and_line_breaks_others(text: str) -> None:
    assert read(QWEN3_CODER, text) == [call("now")]


@pytest.mark.parametrize(
    ("value", "schema", "wanted"),
    [
        ("3", {"type": "integer"}, 3),
        ("3.5", {"type": "number"}, 3.5),
        ("True", {"type": "boolean"}, True),
        ("None", {"type": ["integer", "null"]}, None),
        ("null", {"type": ["string", "null"]}, None),
        ("null", {"type": "string"}, "null"),
        ("[1, 2]", {"type": "array"}, [1, 2]),
        ('{"a": 1}', {"$ref": "#/$defs/a"}, {"a": 1}),
        ("5", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, 5),
        ("5", {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "5"),
        ("C", {"enum": ["C", "F"]}, "C"),
        ("2", {"enum": [1, 2]}, 2),
        ("2", {"const": 2}, 2),
        ("many", {"type": "integer"}, "many"),
        ("NaN", {"type": "number"}, "NaN"),
        ("7", None, "7"),
        ("7", {}, "7"),
    ],
)
def test_values_are_typed_by_the_schema(value: str, schema: Any, wanted: object) -> None:
    assert json.loads(typed(value, schema)) == wanted


@pytest.mark.parametrize(
    "text",
    [
        written({"a": "b"}, "other"),
        "<tool_call>\n<function=now",
        "<tool_call> <tool_call><function",
        "Use <function=name> and <tool_call>.",
        " words \n",
    ],
)
def test_what_is_no_call_of_an_offered_tool_is_words(text: str) -> None:
    assert read(QWEN3_CODER, text) == [words(text)]


def test_an_unfinished_call_ends_as_it_stands() -> None:
    text = "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n1"
    assert read(QWEN3_CODER, text)[0] == call("get_weather", '{"city": "Rome"')


BITS = (
    "<tool_call>",
    "</tool_call>",
    "<function=",
    "</function>",
    "<parameter=",
    "</parameter>",
    ">",
    written({"city": "x"}),
)


@given(from_alphabet(*BITS), st.data())
def test_the_cut_makes_no_difference_and_words_are_lossless(text: str, data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    feeds = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    found = summed(pieces_of(QWEN3_CODER.reader(TOOLS), feeds))
    assert found == read(QWEN3_CODER, text)
    assert found in ([], [words(text)]) or any(kind == "call" for kind, *_ in found)


VALUE = st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=12)


@given(st.dictionaries(st.sampled_from(["city", "other", "a b"]), VALUE, max_size=3))
def test_any_text_comes_out_as_it_went_in(parameters: dict[str, str]) -> None:
    [(_, _, arguments, _)] = read(QWEN3_CODER, written(parameters))
    assert json.loads(arguments) == parameters
