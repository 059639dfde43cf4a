"""What an answer may be expected to get, by what its namespace's answers got."""

import pytest

from twostroke.speculate.lengths import FIRST, Lengths


def test_nothing_seen_means_an_ordinary_answer():
    assert Lengths().expected("") == FIRST


@pytest.mark.parametrize("length", [5, 2000])
def test_a_dozen_answers_teach_their_length(length):
    lengths = Lengths()
    for _ in range(12):
        lengths.add("", length)
    assert lengths.expected("") == pytest.approx(length, abs=abs(FIRST - length) / 6)


def test_a_change_is_followed():
    lengths = Lengths()
    for tokens in [1000] * 20 + [10] * 20:
        lengths.add("", tokens)
    assert lengths.expected("") < 200


def test_a_namespace_learns_nothing_of_another():
    lengths = Lengths()
    lengths.add("a", 3)
    assert lengths.expected("b") == FIRST
    lengths.purge("a")
    assert lengths.expected("a") == FIRST


def test_namespaces_are_bounded():
    lengths = Lengths(namespaces=2)
    for namespace in "abc":
        lengths.add(namespace, 3)
    assert lengths.expected("a") == FIRST
    assert lengths.expected("c") < FIRST
