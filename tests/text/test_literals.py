"""Fixed strings are found leftmost first, longest first, and nothing else is."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from twostroke.text.literals import Literals

STRINGS = st.lists(st.text("ab<|", min_size=1, max_size=4), max_size=6)
TEXT = st.text("ab<|c", max_size=40)


def test_the_longest_of_two_that_start_together_wins() -> None:
    assert list(Literals(["<|", "<|a|>"]).find("x<|a|><|")) == [(1, 6), (6, 8)]


def test_the_leftmost_of_two_that_overlap_wins() -> None:
    assert list(Literals(["ab", "bcd"]).find("abcd")) == [(0, 2)]


def test_overlapping_places_are_all_reported_on_demand() -> None:
    assert list(Literals(["<a<b>", "<b>"]).find_all("<a<b>")) == [(0, 5), (2, 5)]


def test_nothing_to_look_for_finds_nothing() -> None:
    assert list(Literals([]).find("anything")) == []
    assert list(Literals([""]).find("anything")) == []


def test_characters_with_a_meaning_in_expressions_are_plain() -> None:
    assert list(Literals(["]", "^", "-", "\\"]).find("a]^-\\z")) == [(1, 2), (2, 3), (3, 4), (4, 5)]


def test_membership() -> None:
    assert "ab" in Literals(["ab"])
    assert "a" not in Literals(["ab"])


@given(STRINGS, TEXT)
def test_agrees_with_a_regular_expression(strings: list[str], text: str) -> None:
    longest_first = sorted(set(strings), key=len, reverse=True)
    expected = [m.span() for m in re.finditer("|".join(map(re.escape, longest_first)), text)] if strings else []
    assert list(Literals(strings).find(text)) == expected


@given(STRINGS, TEXT)
def test_every_place_where_one_starts_is_in_find_all(strings: list[str], text: str) -> None:
    starts = {start for start, _ in Literals(strings).find_all(text)}
    assert starts == {i for i in range(len(text)) if any(text.startswith(s, i) for s in strings)}
