"""The reference says what llama.cpp said (tests/golden/record.py tells how it was asked).

With float weights both compute the same function and agree to the recorded digits.  With quantised weights llama.cpp
also rounds activations to 8 bits, so log-probabilities differ by some hundredths and a near tie may turn over.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden.record import HERE, MODELS, PROMPTS, TINY, tiny_file
from twostroke.catalog import resolve
from twostroke.runtime.reference import Array, Recent, Reference, log_softmax
from twostroke.runtime.weights import gguf

RECORDED = 2e-5  # five decimals, and float32 on the other side
TOP_TEN = 0.35  # activations in 8 bits move a log-probability of the first ten by up to 0.26 here
NEAR_TIE = 0.1


def recorded(name: str) -> Any:
    return json.loads((HERE / f"{name}.json").read_text())["entries"]


@pytest.mark.parametrize("name", TINY)
def test_float_models_agree_to_the_digits_recorded(tmp_path: Path, name: str) -> None:
    entry, data = recorded("tiny")[name], tiny_file(name)
    assert hashlib.sha256(data).hexdigest() == entry["sha256"], "another random stream made this model: record again"
    (tmp_path / "tiny.gguf").write_bytes(data)
    logprobs = log_softmax(Reference(gguf.read(tmp_path / "tiny.gguf")).logits(entry["prompt"]))[-1]
    theirs = dict(entry["top"][0])
    assert len(theirs) == len(logprobs) == 300
    assert [theirs[token] for token in range(300)] == pytest.approx(logprobs, abs=RECORDED)


def test_what_tells_the_models_apart_shows_in_the_records() -> None:
    """A reference that ignored scaling or factors would fail above: each record differs from its plain sibling."""
    by_name = {name: dict(entry["top"][0]) for name, entry in recorded("tiny").items()}
    for plain, other in (
        ("llama", "llama, frequency factors"),
        ("qwen2", "qwen2, linear scaling"),
        ("qwen2", "qwen2, yarn"),
    ):
        assert max(abs(by_name[plain][token] - by_name[other][token]) for token in range(300)) > 100 * RECORDED


@pytest.fixture(scope="module", params=[MODELS[0], pytest.param(MODELS[1], marks=pytest.mark.slow)])
def real(request: pytest.FixtureRequest) -> tuple[str, Reference]:
    return request.param, Reference(gguf.read(resolve(request.param)), keep=True)


@pytest.mark.model
@pytest.mark.parametrize("prompt", range(len(PROMPTS)))
def test_real_models_agree_but_for_near_ties(real: tuple[str, Reference], prompt: int) -> None:
    name, model = real
    entry = recorded(name)[prompt]
    logprobs = continuation(model, entry["prompt"], entry["tokens"])
    first = dict(entry["top"][0][:10])
    assert list(first.values()) == pytest.approx(logprobs[0][list(first)], abs=TOP_TEN)
    for ours, theirs in zip(logprobs, entry["tokens"], strict=True):
        assert ours[theirs] >= ours.max() - NEAR_TIE
    assert mean_divergence(logprobs, entry["top"]) < 0.01


def continuation(model: Reference, prompt: list[int], tokens: list[int]) -> Array:
    """Our log-probabilities at the positions where `tokens` were chosen, [len(tokens), vocab]."""
    hidden = model.hidden([*prompt, *tokens[:-1]], 0, Recent())
    return log_softmax(model.head(hidden[len(prompt) - 1 :]))


def mean_divergence(logprobs: Array, tops: list[list[tuple[int, float]]]) -> float:
    """Mean KL(ours || theirs) over the recorded tokens."""
    pairs = zip(logprobs, tops, strict=True)
    return float(np.mean([sum(np.exp(p[token]) * (p[token] - q) for token, q in top) for p, top in pairs]))
