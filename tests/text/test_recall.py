"""Answers come back under what clients return of them, and under no other namespace."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twostroke.text.conversation import ToolCall
from twostroke.text.recall import Recall

LOOK = (ToolCall("call_1", "look", '{"at": 1, "on": "é"}'),)


def test_an_answer_is_found_by_its_words_thoughts_and_calls() -> None:
    recall = Recall()
    recall.add("a", "words\n", "why", LOOK, (1, 2, 3))
    assert recall.find("a", "words", "why", LOOK) == (1, 2, 3)
    for other in (
        ("b", "words", "why", LOOK),
        ("a", "word", "why", LOOK),
        ("a", "words", "", LOOK),
        ("a", "words", "why", ()),
    ):
        assert recall.find(*other) is None


def test_arguments_are_the_same_however_a_client_writes_them() -> None:
    recall = Recall()
    recall.add("", "", "", LOOK, (7,))
    again = ToolCall("toolu_9", "look", '{"on":"\\u00e9","at":1}')
    assert recall.find("", "", "", (again,)) == (7,)
    assert recall.find("", "", "", (ToolCall("c", "look", '{"at": 2}'),)) is None


def test_arguments_that_were_cut_off_are_found_as_they_stand() -> None:
    recall = Recall()
    recall.add("", "", "", (ToolCall("c", "look", '{"at": '),), (7,))
    assert recall.find("", "", "", (ToolCall("c", "look", '{"at":'),)) == (7,)


def test_the_latest_of_two_equal_answers_wins() -> None:
    recall = Recall()
    recall.add("", "x", "", (), (1,))
    recall.add("", "x", "", (), (2,))
    assert recall.find("", "x", "", ()) == (2,)
    recall.check()


def test_an_answer_that_says_nothing_is_not_kept() -> None:
    recall = Recall()
    recall.add("", " \n", "", (), (1,))
    recall.add("", "x", "", (), ())
    assert recall.find("", "", "", ()) is None
    assert recall.find("", "x", "", ()) is None


def test_the_least_recently_used_is_forgotten_first() -> None:
    recall = Recall(most=2)
    recall.add("", "a", "", (), (1,))
    recall.add("", "b", "", (), (2,))
    recall.find("", "a", "", ())
    recall.add("", "c", "", (), (3,))
    assert [recall.find("", name, "", ()) for name in "abc"] == [(1,), None, (3,)]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 6)), max_size=40))
def test_the_bounds_hold_whatever_is_added(added: list[tuple[str, int]]) -> None:
    recall = Recall(most=4, most_tokens=9)
    for name, length in added:
        recall.add("", name, "", (), tuple(range(length)))
        recall.check()
    recall.clear()
    recall.check()
    assert all(recall.find("", name, "", ()) is None for name in "abcdef")
