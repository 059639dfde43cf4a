"""Marks break every special token's name in the caller's text, and leave no trace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.errors import InvalidParameter
from twostroke.text.guard import _MARKS, Guard
from twostroke.text.literals import Literals

NAMES = ("<|im_end|>", "<|im_start|>", "<s>", "<a<s>b>", "</s>")
GUARD = Guard(NAMES)
MARK = _MARKS[0]
TEXT = st.lists(st.sampled_from((*NAMES, "<", "|>", "<|im_", "s>")) | st.text("<s>|a/", max_size=4), max_size=5).map(
    "".join
)


@given(TEXT)
def test_no_name_is_left_inside(text: str) -> None:
    assert list(Literals(NAMES).find_all(GUARD.marked_text(text, MARK))) == []


@pytest.mark.parametrize(("name", "cut"), [(name, cut) for name in NAMES for cut in range(1, len(name))])
def test_no_name_is_left_across_an_end(name: str, cut: int) -> None:
    """The template may write the other part of a name beside the caller's text."""
    head, tail = name[:cut], name[cut:]
    for rendered in (head + GUARD.marked_text(tail, MARK), head + GUARD.marked_text(f"{tail} more", MARK)):
        assert not rendered.startswith(name)
    for rendered in (GUARD.marked_text(head, MARK) + tail, GUARD.marked_text(f"more {head}", MARK) + tail):
        assert not rendered.endswith(name)


@given(TEXT)
def test_without_marks_the_text_is_unchanged(text: str) -> None:
    assert GUARD.marked_text(text, MARK).replace(MARK, "") == text


def test_text_that_holds_nothing_of_a_name_has_no_mark() -> None:
    assert GUARD.marked_text("plain a < b > c", MARK) == "plain a < b > c"


def test_a_name_inside_a_name_is_broken_too() -> None:
    assert GUARD.marked_text("<a<s>b>", MARK).count(MARK) >= 2


def test_all_strings_of_plain_data_are_marked() -> None:
    data = {"<s>": ["<s>", {"deep": ("<s>", 1, None, True)}]}
    broken = GUARD.marked_text("<s>", MARK)
    assert GUARD.marked(data, MARK) == {broken: [broken, {"deep": [broken, 1, None, True]}]}


def test_the_mark_occurs_nowhere_in_the_data() -> None:
    assert GUARD.mark({"a": [f"x{_MARKS[0]}", {_MARKS[1]: "y"}]}) == _MARKS[2]
    assert Guard([f"<{_MARKS[0]}>"]).mark("x") == _MARKS[1]


def test_text_with_every_mark_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="reserved characters"):
        GUARD.mark(["".join(_MARKS)])


def test_a_lone_surrogate_is_refused_with_its_path_and_place() -> None:
    with pytest.raises(
        InvalidParameter, match=r"messages\[1\].content holds a lone surrogate \(U\+D83D\) at character 2"
    ) as e:
        GUARD.mark({"messages": [{"content": "a"}, {"content": "ab\ud83d"}]})
    assert e.value.param == "messages[1].content"


def test_without_special_tokens_nothing_is_marked() -> None:
    assert Guard([]).marked_text("<s>", MARK) == "<s>"
