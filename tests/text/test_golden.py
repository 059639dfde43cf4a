"""The ids are those of llama.cpp, kept in `tests/golden` by `make_tokens.py`."""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from twostroke.text.stream import TextStream
from twostroke.text.template import ChatTemplate
from twostroke.text.tokenizer import Tokenizer

GOLDEN = Path(__file__).parent.parent / "golden"
MODELS = ("smollm2-135m", "qwen2.5-coder-0.5b")
FAMILIES = ("tokens-sentencepiece", *(pytest.param(f"tokens-{model}", marks=pytest.mark.model) for model in MODELS))
MARK = "\ufdd5"

# Bytes of U+0001…U+007F that SmolLM2's vocabulary has no token for, and the lead bytes of planes nobody writes in.
UNWRITABLE = {"smollm2-135m": "\x04\x06\x13\x14\x16\x1d"}


@cache
def golden(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return content


@cache
def metadata(model: str) -> dict[str, object]:
    from gguf import GGUFReader

    fields = GGUFReader(f"/opt/models/{model}.gguf").fields
    return {key: field.contents() for key, field in fields.items() if not key.startswith("GGUF.")}


@cache
def tokenizer(name: str) -> Tokenizer:
    found = golden(name)
    return Tokenizer.from_metadata(found["metadata"] if "metadata" in found else metadata(found["model"]))


def differences(name: str, key: str) -> list[tuple[str, tuple[int, ...], list[int]]]:
    made = tokenizer(name)
    found = []
    for case in golden(name)["cases"]:
        text = case["text"]
        ids = made.encode(text) if key == "ids" else made.encode_marked(text, MARK, bos=False)
        expected = case["ids"] if "</s>" in text and not made.special_strings & {"</s>"} else case[key]
        if list(ids) != expected:
            found.append((text, ids, expected))
    return found


@pytest.mark.parametrize("name", FAMILIES)
def test_plain_text(name: str) -> None:
    assert len(golden(name)["cases"]) > 100
    assert differences(name, "ids") == []


@pytest.mark.parametrize("name", FAMILIES)
def test_text_that_may_name_special_tokens(name: str) -> None:
    """llama.cpp takes every `</s>` for a special token, and warns that in Qwen's file it is an ordinary one: the one
    text that holds it is compared with its reading as plain text."""
    assert differences(name, "special_ids") == []


@pytest.mark.parametrize("name", FAMILIES)
def test_texts_come_back(name: str) -> None:
    made = tokenizer(name)
    prefix = " " if "metadata" in golden(name) else ""
    for case in golden(name)["cases"]:
        if not set(case["text"]) & set("\U0001ffff\U0010ffff\U000f0000") or made.encode("\U0010ffff"):
            lead = prefix if case["text"] else ""
            if made.decode(made.encode("\U0010ffff")) == lead + "\U0010ffff" or case["text"].isascii():
                assert made.decode(case["ids"]) == lead + case["text"]


@pytest.mark.parametrize("name", FAMILIES)
def test_texts_come_back_token_by_token(name: str) -> None:
    made = tokenizer(name)
    for case in golden(name)["cases"]:
        stream = TextStream(made.text_bytes)
        text = "".join(stream.feed([i]) for i in case["ids"]) + stream.flush()
        assert text == made.decode(case["ids"])
