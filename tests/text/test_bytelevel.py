"""Bytes are spelt in GPT-2's letters, merged by rank, and come back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.vocabularies import MERGES, byte_level
from twostroke.errors import Corrupt
from twostroke.text.bytelevel import LETTERS, ByteLevel
from twostroke.text.pretokenizers import pretokenizer
from twostroke.text.vocabulary import read_vocabulary


def splitter(pre: str = "gpt-2", merges: tuple[str, ...] = MERGES, **changes: object) -> ByteLevel:
    return ByteLevel(read_vocabulary(byte_level(pre, merges, **changes)), merges, pretokenizer(pre))


MODEL = splitter()


def tokens(text: str, model: ByteLevel) -> list[str]:
    named = byte_level()["tokenizer.ggml.tokens"]
    assert isinstance(named, list)
    return [named[i] for i in model.encode(text)]


def test_every_byte_has_a_letter_of_its_own() -> None:
    assert sorted(LETTERS) == list(range(256))
    assert len(set(LETTERS.values())) == 256
    assert (LETTERS[ord("a")], LETTERS[ord(" ")], LETTERS[ord("\n")], LETTERS[0]) == ("a", "Ġ", "Ċ", "Ā")
    assert all(letter.isprintable() and not letter.isspace() for letter in LETTERS.values())


@given(st.binary(max_size=20))
def test_a_piece_is_its_bytes(piece: bytes) -> None:
    assert MODEL.piece("".join(LETTERS[byte] for byte in piece)) == piece


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_the_pieces_of_a_text_are_its_bytes(text: str) -> None:
    assert b"".join(map(MODEL.piece, tokens(text, MODEL))) == text.encode()


def test_a_letter_outside_the_alphabet_is_itself() -> None:
    assert MODEL.piece("a▁") == "a▁".encode()


def test_the_best_rank_merges_first() -> None:
    assert tokens("hello", MODEL) == ["hello"]
    assert tokens("hell", MODEL) == ["hell"]
    assert tokens("ello", MODEL) == ["e", "ll", "o"]


def test_nothing_merges_across_words() -> None:
    assert tokens("12", splitter("gpt-2")) == ["12"]
    assert tokens("12", splitter("qwen2")) == ["1", "2"]


def test_a_byte_without_a_letter_is_dropped() -> None:
    data = byte_level()
    kinds = data["tokenizer.ggml.token_type"]
    assert isinstance(kinds, list)
    kinds[list(LETTERS).index(ord("\x04"))] = 5
    model = ByteLevel(read_vocabulary(data), MERGES, pretokenizer("gpt-2"))
    assert tokens("a\x04b", model) == ["a", "b"]


def test_a_merge_of_a_special_token_is_left_out() -> None:
    names = byte_level()["tokenizer.ggml.tokens"]
    assert isinstance(names, list)
    assert tokens("hello", splitter(eot_token_id=names.index("ll"))) == ["he", "l", "l", "o"]


@pytest.mark.parametrize("merge", ["h x", "he", "", " ", "zz yy"])
def test_a_merge_that_does_not_fit_is_the_files_fault(merge: str) -> None:
    with pytest.raises(Corrupt, match="merges do not fit its tokens"):
        ByteLevel(read_vocabulary(byte_level()), (*MERGES, merge), pretokenizer("gpt-2"))
