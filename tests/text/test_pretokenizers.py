"""Each name has an entry, an unknown one an error; the words are those the expressions promise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from twostroke.errors import ModelError
from twostroke.text.pretokenizers import PRETOKENIZERS, pretokenizer

DISTINCT = sorted({entry: name for name, entry in PRETOKENIZERS.items()}.values())


def words(name: str, text: str) -> list[str]:
    cut = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(e), "isolated") for e in pretokenizer(name).expressions])
    return [word for word, _ in cut.pre_tokenize_str(text)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-2", ["It", "'s", " 12345", " ", " ok", "!!", "\n"]),
        ("smollm", ["It", "'s", " ", "1", "2", "3", "4", "5", " ", " ok", "!!", "\n"]),
        ("qwen2", ["It", "'s", " ", "1", "2", "3", "4", "5", " ", " ok", "!!\n"]),
        ("llama-bpe", ["It", "'s", " ", "123", "45", " ", " ok", "!!\n"]),
        ("tekken", ["It", "'s", " ", "1", "2", "3", "4", "5", " ", " ok", "!!\n"]),
        ("gpt-4o", ["It's", " ", "123", "45", " ", " ok", "!!\n"]),
        ("default", ["It", "'", "s", " ", "123", "45", " ", " ok", "!!", "\n"]),
    ],
)
def test_the_words_of_one_text(name: str, expected: list[str]) -> None:
    assert words(name, "It's 12345  ok!!\n") == expected


@pytest.mark.parametrize("name", DISTINCT)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_nothing_is_lost_between_words(name: str, text: str) -> None:
    assert "".join(words(name, text)) == text


@pytest.mark.parametrize("name", DISTINCT)
def test_long_runs_stay_quick(name: str) -> None:
    """No expression goes back over what it has read so often that a long run takes quadratic time."""
    for unit in ("a", " ", "\n", "1", "!", "é", " \n", "aA"):
        assert "".join(words(name, unit * 50_000)) == unit * 50_000


def test_an_alias_is_the_same_entry() -> None:
    assert pretokenizer("deepseek-r1-qwen") is pretokenizer("qwen2")
    assert pretokenizer("llama3") is pretokenizer("llama-bpe")


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ModelError, match=r"'bloom'.*known here: .*llama-bpe.*qwen2"):
        pretokenizer("bloom")
