"""Mistral's calls are read in both forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.tools.reading import TOOLS, call, from_alphabet, pieces_of, read, summed, words
from twostroke.text.tools.mistral import MISTRAL

PARIS = '{"city": "Paris [TOOL_CALLS]"}'
ONE = f'{{"name": "get_weather", "arguments": {PARIS}}}'


@pytest.mark.parametrize(
    "text",
    [
        f"[TOOL_CALLS] [{ONE}]",
        f"[TOOL_CALLS][{ONE}]\n",
        f'[TOOL_CALLS][{{"name": "get_weather", "arguments": {PARIS}, "id": "abcdef123"}}]',
        f"[TOOL_CALLS] [{ONE}",
        f"[TOOL_CALLS]{ONE}",
        f"[TOOL_CALLS]get_weather[ARGS]{PARIS}",
        f"[TOOL_CALLS]get_weather[CALL_ID]abcdef123[ARGS]{PARIS}",
        f"[TOOL_CALLS]get_weather{PARIS}",
    ],
)
def test_a_call_is_read(text: str) -> None:
    assert read(MISTRAL, text) == [call("get_weather", PARIS)]


def test_several_calls_are_read() -> None:
    listed = f'On it.[TOOL_CALLS] [{ONE}, {{"name": "now", "arguments": {{}}}}]'
    named = f"On it.[TOOL_CALLS]get_weather[ARGS]{PARIS}[TOOL_CALLS]now[ARGS]{{}}"
    for text in (listed, named):
        assert read(MISTRAL, text) == [words("On it."), call("get_weather", PARIS), call("now")]


@pytest.mark.parametrize(
    "text",
    [
        "[TOOL_CALLS] []",
        '[TOOL_CALLS] [{"name": "other", "arguments": {}}]',
        "[TOOL_CALLS]other[ARGS]{}",
        "[TOOL_CALLS]now[ARGS]",
        "[TOOL_CALLS",
        f"[{ONE}]",
        "[1, 2] [TOOL_CALLS]",
    ],
)
def test_what_is_no_call_of_an_offered_tool_is_words(text: str) -> None:
    assert read(MISTRAL, text) == [words(text)]


@given(from_alphabet("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "{}", ONE), st.data())
def test_the_cut_makes_no_difference_and_words_are_lossless(text: str, data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    feeds = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    found = summed(pieces_of(MISTRAL.reader(TOOLS), feeds))
    assert found == read(MISTRAL, text)
    assert found in ([], [words(text)]) or any(kind == "call" for kind, *_ in found)


def test_many_unfinished_objects_are_read_in_time_that_grows_with_their_length() -> None:
    text = '[TOOL_CALLS]{"arguments": {"a": "' * 2000
    assert summed(pieces_of(MISTRAL.reader(TOOLS), [text])) == [words(text)]
