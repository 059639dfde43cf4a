"""The tiny models are fit for what other tests use them for: they load everywhere, say the same, and are lively."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny import MERGES, Tiny, gguf_bytes, model_metadata, model_tensors, tokenizer_metadata, write_model
from twostroke.runtime.reference import Reference
from twostroke.runtime.weights.gguf import read
from twostroke.text.template import ChatTemplate
from twostroke.text.tokenizer import Tokenizer

TEXT = "def add(a, b):\n    return a + b  # the sum of self and Zürich 🙂"


def test_the_same_model_is_the_same_bytes(tmp_path: Path) -> None:
    one, two = write_model(tmp_path / "1.gguf"), write_model(tmp_path / "2.gguf")
    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes() != write_model(tmp_path / "3.gguf", Tiny(seed=1)).read_bytes()
    assert one.stat().st_size < 2_000_000


def test_the_vocabulary_holds_bytes_merges_and_control_tokens() -> None:
    tokens = tokenizer_metadata()["tokenizer.ggml.tokens"]
    assert len(tokens) == len(set(tokens)) == 300
    assert {part for merge in MERGES.split("|") for part in merge.split(" ")} <= set(tokens)


def test_text_survives_the_tokenizer() -> None:
    tokenizer = Tokenizer.from_metadata(tokenizer_metadata())
    ids = tokenizer.encode(TEXT)
    assert tokenizer.decode(ids) == TEXT
    assert len(ids) < len(TEXT.encode())
    assert not any(tokenizer.is_special(token) for token in ids)
    assert tokenizer.end_ids == {297, 299}  # end of text, end of turn


def test_a_conversation_goes_through_the_template() -> None:
    metadata = tokenizer_metadata()
    tokenizer = Tokenizer.from_metadata(metadata)
    assert ChatTemplate.from_metadata(metadata, tokenizer.vocabulary) is not None
    assert metadata["tokenizer.chat_template"].count("<|im_start|>") == 2


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("tied", [True, False])
def test_answers_vary(tmp_path: Path, architecture: str, tied: bool) -> None:
    model = Reference(read(write_model(tmp_path / "tiny.gguf", Tiny(architecture, tied=tied))), keep=True)
    choices = model.logits(range(0, 280, 7)).argmax(axis=1)
    assert len(set(choices.tolist())) > 10


def test_metadata_can_be_replaced_and_removed() -> None:
    metadata = model_metadata(Tiny(metadata={"llama.context_length": 9, "general.name": None}))
    assert metadata["llama.context_length"] == 9
    assert "general.name" not in metadata


def test_types_follow_the_names_of_tensors() -> None:
    tensors = model_tensors(Tiny(weights={"": "Q4_K", "ffn_down": "Q6_K", "token_embd": "F16"}))
    assert tensors["blk.0.ffn_down.weight"][0] == 14
    assert tensors["blk.1.attn_q.weight"][0] == 12
    assert tensors["token_embd.weight"][0] == 1
    assert tensors["output_norm.weight"][0] == 0


def test_a_file_of_nothing() -> None:
    assert gguf_bytes({}, {})[:4] == b"GGUF"
