"""Gemma's notation becomes JSON, in both generations."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.tools.reading import TOOLS, call, from_alphabet, pieces_of, read, summed, words
from twostroke.text.tools.gemma import GEMMA, GEMMA4, as_json

PARIS = "<start_function_call>call:get_weather{city:<escape>Paris, {x}<escape>,days:3}<end_function_call>"


def test_a_call_is_read() -> None:
    text = f"Let me see.{PARIS}<start_function_call>call:now{{}}<end_function_call>"
    arguments = '{"city": "Paris, {x}", "days": 3}'
    assert read(GEMMA, text) == [words("Let me see."), call("get_weather", arguments), call("now")]


def test_the_next_generation_has_other_markers() -> None:
    text = '<|tool_call>call:get_weather{city:<|"|>Rome<|"|>,exact:true}<tool_call|> end'
    assert read(GEMMA4, text) == [call("get_weather", '{"city": "Rome", "exact": true}'), words("end")]


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("{}", {}),
        ("{a:1.5,b:true,c:null}", {"a": 1.5, "b": True, "c": None}),
        ("{a:{b:[1,<escape>x<escape>,{c:<escape><escape>}]}}", {"a": {"b": [1, "x", {"c": ""}]}}),
        ("{ a : word }", {"a": "word"}),
        ('{a:<escape>"q" \\ \n<escape>}', {"a": '"q" \\ \n'}),
        ("{<escape>a<escape>:1}", {"a": 1}),
    ],
)
def test_the_notation_is_json_in_other_signs(body: str, value: object) -> None:
    text = as_json(body, "<escape>")
    assert text is not None
    assert json.loads(text) == value


@pytest.mark.parametrize("body", ["", "{", "[1]", "{a}", "{a:1 b:2,}", "{a:<escape>x}", "x", "{a:1}}"])
def test_what_is_no_object_is_none(body: str) -> None:
    assert as_json(body, "<escape>") is None


@pytest.mark.parametrize(
    "text",
    [
        "<start_function_call>call:other{}<end_function_call>",
        "<start_function_call>call:now{",
        "<start_function_call>now{}<end_function_call>",
        "<start_function_call>call:now{a}<end_function_call>",
        "call:now{}",
        " words \n",
    ],
)
def test_what_is_no_call_of_an_offered_tool_is_words(text: str) -> None:
    assert read(GEMMA, text) == [words(text)]


def test_a_marker_inside_a_string_is_text() -> None:
    text = PARIS.replace("Paris", "<end_function_call>")
    assert read(GEMMA, text)[0][2].startswith('{"city": "<end_function_call>, {x}"')


BITS = ("<start_function_call>", "<end_function_call>", "<escape>", "call:", PARIS, "{}")


@given(from_alphabet(*BITS), st.data())
def test_the_cut_makes_no_difference_and_words_are_lossless(text: str, data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    feeds = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    found = summed(pieces_of(GEMMA.reader(TOOLS), feeds))
    assert found == read(GEMMA, text)
    assert found in ([], [words(text)]) or any(kind == "call" for kind, *_ in found)
