"""The reference equals a scalar reading of the papers, and does not care how a sequence is cut."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny import Matrix, Tiny, gguf_bytes, model_metadata, write_model
from twostroke.runtime import reference
from twostroke.runtime.models.config import ModelConfig
from twostroke.runtime.reference import Recent, Reference, log_softmax, silu, softmax
from twostroke.runtime.weights import gguf
from twostroke.runtime.weights.dequantize import dequantize
from twostroke.runtime.weights.formats import WeightType

TOKENS = [72, 101, 299, 0, 101, 57]
SMALL = {"width": 32, "heads": 4, "kv_heads": 2, "head_dim": 8, "ffn": 48, "weights": "F32"}


def model(path: Path, tiny: Tiny, *, keep: bool = True) -> Reference:
    return Reference(gguf.read(write_model(path / "tiny.gguf", tiny)), keep=keep)


# --- one number at a time

Vector = list[float]


class Textbook:
    """The same decoder over lists of floats, one token and one head at a time."""

    def __init__(self, file: gguf.ModelFile, config: ModelConfig) -> None:
        self.config = config
        self.weights = {name: dequantize(t, np.float64).tolist() for name, t in file.tensors.items()}
        self.keys: dict[int, list[list[Vector]]] = {}
        self.values: dict[int, list[list[Vector]]] = {}

    def logits(self, tokens: Sequence[int]) -> list[Vector]:
        return [self.step(position, token) for position, token in enumerate(tokens)]

    def step(self, position: int, token: int) -> Vector:
        x: Vector = self.weights["token_embd.weight"][token]
        for i in range(self.config.layers):
            x = self.add(x, self.attention(f"blk.{i}.", i, position, x))
            x = self.add(x, self.feed_forward(f"blk.{i}.", x))
        head = "token_embd.weight" if self.config.tied else "output.weight"
        return self.times(head, self.norm(x, "output_norm.weight"))

    def attention(self, layer: str, i: int, position: int, x: Vector) -> Vector:
        x = self.norm(x, layer + "attn_norm.weight")
        q = [self.rotate(h, position) for h in self.split(layer, "attn_q", x)]
        keys, values = self.keys.setdefault(i, []), self.values.setdefault(i, [])
        keys.append([self.rotate(h, position) for h in self.split(layer, "attn_k", x)])
        values.append(self.split(layer, "attn_v", x))
        out: Vector = []
        for h, query in enumerate(q):
            group = h // (self.config.heads // self.config.kv_heads)
            scores = [sum(a * b for a, b in zip(query, k[group], strict=True)) for k in keys]
            weights = [math.exp(s / math.sqrt(self.config.head_dim)) for s in scores]
            for d in range(self.config.head_dim):
                out.append(sum(w * v[group][d] for w, v in zip(weights, values, strict=True)) / sum(weights))
        return self.times(layer + "attn_output.weight", out)

    def feed_forward(self, layer: str, x: Vector) -> Vector:
        x = self.norm(x, layer + "ffn_norm.weight")
        gate, up = self.times(layer + "ffn_gate.weight", x), self.times(layer + "ffn_up.weight", x)
        inner = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up, strict=True)]
        return self.times(layer + "ffn_down.weight", inner)

    def split(self, layer: str, part: str, x: Vector) -> list[Vector]:
        y = self.times(f"{layer}{part}.weight", x)
        if self.config.qkv_bias:
            y = self.add(y, self.weights[f"{layer}{part}.bias"])
        size = self.config.head_dim
        heads = [y[i : i + size] for i in range(0, len(y), size)]
        if self.config.qk_norm and part != "attn_v":
            heads = [self.norm(head, f"{layer}{part}_norm.weight") for head in heads]
        return heads

    def rotate(self, x: Vector, position: int) -> Vector:
        rope, out = self.config.rope, list(x)
        for i in range(rope.dims // 2):
            a, b = (2 * i, 2 * i + 1) if rope.pairing == "interleaved" else (i, i + rope.dims // 2)
            angle = position * rope.base ** (-2 * i / rope.dims)
            out[a] = x[a] * math.cos(angle) - x[b] * math.sin(angle)
            out[b] = x[a] * math.sin(angle) + x[b] * math.cos(angle)
        return out

    def norm(self, x: Vector, name: str) -> Vector:
        size = math.sqrt(sum(a * a for a in x) / len(x) + self.config.norm_epsilon)
        return [a / size * w for a, w in zip(x, self.weights[name], strict=True)]

    def times(self, name: str, x: Vector) -> Vector:
        return [sum(w * a for w, a in zip(row, x, strict=True)) for row in self.weights[name]]

    @staticmethod
    def add(x: Vector, y: Vector) -> Vector:
        return [a + b for a, b in zip(x, y, strict=True)]


@pytest.mark.parametrize(
    "tiny",
    [
        Tiny("llama", **SMALL),
        Tiny("llama", **SMALL, tied=False, bias=True, metadata={"llama.rope.dimension_count": 4}),
        Tiny("qwen2", **SMALL, metadata={"qwen2.rope.dimension_count": 6}),
        Tiny("qwen2", **SMALL, tied=False),
        Tiny("qwen3", **SMALL),
        Tiny("qwen3", **SMALL | {"kv_heads": 4, "head_dim": 16}),
        Tiny("llama", **SMALL | {"kv_heads": 1, "layers": 1}),
    ],
)
def test_equals_the_textbook(tmp_path: Path, tiny: Tiny) -> None:
    file = gguf.read(write_model(tmp_path / "tiny.gguf", tiny))
    ours = Reference(file)
    theirs = Textbook(file, ours.config).logits(TOKENS)
    assert ours.logits(TOKENS) == pytest.approx(np.array(theirs), rel=1e-9, abs=1e-11)


# --- what must not matter


@pytest.mark.parametrize("kind", [kind.name for kind in WeightType])
def test_a_quantised_file_equals_a_file_of_its_dequantised_weights(tmp_path: Path, kind: str) -> None:
    tiny = Tiny("qwen3", weights=kind, tied=False)
    quantised = model(tmp_path, tiny)
    file = gguf.read(tmp_path / "tiny.gguf")
    plain: Mapping[str, Matrix] = {
        name: (0, t.shape, dequantize(t).astype("<f4").tobytes()) for name, t in file.tensors.items()
    }
    (tmp_path / "plain.gguf").write_bytes(gguf_bytes(model_metadata(tiny), plain))
    expected = Reference(gguf.read(tmp_path / "plain.gguf")).logits(TOKENS)
    logits = quantised.logits(TOKENS)
    assert np.isfinite(logits).all()
    assert logits == pytest.approx(expected, abs=1e-4)
    assert logits.std() > 0.5


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_later_tokens_change_nothing_before_them(tmp_path: Path, architecture: str) -> None:
    reader = model(tmp_path, Tiny(architecture))
    whole = reader.logits(TOKENS)
    for n in range(1, len(TOKENS)):
        assert reader.logits(TOKENS[:n]) == pytest.approx(whole[:n], abs=1e-10)


@pytest.mark.parametrize("cuts", [(1, 2, 3, 4, 5), (2,), (5,), (3, 4)])
def test_chunks_equal_the_whole(tmp_path: Path, cuts: tuple[int, ...]) -> None:
    reader, memory = model(tmp_path, Tiny("qwen2")), Recent()
    starts = (0, *cuts)
    ends = (*cuts, len(TOKENS))
    parts = [reader.hidden(TOKENS[a:b], a, memory) for a, b in zip(starts, ends, strict=True)]
    assert reader.head(np.concatenate(parts)) == pytest.approx(reader.logits(TOKENS), abs=1e-10)


def test_keeping_weights_and_slicing_matrices_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = Tiny("llama", weights="Q4_K", tied=False)
    kept = model(tmp_path, tiny).logits(TOKENS)
    monkeypatch.setattr(reference, "CHUNK_WEIGHTS", 256 * 7)
    assert model(tmp_path, tiny, keep=False).logits(TOKENS) == pytest.approx(kept, abs=1e-12)


def test_a_token_depends_on_its_whole_past(tmp_path: Path) -> None:
    reader = model(tmp_path, Tiny())
    last = reader.logits(TOKENS)[-1]
    for i in range(len(TOKENS)):
        other = [*TOKENS]
        other[i] = 200
        assert np.abs(reader.logits(other)[-1] - last).max() > 1e-4


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_rotation_makes_scores_depend_on_distance_alone(tmp_path: Path, architecture: str) -> None:
    reader = model(tmp_path, Tiny(architecture))
    q, k = np.random.default_rng(0).normal(size=(2, 1, 1, 64))
    near = reader._rotate(q, np.array([7])) * reader._rotate(k, np.array([3]))
    far = reader._rotate(q, np.array([907])) * reader._rotate(k, np.array([903]))
    assert near.sum() == pytest.approx(far.sum(), abs=1e-9)
    assert near.sum() != pytest.approx((q * k).sum(), abs=1e-3)


# --- its functions


@given(st.lists(st.floats(-300, 300), min_size=1, max_size=9))
def test_softmax(values: list[float]) -> None:
    weights = softmax(np.array(values))
    assert weights.sum() == pytest.approx(1.0)
    assert log_softmax(np.array(values)) == pytest.approx(np.log(weights), abs=1e-9)


@given(st.floats(-1e4, 1e4))
def test_silu(x: float) -> None:
    expected = x / (1 + math.exp(-x)) if x > -700 else 0.0
    assert float(silu(np.array(x))) == pytest.approx(expected, abs=1e-9)
