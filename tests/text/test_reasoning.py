"""Thinking is told apart from the answer, at its beginning and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.tools.reading import TOOLS, call, pieces_of, same, summed, words
from twostroke.text.pieces import Reader, Thought, Words
from twostroke.text.reasoning import ThinkReader, thinking_of
from twostroke.text.tools.family import PlainReader
from twostroke.text.tools.hermes import HERMES


def think(*, opened: bool = False, inner: Reader | None = None) -> ThinkReader:
    return ThinkReader(inner or PlainReader(), opened=opened, begin="<think>", end="</think>")


def read(text: str, *, opened: bool = False) -> list[tuple[str, ...]]:
    return same(lambda: think(opened=opened, inner=HERMES.reader(TOOLS)), text)


@pytest.mark.parametrize(
    ("text", "opened", "wanted"),
    [
        ("<think>\nHm.\n\nYes.\n</think>\n\nHello\n", False, [("thought", "Hm.\n\nYes."), words("Hello\n")]),
        ("\n<think>Hm.</think>Hello", False, [("thought", "Hm."), words("Hello")]),
        ("Hm.\r\n</think>\r\n\r\nHello", True, [("thought", "Hm."), words("Hello")]),
        ("<think>\nHm.</think>Hello", True, [("thought", "Hm."), words("Hello")]),
        ("<think>\n\n</think>\n\nHello", False, [words("Hello")]),
        ("</think>Hello", True, [words("Hello")]),
        ("<think>never done\n", False, [("thought", "never done\n")]),
        ("cut </thi", True, [("thought", "cut </thi")]),
        ("Hello <think>no</think>", False, [words("Hello <think>no</think>")]),
        ("<thin", False, [words("<thin")]),
        (" \n Hello", False, [words(" \n Hello")]),
        ("<think>a</think>b <think>c</think>", False, [("thought", "a"), words("b <think>c</think>")]),
        ("", True, []),
        ("<think> <tool_call> </think> x", False, [("thought", " <tool_call> "), words(" x")]),
    ],
)
def test_thoughts_and_words(text: str, opened: bool, wanted: list[tuple[str, ...]]) -> None:
    assert read(text, opened=opened) == wanted


def test_a_call_after_thinking_is_read() -> None:
    text = '<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    assert read(text) == [("thought", "Hm."), call("now")]


def test_thoughts_are_not_held_back_without_need() -> None:
    reader = think(opened=True)
    assert reader.feed("I see a </b>") == (Thought("I see a </b>"),)
    assert reader.feed(" </thin") == (Thought(" "),)
    assert reader.feed("k>\nDone") == (Words("Done"),)
    assert reader.feed(" now") == (Words(" now"),)


BITS = st.sampled_from(("<think>", "</think>", "<", "</", "think>", "\n", "\r\n", " ", "x"))


@given(st.lists(BITS, max_size=16).map("".join), st.booleans(), st.data())
def test_the_cut_makes_no_difference(text: str, opened: bool, data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    feeds = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    found = summed(pieces_of(think(opened=opened), feeds))
    assert found == same(lambda: think(opened=opened), text)


@pytest.mark.parametrize(
    ("source", "special", "begin"),
    [
        (None, [], None),
        ("{{ messages }}", ["<|im_start|>"], None),
        ("{{ '<think>\\n' }}", [], "<think>"),
        ("{{ content.split('</think>')[-1] }}", [], "<think>"),
        ("{{ messages }}", ["<think>", "</think>"], "<think>"),
        ("{{ '[THINK]' }}", [], "[THINK]"),
        ("{{ '[THINK]' }}", ["<think>", "</think>"], "[THINK]"),
    ],
)
def test_the_template_says_whether_a_model_thinks(source: str | None, special: list[str], begin: str | None) -> None:
    found = thinking_of(source, special)
    assert (found and found.begin) == begin


def test_a_prompt_may_open_the_thinking() -> None:
    thinking = thinking_of("<think>", [])
    assert thinking is not None
    assert thinking.opened_by("<|im_start|>assistant\n<think>\n")
    assert not thinking.opened_by("<|im_start|>assistant\n<think>\n\n</think>\n\n")
