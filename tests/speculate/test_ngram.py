import random
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.speculate.texts import Text
from twostroke.speculate.ngram import Ngram, NgramIndex, continuation


def plainly(tokens, longest, shortest, limit):
    """The definition, by scanning: the longest n, then the latest earlier place, continued periodically."""
    for n in range(longest, shortest - 1, -1):
        for end in range(len(tokens) - 1, n - 1, -1):
            if tokens[end - n : end] == tokens[len(tokens) - n :]:
                period = len(tokens) - end
                return tuple(tokens[end + i % period] for i in range(limit)), n
    return (), 0


@given(st.lists(st.integers(0, 3), max_size=60), st.data(), st.integers(1, 9))
def test_finds_what_a_scan_of_the_whole_text_finds_however_it_grew(tokens, data, limit):
    lookup, text = Ngram(longest=4, shortest=2), Text()
    while len(text.tokens) < len(tokens):
        step = data.draw(st.integers(1, 12))
        text.grow(*tokens[len(text.tokens) : len(text.tokens) + step])
        guess = lookup.guess(text, limit)
        assert (guess.tokens, guess.strength) == plainly(text.tokens, 4, 2, limit)


@given(st.lists(st.integers(0, 2), max_size=40), st.integers(1, 3), st.integers(0, 3))
def test_any_range_of_n_is_allowed(tokens, shortest, more):
    text = Text(tokens=tokens)
    assert Ngram(shortest + more, shortest).guess(text, 5).tokens == plainly(tokens, shortest + more, shortest, 5)[0]


def test_prefers_the_longer_match_to_the_more_recent():
    text = Text(tokens=[1, 2, 3, 9, 7, 2, 3, 8, 1, 2, 3])
    assert Ngram(3, 2).guess(text, 1).tokens == (9,)


def test_prefers_the_more_recent_of_equal_matches():
    text = Text(tokens=[1, 2, 9, 0, 1, 2, 8, 0, 5, 1, 2])
    assert Ngram(2, 2).guess(text, 1).tokens == (8,)


def test_a_match_that_overlaps_the_end_goes_on_periodically():
    assert Ngram().guess(Text(tokens=[5, 6, 5, 6, 5, 6]), 5).tokens == (5, 6, 5, 6, 5)
    assert Ngram().guess(Text(tokens=[7, 7, 7, 7, 7]), 4).tokens == (7, 7, 7, 7)


def test_a_text_without_repetition_gives_a_reason():
    guess = Ngram().guess(Text(tokens=list(range(50))), 4)
    assert (guess.tokens, guess.reason) == ((), "no_match")


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_the_shortest_texts_match_nothing(length):
    assert Ngram().guess(Text(tokens=[1] * length), 4).tokens == ((1, 1, 1, 1) if length == 3 else ())


def test_continuation_stops_where_it_is_asked_to():
    assert continuation([1, 2, 3, 4], 1, 2) == (2, 3)
    assert continuation([1, 2, 3, 4], 2, 5) == (3, 4, 3, 4, 3)


def test_the_end_of_the_text_stays_out_of_the_index_until_it_is_followed():
    index = NgramIndex(2, 2)
    index.extend([1, 2])
    assert index.match([1, 2]) == (0, 0)
    index.extend([1, 2, 1, 2])
    assert index.match([1, 2, 1, 2]) == (2, 2)


def test_of_a_very_long_prompt_only_the_end_is_indexed(monkeypatch):
    monkeypatch.setattr("twostroke.speculate.ngram.MOST", 6)
    lookup, text = Ngram(), Text(tokens=[1, 2, 0, 0, 0, 0, 0, 5, 6, 7, 8, 1, 2])
    assert lookup.guess(text, 2).tokens == ()
    text.grow(5, 6)
    assert lookup.guess(text, 2).tokens == (7, 8)


def test_reading_ahead_changes_no_guess():
    tokens = [random.Random(4).randrange(5) for _ in range(200)]
    ahead, behind = Ngram(), Ngram()
    for end in range(1, 150, 7):
        ahead.read(Text(tokens=tokens[:end], ready=False))
    assert ahead.guess(Text(tokens=tokens), 8) == behind.guess(Text(tokens=tokens), 8)


def test_forgetting_releases_the_index():
    lookup, text = Ngram(), Text(tokens=[1, 2, 1, 2])
    lookup.guess(text, 2)
    lookup.forget(text.id)
    lookup.forget(text.id)
    assert not lookup._indexes
    assert lookup.guess(text, 2).tokens == (1, 2)


def test_a_step_costs_what_it_added_not_what_the_text_holds():
    """Two texts, one a hundred times as long: a step on either takes the same time within a wide margin."""

    def per_step(length):
        rng = random.Random(1)
        lookup, text = Ngram(), Text(tokens=[rng.randrange(1000) for _ in range(length)])
        lookup.guess(text, 8)
        best = float("inf")
        for _ in range(20):
            started = perf_counter()
            for _ in range(20):
                text.grow(rng.randrange(1000))
                lookup.guess(text, 8)
            best = min(best, perf_counter() - started)
        return best

    assert per_step(100_000) < 20 * per_step(1_000)
