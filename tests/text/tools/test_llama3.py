"""Llama 3's calls are read at the beginning of an answer, or behind its own tag."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.tools.reading import TOOLS, call, from_alphabet, pieces_of, read, summed, words
from twostroke.text.tools.llama3 import LLAMA3

PARIS = '{"city": "Paris"}'
PARIS_CALL = f'{{"name": "get_weather", "parameters": {PARIS}}}'


@pytest.mark.parametrize("before", ["", "\n\n", "<|python_tag|>", " <|python_tag|> "])
@pytest.mark.parametrize("after", ["", "\n", ";"])
def test_a_call_is_read(before: str, after: str) -> None:
    assert read(LLAMA3, before + PARIS_CALL + after) == [call("get_weather", PARIS)]


def test_several_calls_are_separated_by_semicolons() -> None:
    text = f'{PARIS_CALL}; {{"name": "now", "parameters": {{}}}}'
    assert read(LLAMA3, text) == [call("get_weather", PARIS), call("now")]


def test_a_call_may_say_that_it_is_a_function() -> None:
    text = f'{{"type": "function", "name": "get_weather", "parameters": {PARIS}}}'
    assert read(LLAMA3, text) == [call("get_weather", PARIS)]


def test_words_before_the_tag_and_behind_the_call_are_kept() -> None:
    text = f"I look. <|python_tag|>{PARIS_CALL} and so on"
    assert read(LLAMA3, text) == [words("I look."), call("get_weather", PARIS), words("and so on")]


@pytest.mark.parametrize(
    "text",
    [
        f"For example {PARIS_CALL}",
        '{"name": "other", "parameters": {}}',
        '{"answer": 42}',
        "<|python_tag|>print(1)",
        '<|python_tag|>brave_search.call(query="x")\n',
        '{"name": "now", "param',
    ],
)
def test_what_is_no_call_of_an_offered_tool_is_words(text: str) -> None:
    assert read(LLAMA3, text) == [words(text)]


@given(from_alphabet("<|python_tag|>", ";", PARIS_CALL, '"name": ', '"parameters": ', "{}"), st.data())
def test_the_cut_makes_no_difference_and_words_are_lossless(text: str, data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    feeds = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    found = summed(pieces_of(LLAMA3.reader(TOOLS), feeds))
    assert found == read(LLAMA3, text)
    assert found in ([], [words(text)]) or any(kind == "call" for kind, *_ in found)
