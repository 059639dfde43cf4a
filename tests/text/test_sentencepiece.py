"""The pieces are those of joining the best-scored neighbours again and again, found the slow way."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from twostroke.text.sentencepiece import SPACE, SentencePiece

LETTERS = "abc▁"
BYTES = list(range(1000, 1256))
# Few distinct scores make ties, on which the leftmost neighbours go first.
VOCABULARY = st.dictionaries(st.text(LETTERS, min_size=1, max_size=5), st.sampled_from([-1.0, -2.0, -3.0]), max_size=25)
TEXT = st.text("abc xé", max_size=25)


def model(scores: dict[str, float]) -> SentencePiece:
    return SentencePiece({piece: i for i, piece in enumerate(scores)}, list(scores.values()), BYTES)


def slow(scores: dict[str, float], text: str) -> list[int]:
    pieces = list(text.replace(" ", SPACE))
    ids = {piece: i for i, piece in enumerate(scores)}
    while bids := [(-scores[a + b], i) for i, (a, b) in enumerate(pairwise(pieces)) if a + b in ids]:
        _, i = min(bids)
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
    return [i for p in pieces for i in ([ids[p]] if p in ids else [BYTES[byte] for byte in p.encode()])]


@given(VOCABULARY, TEXT)
def test_agrees_with_the_slow_way(scores: dict[str, float], text: str) -> None:
    assert model(scores).encode(text) == slow(scores, text)


@given(VOCABULARY.filter(lambda found: not any(SPACE in piece[1:] for piece in found)), TEXT)
def test_agrees_when_words_are_split_apart(scores: dict[str, float], text: str) -> None:
    assert model(scores).encode(text) == slow(scores, text)


def test_words_are_not_split_where_a_piece_reaches_across() -> None:
    assert model({"a▁b": -1.0, "a▁": -2.0}).encode("a b") == [0]


def test_the_best_score_goes_first() -> None:
    scores = {"a": -9.0, "b": -9.0, "c": -9.0, "ab": -2.0, "bc": -1.0}
    assert model(scores).encode("abc") == [0, 4]


def test_the_leftmost_goes_first_on_a_tie() -> None:
    assert model({"a": -9.0, "aa": -1.0}).encode("aaa") == [1, 0]


def test_what_has_no_piece_is_spelt_in_bytes() -> None:
    assert model({"a": -1.0}).encode("aé") == [0, 1000 + 0xC3, 1000 + 0xA9]


def test_nothing_comes_of_nothing() -> None:
    assert model({"a": -1.0}).encode("") == []


def test_a_piece_reads_with_spaces() -> None:
    assert model({}).piece("▁a▁é") == " a é".encode()


def test_a_long_word_is_joined_in_little_more_than_linear_time() -> None:
    scores = {"a" * (1 << power): float(power) for power in range(10)}
    assert model(scores).encode("a" * 100_000) == slow_runs(100_000)


def slow_runs(length: int) -> list[int]:
    """The pieces of a run whose vocabulary holds the powers of two, the longest with the best score."""
    whole, rest = divmod(length, 1 << 9)
    return [9] * whole + [power for power in reversed(range(9)) if rest >> power & 1]
