"""Plain text never becomes a special token, templates do, and bytes come back as they went in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.vocabularies import PIECES, SPECIAL, UNCUT, byte_level, sentencepiece
from twostroke.errors import Corrupt, InvalidParameter, ModelError
from twostroke.text.bytelevel import LETTERS
from twostroke.text.sentencepiece import SPACE
from twostroke.text.tokenizer import Tokenizer

BYTE_LEVEL = Tokenizer.from_metadata(byte_level())
WITH_BOS = Tokenizer.from_metadata(byte_level(add_bos_token=True))
PIECEWISE = Tokenizer.from_metadata(sentencepiece(PIECES))
UNPREFIXED = Tokenizer.from_metadata(sentencepiece(PIECES, add_space_prefix=False))
NAMES = (*SPECIAL, *UNCUT, "<s>", "</s>", "[PAD]", "<0x41>")
TEXT = st.lists(st.sampled_from(NAMES) | st.text(max_size=8), max_size=8).map("".join)
MARK = "\ufdd0"


def ident(token: str, tokenizer: Tokenizer = BYTE_LEVEL) -> int:
    return tokenizer.vocabulary.tokens.index(token)


@given(TEXT)
def test_plain_text_never_becomes_a_special_token(text: str) -> None:
    for tokenizer in (BYTE_LEVEL, PIECEWISE):
        assert not any(map(tokenizer.is_special, tokenizer.encode(text)))


@given(TEXT)
def test_every_text_comes_back(text: str) -> None:
    assert BYTE_LEVEL.decode(BYTE_LEVEL.encode(text)) == text
    assert UNPREFIXED.decode(UNPREFIXED.encode(text)) == text.replace(SPACE, " ")


@given(TEXT)
def test_pieces_joined_are_the_bytes(text: str) -> None:
    assert b"".join(map(BYTE_LEVEL.text_bytes, BYTE_LEVEL.encode(text))) == text.encode()


@given(TEXT)
def test_text_without_names_is_the_same_with_and_without_marks(text: str) -> None:
    clean = text.replace("<", "").replace("[", "")
    marked = MARK + MARK.join(clean) + MARK
    assert BYTE_LEVEL.encode_marked(marked, MARK) == BYTE_LEVEL.encode(clean)


def test_merges_go_by_rank() -> None:
    assert [BYTE_LEVEL.token_text(i) for i in BYTE_LEVEL.encode("hello world 12é")] == [
        *("hello", " world", " ", "12", "é")
    ]


def test_a_rendered_special_token_is_one() -> None:
    ids = BYTE_LEVEL.encode_marked("<|im_start|>hello<|im_end|>", MARK)
    assert ids == (ident("<|im_start|>"), ident("hello"), ident("<|im_end|>"))


def test_a_marked_special_token_is_text() -> None:
    ids = BYTE_LEVEL.encode_marked(f"<{MARK}|im_end|>", MARK)
    assert ids == BYTE_LEVEL.encode("<|im_end|>")
    assert BYTE_LEVEL.decode(ids) == "<|im_end|>"


def test_a_special_token_of_one_character_is_never_made() -> None:
    """No mark fits inside it, so a template cannot be told from its user."""
    tokenizer = Tokenizer.from_metadata(byte_level(eot_token_id=ident("x")))
    assert tokenizer.encode_marked("axb", MARK) == (ident("a"), ident("b"))


def test_a_mark_makes_no_border() -> None:
    assert BYTE_LEVEL.encode_marked(f"he{MARK}llo", MARK) == (ident("hello"),)


def test_user_defined_tokens_are_text_that_is_never_cut() -> None:
    assert BYTE_LEVEL.encode("he<tool_call>llo") == (
        *BYTE_LEVEL.encode("he"),
        ident("<tool_call>"),
        *BYTE_LEVEL.encode("llo"),
    )
    assert BYTE_LEVEL.decode([ident("<tool_call>")]) == "<tool_call>"
    assert not BYTE_LEVEL.is_special(ident("<tool_call>"))


@pytest.mark.parametrize("name", SPECIAL)
def test_special_tokens_show_only_on_demand(name: str) -> None:
    token = ident(name)
    assert BYTE_LEVEL.is_special(token)
    assert BYTE_LEVEL.text_bytes(token) == b""
    assert BYTE_LEVEL.token_bytes(token) == name.encode()
    assert BYTE_LEVEL.decode([token, ident("hello")]) == "hello"
    assert BYTE_LEVEL.decode([token], special=True) == name


def test_unused_tokens_add_nothing_to_an_answer() -> None:
    assert BYTE_LEVEL.decode([ident("[PAD]")]) == ""
    assert BYTE_LEVEL.token_text(ident("[PAD]")) == "[PAD]"


def test_a_part_of_a_character_is_shown_as_a_replacement() -> None:
    half = ident("ðŁ")
    assert BYTE_LEVEL.token_bytes(half) == b"\xf0\x9f"
    assert BYTE_LEVEL.token_text(half) == "�"
    assert BYTE_LEVEL.decode([half, ident(LETTERS[0x98]), ident(LETTERS[0x80])]) == "\U0001f600"


def test_bytes_that_are_no_text_decode_to_replacements() -> None:
    assert BYTE_LEVEL.decode([ident("ÿ"), ident("hello"), ident("Ã")]) == "�hello�"


def test_bos_is_put_first_where_the_file_asks_for_it() -> None:
    bos = WITH_BOS.bos_id
    assert WITH_BOS.encode("hello") == (ident("hello"),)
    assert WITH_BOS.encode("hello", bos=True) == (bos, ident("hello"))
    assert BYTE_LEVEL.encode("hello", bos=True) == (ident("hello"),)


def test_bos_is_not_doubled_when_the_template_wrote_it() -> None:
    assert WITH_BOS.encode_marked("<|endoftext|>hello", MARK) == (WITH_BOS.bos_id, ident("hello"))
    assert WITH_BOS.encode_marked("hello", MARK) == (WITH_BOS.bos_id, ident("hello"))
    assert WITH_BOS.encode_marked("hello", MARK, bos=False) == (ident("hello"),)


def test_a_file_without_bos_adds_none() -> None:
    tokenizer = Tokenizer.from_metadata(byte_level(add_bos_token=True, bos_token_id=None))
    assert tokenizer.encode("hello", bos=True) == (ident("hello"),)


def test_llama_3_asks_for_bos_even_when_the_file_does_not_say() -> None:
    assert Tokenizer.from_metadata(byte_level("llama-bpe", add_bos_token=None)).adds_bos
    assert not Tokenizer.from_metadata(byte_level("qwen2", add_bos_token=None)).adds_bos


def test_ends_are_those_the_file_names_by_key_or_by_a_known_name() -> None:
    assert BYTE_LEVEL.end_ids == {ident("<|im_end|>"), ident("<|endoftext|>")}
    hello = ident("hello")
    keyed = Tokenizer.from_metadata(byte_level(eot_token_id=hello))
    assert hello in keyed.end_ids
    assert keyed.is_special(hello)
    assert hello not in keyed.encode("hello")


def test_an_ordinary_token_with_the_name_of_an_end_is_text() -> None:
    merges = ["< /", "</ s", "</s >"]
    tokenizer = Tokenizer.from_metadata(byte_level(merges=merges))
    token = ident("</s>", tokenizer)
    assert token not in tokenizer.end_ids
    assert tokenizer.decode([token]) == "</s>"


@pytest.mark.parametrize("pre", ["gpt-2", "llama-bpe"])
def test_no_merge_and_no_whole_word_makes_a_special_token(pre: str) -> None:
    hell = ident("hell")
    tokenizer = Tokenizer.from_metadata(byte_level(pre, eot_token_id=hell))
    for text in ("hell", "hello"):
        assert hell not in tokenizer.encode(text)
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_whole_words_are_taken_unmerged_where_the_pretokenizer_says_so() -> None:
    data = byte_level()
    tokens, kinds = data["tokenizer.ggml.tokens"], data["tokenizer.ggml.token_type"]
    assert isinstance(tokens, list)
    assert isinstance(kinds, list)
    made: dict[str, Any] = {"tokens": [*tokens, "xyz"], "token_type": [*kinds, 1]}
    assert len(Tokenizer.from_metadata(byte_level("llama-bpe", **made)).encode("xyz")) == 1
    assert len(Tokenizer.from_metadata(byte_level("gpt-2", **made)).encode("xyz")) == 3


def test_sentencepiece_begins_a_text_with_a_space() -> None:
    assert PIECEWISE.encode("hello") == (ident("▁hello", PIECEWISE),)
    assert UNPREFIXED.encode("hello") == tuple(ident(p, PIECEWISE) for p in ("h", "el", "lo"))
    assert PIECEWISE.encode("") == ()


def test_sentencepiece_begins_again_after_a_special_token() -> None:
    assert PIECEWISE.encode_marked("<s>hello</s>hello", MARK) == (
        1,
        *PIECEWISE.encode("hello"),
        2,
        ident("▁hello", PIECEWISE),
    )


def test_sentencepiece_falls_back_to_bytes() -> None:
    assert UNPREFIXED.encode("é") == (ident("<0xC3>", PIECEWISE), ident("<0xA9>", PIECEWISE))
    assert UNPREFIXED.decode(UNPREFIXED.encode("é\x00")) == "é\x00"


def test_sentencepiece_has_bos_unless_the_file_says_no() -> None:
    assert PIECEWISE.encode("hello", bos=True) == (1, ident("▁hello", PIECEWISE))
    assert not Tokenizer.from_metadata(sentencepiece(PIECES, add_bos_token=False)).adds_bos


@pytest.mark.parametrize(("text", "place"), [("\ud800", 0), ("ab\udfffc", 2)])
def test_a_lone_surrogate_is_refused_with_its_place(text: str, place: int) -> None:
    with pytest.raises(InvalidParameter, match=rf"lone surrogate \(U\+D.*\) at character {place}"):
        BYTE_LEVEL.encode(text)


@pytest.mark.parametrize("token", [-1, BYTE_LEVEL.vocab_size])
def test_an_id_outside_the_vocabulary_is_refused(token: int) -> None:
    for ask in (BYTE_LEVEL.token_bytes, BYTE_LEVEL.text_bytes, BYTE_LEVEL.token_text):
        with pytest.raises(InvalidParameter, match=f"token id {token} is not in the vocabulary"):
            ask(token)


def test_an_unknown_kind_of_tokenizer_is_named() -> None:
    with pytest.raises(ModelError, match=r"'bert'.*known here: 'gpt2', 'llama'"):
        Tokenizer.from_metadata({"tokenizer.ggml.model": "bert"})
    with pytest.raises(ModelError, match="None"):
        Tokenizer.from_metadata({})


def test_an_unknown_pretokenizer_is_named() -> None:
    with pytest.raises(ModelError, match=r"'klingon'.*smollm"):
        Tokenizer.from_metadata(byte_level("klingon"))


def test_a_file_without_a_pretokenizer_has_the_default_one() -> None:
    absent, named = (Tokenizer.from_metadata(byte_level(pre=pre)) for pre in (None, "default"))  # type: ignore[arg-type]
    assert absent.encode("12345 hello!?") == named.encode("12345 hello!?")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"merges": None}, "no list tokenizer.ggml.merges"),
        ({"merges": ["h e", "nothing like-this"]}, "merges do not fit"),
        ({"tokens": None}, "no list tokenizer.ggml.tokens"),
        ({"tokens": "text"}, "no list tokenizer.ggml.tokens"),
        ({"tokens": [1, 2]}, "must hold strings only"),
        ({"token_type": [1]}, "1 token types"),
        ({"token_type": ["a"]}, "must hold numbers only"),
        ({"eos_token_id": 10**9}, "eos_token_id is 1000000000"),
        ({"bos_token_id": -1}, "bos_token_id is -1"),
        ({"bos_token_id": "x"}, "bos_token_id is 'x'"),
    ],
)
def test_a_damaged_byte_level_file_is_named(changes: dict[str, object], message: str) -> None:
    data = byte_level()
    for key, value in changes.items():
        data[f"tokenizer.ggml.{key}"] = value
    with pytest.raises(Corrupt, match=message):
        Tokenizer.from_metadata(data)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": None}, "no list tokenizer.ggml.scores"),
        ({"scores": [0.0]}, "1 scores"),
        ({"unknown_token_id": None}, "no token for byte 0x41 and no unknown token"),
        ({}, "not of the form <0x41>"),
    ],
)
def test_a_damaged_sentencepiece_file_is_named(changes: dict[str, object], message: str) -> None:
    data = sentencepiece(PIECES, **changes)
    kinds = data["tokenizer.ggml.token_type"]
    assert isinstance(kinds, list)
    kinds[3 + 0x41] = 1 if "unknown_token_id" in changes else 6
    if not changes:
        kinds[-1] = 6
    with pytest.raises(Corrupt, match=message):
        Tokenizer.from_metadata(data)


def test_a_byte_without_a_token_becomes_the_unknown_token() -> None:
    data = sentencepiece(PIECES)
    kinds = data["tokenizer.ggml.token_type"]
    assert isinstance(kinds, list)
    kinds[3 + 0xC3] = 5
    assert Tokenizer.from_metadata(data).encode("é")[-2:] == (0, 3 + 0xA9)
