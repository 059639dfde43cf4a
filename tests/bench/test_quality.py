"""The comparison is arithmetic that can be checked by hand, and the engine passes it on every weight type."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from bench.quality import KV_TYPES, PASSAGE, TOKENS, Logits, compare, kernel_logits, line, main, measure
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bench import quality, report
from tests.tiny import Tiny, write_model
from twostroke.assemble import open_model
from twostroke.config import Settings
from twostroke.runtime.reference import Reference
from twostroke.runtime.weights.formats import WeightType
from twostroke.runtime.weights.gguf import read


def constant(*rows: Sequence[float]) -> Logits:
    return lambda tokens: np.log(np.array(rows))


def random(seed: int, scale: float = 1.0) -> Logits:
    def logits(tokens: Sequence[int]) -> NDArray[np.float64]:
        return np.random.default_rng(seed).normal(0.0, scale, (len(tokens), 40))

    return logits


# --- the comparison


def test_by_hand() -> None:
    exact = constant([0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [9, 9, 9])
    engine = constant([0.25, 0.5, 0.25], [0.1, 0.8, 0.1], [1, 2, 3])
    found = compare([0, 1, 2], exact, engine)
    kl = 0.5 * math.log(2) - 0.25 * math.log(2)
    assert found.positions == 2
    assert found.mean_kl == pytest.approx(kl / 2)
    assert found.max_kl == pytest.approx(kl)
    assert found.same_first == 0.5
    assert found.perplexity == pytest.approx(1 / math.sqrt(0.5 * 0.1))
    assert found.reference_perplexity == pytest.approx(1 / math.sqrt(0.25 * 0.1))


def test_the_same_logits_diverge_by_nothing() -> None:
    found = compare(range(40), random(1), random(1))
    assert (found.mean_kl, found.max_kl, found.same_first) == (0.0, 0.0, 1.0)
    assert found.perplexity == found.reference_perplexity


@given(st.integers(0, 1000), st.floats(-50, 50))
def test_a_shift_of_all_logits_is_no_divergence(seed: int, shift: float) -> None:
    found = compare(range(40), random(seed), lambda tokens: random(seed)(tokens) + shift)
    assert found.mean_kl == pytest.approx(0.0, abs=1e-12)


@given(st.integers(0, 1000), st.integers(2, 40))
def test_divergence_is_never_negative(seed: int, length: int) -> None:
    found = compare(range(length), random(seed), random(seed + 1))
    assert 0.0 < found.mean_kl <= found.max_kl
    assert found.positions == length - 1


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compare(range(40), random(3), random(4))
    monkeypatch.setattr(quality, "CHUNK", 7)
    assert compare(range(40), random(3), random(4)) == whole


def test_the_passage_is_long_enough_for_any_tokenizer() -> None:
    assert len(PASSAGE.read_text().split()) > TOKENS


# --- the engine


@pytest.mark.parametrize("kind", [kind.name for kind in WeightType])
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_kernels_follow_the_reference(tmp_path: Path, architecture: str, kind: str) -> None:
    """Every weight type and family, from file to logits: only the rounding of activations and KV tells them apart."""
    path = write_model(tmp_path / "tiny.gguf", Tiny(architecture, weights=kind, tied=False))
    model = open_model(Settings(model=str(path)))
    tokens = model.codec.encode(PASSAGE.read_text())[:70]
    found = compare(tokens, Reference(read(path)).logits, kernel_logits(model, "q16"))
    assert found.mean_kl < (1e-5 if kind in ("F32", "F16", "BF16") else 1e-2)
    assert found.same_first > 0.8


@pytest.mark.parametrize(
    "tiny",
    [
        Tiny("llama", weights="F32", metadata={"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}),
        Tiny("qwen2", weights="F32", metadata={"qwen2.rope.scaling.type": "yarn", "qwen2.rope.scaling.factor": 4.0}),
        Tiny("qwen2", weights="F32", metadata={"qwen2.rope.dimension_count": 32}),
        Tiny("llama", weights="F32", bias=True),
        Tiny("qwen3", weights="F32", heads=2, kv_heads=1, head_dim=256),
        Tiny("qwen3", weights="F32", heads=4, kv_heads=4, head_dim=32),
    ],
)
def test_kernels_follow_the_reference_through_every_switch(tmp_path: Path, tiny: Tiny) -> None:
    path = write_model(tmp_path / "tiny.gguf", tiny)
    model = open_model(Settings(model=str(path)))
    tokens = model.codec.encode(PASSAGE.read_text())[:100]
    found = compare(tokens, Reference(read(path)).logits, kernel_logits(model, "q16"))
    assert found.max_kl < 1e-4


@pytest.mark.model
@pytest.mark.parametrize("name", ["smollm2-135m", pytest.param("qwen2.5-coder-0.5b", marks=pytest.mark.slow)])
def test_real_models_stay_close_to_exact_arithmetic(name: str) -> None:
    by_type = dict(measure(name, KV_TYPES, TOKENS))
    assert by_type["q16"].positions == TOKENS - 1
    assert by_type["q16"].mean_kl < 0.02
    assert by_type["q8"].mean_kl < 0.04
    assert by_type["q16"].perplexity == pytest.approx(by_type["q16"].reference_perplexity, rel=0.03)


# --- the command


def test_the_command_prints_a_table_or_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write_model(tmp_path / "tiny.gguf"))
    assert main([path, "--tokens", "20"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert len(table) == 2 + len(KV_TYPES)
    assert table[2].startswith(f"| {path} | q16 | 19 |")
    assert main([path, "--tokens", "20", "--kv-type", "q8", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kv_type"], document["positions"]) == ("q8", 19)
    assert f"{document['mean_kl']:.5f}" in table[3]


@pytest.mark.parametrize("tokens", ["0", "1", "-3"])
def test_too_few_tokens_are_refused(tokens: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["smollm2-135m", "--tokens", tokens])
    assert "at least 2" in capsys.readouterr().err


def test_the_table_goes_into_the_page_with_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(report.block("quality", "nothing"))
    monkeypatch.setattr(report, "PERFORMANCE", page)
    path = str(write_model(tmp_path / "tiny.gguf"))
    assert main([path, "--tokens", "20", "--write"]) == 0
    assert f"`python -m bench quality {path} --tokens 20`" in page.read_text()
    assert page.read_text().count(f"| {path} |") == len(KV_TYPES)


def test_the_command_names_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-model"]) == 1
    assert "no-such-model" in capsys.readouterr().err


def test_a_row_has_as_many_cells_as_the_head() -> None:
    found = compare(range(10), random(1), random(2))
    assert {row.count("|") for row in (*quality.HEAD.splitlines(), line("m", "q16", found))} == {9}
