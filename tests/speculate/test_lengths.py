"""What an answer may be expected to get, by what its namespace's answers got."""

import pytest

from twostroke.speculate.lengths import FIRST, Lengths


def test_an_answer_of_which_nothing_is_known_shows_that_it_is_long_by_getting_long():
    assert Lengths().expected("", 0) == FIRST
    assert Lengths().expected("", 200) == FIRST + 200


def test_known_answers_weigh_more_than_what_was_written():
    lengths = Lengths()
    for _ in range(30):
        lengths.add("", 20)
    assert lengths.expected("", 10) < 25


@pytest.mark.parametrize("length", [5, 2000])
def test_a_dozen_answers_teach_their_length(length):
    lengths = Lengths()
    for _ in range(12):
        lengths.add("", length)
    assert lengths.expected("", 0) == pytest.approx(length, abs=abs(FIRST - length) / 6)


def test_a_change_is_followed():
    lengths = Lengths()
    for tokens in [1000] * 20 + [10] * 20:
        lengths.add("", tokens)
    assert lengths.expected("", 0) < 200


def test_a_namespace_learns_nothing_of_another():
    lengths = Lengths()
    lengths.add("a", 3)
    assert lengths.expected("b", 0) == FIRST
    lengths.purge("a")
    assert lengths.expected("a", 0) == FIRST


def test_namespaces_are_bounded():
    lengths = Lengths(namespaces=2)
    for namespace in "abc":
        lengths.add(namespace, 3)
    assert lengths.expected("a", 0) == FIRST
    assert lengths.expected("c", 0) < FIRST
