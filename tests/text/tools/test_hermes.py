"""Hermes' form is read as written, in the clothes that small models give it, and nothing else is a call."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.tools.reading import TOOLS, call, from_alphabet, pieces_of, read, summed, words
from twostroke.text.pieces import CallArguments, CallEnd, CallStart, Words
from twostroke.text.tools.generic import GENERIC, instructions
from twostroke.text.tools.hermes import HERMES

PARIS = '{"city": "Paris", "days": 2}'


def tagged(arguments: str = PARIS, name: str = "get_weather") -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def test_a_call_is_read() -> None:
    assert read(HERMES, tagged()) == [call("get_weather", PARIS)]


def test_words_around_calls_are_kept_without_the_space_between() -> None:
    text = f"Let me look.\n\n{tagged()}\n{tagged(name='now', arguments='{}')}\n\nDone, wait. \n"
    assert read(HERMES, text) == [
        words("Let me look."),
        call("get_weather", PARIS),
        call("now"),
        words("Done, wait. \n"),
    ]


def test_words_between_calls_are_kept() -> None:
    assert read(HERMES, f"{tagged()} and {tagged()}") == [
        call("get_weather", PARIS),
        words("and"),
        call("get_weather", PARIS),
    ]


def test_several_boundaries_in_one_feed_come_out_in_order() -> None:
    reader = HERMES.reader(TOOLS)
    assert reader.feed('a <tool_call>{"name": "now", "arguments": {"x":') == (
        Words("a"),
        CallStart(0, "now"),
        CallArguments(0, '{"x":'),
    )
    end_and_start = reader.feed(' 1}}</tool_call>\n<tool_call>{"name": "now", "arguments": {}}</tool_call> b')
    assert end_and_start == (
        CallArguments(0, " 1}"),
        CallEnd(0),
        CallStart(1, "now"),
        CallArguments(1, "{}"),
        CallEnd(1),
        Words("b"),
    )


def test_arguments_stream_as_they_come() -> None:
    reader = HERMES.reader(TOOLS)
    assert reader.feed('<tool_call>\n{"name": "now", "arguments": ') == ()
    assert reader.feed('{"te') == (CallStart(0, "now"), CallArguments(0, '{"te'))
    assert reader.feed("xt") == (CallArguments(0, "xt"),)
    assert reader.flush() == (CallEnd(0),)


def test_words_are_not_held_back_without_need() -> None:
    reader = HERMES.reader(TOOLS)
    assert reader.feed("Hello <b>") == (Words("Hello <b>"),)
    assert reader.feed(" <tool_c") == ()
    assert reader.feed("ase>") == (Words(" <tool_case>"),)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"city": "a </tool_call> b"}',
        '{"city": "<tool_call>{\\"name\\": \\"now\\"}"}',
        '{"a": {"b": [{"c": "}]"}, []]}}',
        '{"city": "quote \\" and \\\\"}',
        '{"city": "\\u00e9 é 日本 😀"}',
        '{ "city"\t:\r\n "x" }',
        '{"city":"Paris"}',
        "{}",
    ],
)
def test_arguments_are_the_characters_that_were_written(arguments: str) -> None:
    assert read(HERMES, f"{tagged(arguments)}!") == [call("get_weather", arguments), words("!")]


@pytest.mark.parametrize(
    "text",
    [
        f'<tool_call>{{"name":"get_weather","arguments":{PARIS}}}</tool_call>',
        f'<tool_call>\r\n{{"name": "get_weather",\r\n"arguments": {PARIS}}}\r\n</tool_call>\r\n',
        f'<tool_call>\n{{"name": "get_weather", "parameters": {PARIS}}}\n</tool_call>',
        f'<tool_call>\n{{"arguments": {PARIS}, "name": "get_weather"}}\n</tool_call>',
        f'<tool_call>\n{{"name": "get_weather", "arguments": {PARIS}, "id": "7"}}\n</tool_call>',
        f'<tool_call>\n{{"id": "}}", "name": "get_weather", "arguments": {PARIS}}}\n</tool_call>',
        f'<tool_call>\n{{"type": "function", "name": "get_weather", "arguments": {PARIS}}}\n</tool_call>',
        f'<tool_call>\n{{"function": {{"name": "get_weather", "arguments": {PARIS}}}}}\n</tool_call>',
        f'<tool_call>\n{{"name": "get_weather", "arguments": {json.dumps(PARIS)}}}\n</tool_call>',
        f'<tool_call>\n{{"name": "get_weather", "arguments": {PARIS}\n</tool_call>',
        f'<tool_call>\n{{"name": "get_weather", "arguments": {PARIS}}}',
        f'<tool_call>\n{{"name": "get\\u005fweather", "arguments": {PARIS}}}\n</tool_call>',
    ],
)
def test_other_ways_to_write_the_object(text: str) -> None:
    assert read(HERMES, text) == [call("get_weather", PARIS)]


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert read(HERMES, '<tool_call>\n{"name": "now"}\n</tool_call>') == [call("now")]


def test_several_objects_in_one_tag_are_several_calls() -> None:
    one = '{"name": "now", "arguments": {}}'
    assert read(HERMES, f"<tool_call>\n{one}\n{one}\n</tool_call>") == [call("now"), call("now")]


@pytest.mark.parametrize(
    "text",
    [
        tagged(name="delete_all"),
        '<tool_call>\n{"name": "get_weather", "arguments": [1]}\n</tool_call>',
        '<tool_call>\n{"name": 3, "arguments": {}}\n</tool_call>',
        '<tool_call>\n{"name": "now", "arguments": {}, \n',
        "<tool_call>\nnow()\n</tool_call>",
        '<tool_call>\n{"name": "now',
        '<tool_call>\n{"arguments": {"name": "now"',
        "Write `<tool_call>` and `</tool_call>` around it.",
        "<tool_call",
        "a < b <to <tool_call><tool_call>{",
        " \n\t leading and trailing \r\n\r\n",
        '{"name": "now", "arguments": {}} is how a call looks',
        '{"name": "Ada", "age": 36}',
        '{"name": "now", "arguments": {}, "why": "x"}',
        '{"name": "now", "description": "d", "parameters": {"type": "object", "properties": {}}}',
        '{"name": "now", "parameters": {"type": "object", "properties": {}}}',
        '{"type": "function", "function": {"name": "now", "parameters": {}}}',
        "```python\nprint(1)\n```\nthat is all",
        '```json\n{"name": "now", "arguments": {}}\n```\nis an example.',
        '```json\n{"name": "other", "arguments": {}}\n```',
        '```python\n{"name": "now", "arguments": {}}\n```',
        'See:\n{"name": "now", "arguments": {}}',
        '<tools>\n{"name": "now", "arguments": {}}',
        '<tools>\n{"type": "function", "function": {"name": "now", "parameters": {}}}\n</tools>',
        '{"name": "now", "arguments": {"a": NaN}}',
    ],
)
def test_what_is_no_call_of_an_offered_tool_is_words(text: str) -> None:
    if '"now", "arguments": {}, \n' in text:
        assert read(HERMES, text) == [call("now"), words(", \n")]
    else:
        assert read(HERMES, text) == [words(text)]


@pytest.mark.parametrize(
    "text",
    [
        f'<tools>\n{{"name": "get_weather", "arguments": {PARIS}}}\n</tools>',
        f'```json\n{{"name": "get_weather", "arguments": {PARIS}}}\n```',
        f'```\n{{"name": "get_weather", "arguments": {PARIS}}}\n```\n',
        f'\n```json\r\n{{"name": "get_weather", "arguments": {PARIS}}}',
        f' {{"name": "get_weather", "arguments": {PARIS}}}\n',
        f'{{"name": "get_weather", "parameters": {PARIS}}}',
    ],
)
def test_small_models_write_calls_in_other_clothes(text: str) -> None:
    assert read(HERMES, text) == [call("get_weather", PARIS)]


def test_a_fence_that_ends_the_answer_is_a_call_and_the_words_before_stay() -> None:
    fence = '```json\n{"name": "now", "arguments": {}}\n```'
    assert read(HERMES, f"I will look.\n{fence}\n{fence}\n") == [words("I will look."), call("now"), call("now")]


def test_an_object_that_cannot_be_a_call_is_not_held_back() -> None:
    reader = HERMES.reader(TOOLS)
    assert reader.feed('{"answer": ') == (Words('{"answer":'),)
    reader = HERMES.reader(TOOLS)
    assert reader.feed('{"name": "Ada", ') == (Words('{"name": "Ada",'),)


def test_an_unfinished_call_ends_as_it_stands() -> None:
    assert read(HERMES, '<tool_call>\n{"name": "now", "arguments": {"a": "b') == [call("now", '{"a": "b')]
    broken = '<tool_call>\n{"name": "now", "arguments": {"a": {"b": 1}</tool_call>\nnext'
    assert read(HERMES, broken) == [call("now", '{"a": {"b": 1}'), words("next")]


def test_without_tools_everything_is_words() -> None:
    assert read(HERMES, f" {tagged()}\n", tools=()) == [words(f" {tagged()}\n")]


def test_only_the_offered_tools_are_called() -> None:
    assert read(HERMES, tagged(), tools=TOOLS[1:]) == [words(tagged())]


BITS = (
    "<tool_call>",
    "</tool_call>",
    "<tools>",
    "</tools>",
    "```",
    "json",
    '"name": ',
    '"arguments": ',
    "{}",
    tagged(),
)
TEXTS = from_alphabet(*BITS)


@given(TEXTS, st.data())
def test_the_cut_makes_no_difference(text: str, data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    feeds = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    assert summed(pieces_of(HERMES.reader(TOOLS), feeds)) == read(HERMES, text)


@given(TEXTS)
def test_text_without_calls_is_lossless(text: str) -> None:
    found = read(HERMES, text)
    if all(kind == "words" for kind, *_ in found):
        assert "".join(text for _, text in found) == text


ARGUMENTS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(BITS),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@given(st.lists(ARGUMENTS, min_size=1, max_size=3), st.booleans())
def test_any_arguments_come_out_as_written(given_arguments: list[dict[str, object]], ascii_only: bool) -> None:
    texts = [json.dumps(arguments, ensure_ascii=ascii_only) for arguments in given_arguments]
    found = read(HERMES, "Hi\n" + "\n".join(map(tagged, texts)))
    assert found == [words("Hi"), *(call("get_weather", text) for text in texts)]


def test_generic_reads_the_same_and_tells_the_tools_in_order() -> None:
    assert read(GENERIC, tagged()) == [call("get_weather", PARIS)]
    told = instructions(TOOLS)
    assert told.index('"get_weather"') < told.index('"now"')
    assert '{"type": "function", "function": {"name": "now"}}' in told
    assert '"properties": {"city": {"type": "string"}, "days": {"type": "integer"}' in told
