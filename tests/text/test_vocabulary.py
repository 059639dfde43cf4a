"""What the file says about tokens becomes their roles, and contradictions become errors."""

from __future__ import annotations

import pytest

from tests.text.vocabularies import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED, metadata
from twostroke.errors import Corrupt
from twostroke.text.vocabulary import (
    Vocabulary,
    byte_value,
    flag,
    integers,
    numbers,
    read_vocabulary,
    strings,
    token_id,
)

TOKENS = ["a", "<s>", "<unk>", "<tool>", "[PAD]", "<0x41>", "</s>", "<|eot_id|>"]
KINDS = [NORMAL, CONTROL, UNKNOWN, USER_DEFINED, UNUSED, BYTE, NORMAL, USER_DEFINED]


def vocabulary(**changes: object) -> Vocabulary:
    return read_vocabulary(metadata({"tokens": TOKENS, "token_type": KINDS, **changes}))


def test_special_are_control_unknown_and_ends() -> None:
    assert vocabulary().special_ids == {"<s>": 1, "<unk>": 2, "<|eot_id|>": 7}


def test_what_splitting_may_produce() -> None:
    assert vocabulary().text_ids == {"a": 0, "<tool>": 3, "</s>": 6}
    assert vocabulary().uncut_ids == {"<tool>": 3}


def test_ends_are_named_by_text_unless_the_token_is_a_normal_one() -> None:
    assert vocabulary().ends == {7}
    assert vocabulary(token_type=[*KINDS[:6], CONTROL, NORMAL]).ends == {6}


@pytest.mark.parametrize("key", ["eos_token_id", "eot_token_id", "eom_token_id"])
def test_ends_are_named_by_key_whatever_the_token_is(key: str) -> None:
    found = vocabulary(**{key: 0})
    assert found.ends == {0, 7}
    assert 0 in found.special
    assert "a" not in found.text_ids


def test_roles_are_read() -> None:
    found = vocabulary(bos_token_id=1, eos_token_id=6, unknown_token_id=2)
    assert (found.bos, found.eos, found.unknown) == (1, 6, 2)
    assert (vocabulary().bos, vocabulary().eos, vocabulary().unknown) == (None, None, None)


def test_without_types_every_token_is_normal() -> None:
    assert vocabulary(token_type=None).special == frozenset()


def test_of_two_tokens_with_one_string_the_last_counts() -> None:
    assert vocabulary(tokens=["a", "a"], token_type=[NORMAL, NORMAL]).text_ids == {"a": 1}


def test_any_list_of_numbers_will_do() -> None:
    assert vocabulary(token_type=tuple(map(float, KINDS))).kinds == tuple(KINDS)


def test_lists_are_judged() -> None:
    assert strings({"tokenizer.ggml.x": ("a", "b")}, "x") == ["a", "b"]
    assert integers({"tokenizer.ggml.x": [1, 2.0]}, "x") == [1, 2]
    assert numbers({"tokenizer.ggml.x": [1, -2.5]}, "x") == [1.0, -2.5]
    for value in (None, "ab", b"ab", 3):
        with pytest.raises(Corrupt, match=r"no list tokenizer\.ggml\.x"):
            strings({"tokenizer.ggml.x": value}, "x")
    with pytest.raises(Corrupt, match="strings only"):
        strings({"tokenizer.ggml.x": ["a", 1]}, "x")
    with pytest.raises(Corrupt, match="numbers only"):
        numbers({"tokenizer.ggml.x": [None]}, "x")


@pytest.mark.parametrize("value", [-1, 8, 2**32 - 1, "1", 1.0])
def test_a_role_must_name_a_token(value: object) -> None:
    with pytest.raises(Corrupt, match=r"bos_token_id is .* 8 tokens"):
        token_id({"tokenizer.ggml.bos_token_id": value}, "bos_token_id", 8)


def test_types_must_match_tokens() -> None:
    with pytest.raises(Corrupt, match="8 tokens but 2 token types"):
        vocabulary(token_type=[1, 1])


def test_flags_have_defaults() -> None:
    assert flag({"tokenizer.ggml.x": False}, "x", True) is False
    assert flag({"tokenizer.ggml.x": True}, "x", False) is True
    assert flag({}, "x", True) is True


def test_byte_tokens_are_read_exactly() -> None:
    assert [byte_value(token) for token in ("<0x00>", "<0x4a>", "<0xFF>")] == [0, 0x4A, 0xFF]
    for token in ("<0x1>", "<0x100>", "0x41", "<0x-1>", "<0x4 >", ""):
        with pytest.raises(Corrupt, match="not of the form <0x41>"):
            byte_value(token)
