"""The decoder as a textbook would write it, in float64 and numpy: what every kernel's result is judged against.

Weights are the file's values in float32, activations are never quantised, KV is never rounded.  It shares no
arithmetic with the kernels, so that a misreading of theirs is not a misreading of ours.  It knows nothing of speed.

Sources: Llama 2 (Touvron et al. 2023, arXiv 2307.09288, section 2.2): RMSNorm, SwiGLU, grouped-query attention;
Qwen2 (arXiv 2407.10671): biases of q, k and v; Qwen3 (arXiv 2505.09388): norms of each q and k head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from twostroke.runtime.models.config import from_file
from twostroke.runtime.models.rope import frequencies, magnitude
from twostroke.runtime.models.tensors import EMBEDDING, OUTPUT_NORM, layer, output_name
from twostroke.runtime.weights.dequantize import dequantize, dequantize_rows
from twostroke.runtime.weights.gguf import ModelFile

Array = NDArray[np.float64]

CHUNK_WEIGHTS = 1 << 22  # of a matrix in float64 at a time: 32 MB


class Memory(Protocol):
    """Where keys and values of earlier positions come from."""

    def extend(self, layer: int, keys: Array, values: Array) -> tuple[Array, Array]:
        """Adds those of the new positions, [n, kv_heads, head_dim]; all from position 0 on, the new ones last."""
        ...


class Recent:
    """The memory of one sequence: everything so far, in order."""

    def __init__(self) -> None:
        self._layers: dict[int, tuple[Array, Array]] = {}

    def extend(self, layer: int, keys: Array, values: Array) -> tuple[Array, Array]:
        if layer in self._layers:
            before = self._layers[layer]
            keys, values = np.concatenate([before[0], keys]), np.concatenate([before[1], values])
        self._layers[layer] = keys, values
        return keys, values


class Reference:
    """One model.  `keep=True` holds all weights dequantised (4 bytes each), else they are made anew for each use."""

    def __init__(self, file: ModelFile, *, keep: bool = False) -> None:
        self.config = from_file(file)
        self._file = file
        self._keep = keep
        self._kept: dict[str, NDArray[np.float32]] = {}
        self._frequencies = frequencies(self.config.rope)
        self._magnitude = magnitude(self.config.rope)

    def logits(self, tokens: Sequence[int]) -> Array:
        """The logits after each of `tokens`, [n, vocab]."""
        return self.head(self.hidden(tokens, 0, Recent()))

    def head(self, hidden: Array) -> Array:
        """Logits of final hidden states, [n, width] to [n, vocab]."""
        return self._product(hidden, output_name(self.config))

    def hidden(self, tokens: Sequence[int], start: int, memory: Memory) -> Array:
        """The normed hidden states of `tokens` at positions start…, [n, width], given what `memory` holds below."""
        x = np.concatenate([self._rows(EMBEDDING, token, token + 1) for token in tokens])
        for i in range(self.config.layers):
            x = x + self._attention(i, self._norm(x, layer(i, "attn_norm.weight")), start, memory)
            x = x + self._feed_forward(i, self._norm(x, layer(i, "ffn_norm.weight")))
        return self._norm(x, OUTPUT_NORM)

    def _attention(self, i: int, x: Array, start: int, memory: Memory) -> Array:
        """Causal, grouped: query head h reads key/value head h // (heads / kv_heads)."""
        config = self.config
        q = self._heads(i, "attn_q", x, config.heads)
        k = self._heads(i, "attn_k", x, config.kv_heads)
        v = self._heads(i, "attn_v", x, config.kv_heads)
        positions = np.arange(start, start + len(x))
        keys, values = memory.extend(i, self._rotate(k, positions), v)
        grouped = self._rotate(q, positions).reshape(len(x), config.kv_heads, -1, config.head_dim)
        scores = np.einsum("ngqd,tgd->ngqt", grouped, keys) / np.sqrt(config.head_dim)
        later = np.arange(len(keys)) > positions[:, None]
        weights = softmax(np.where(later[:, None, None, :], -np.inf, scores))
        mixed = np.einsum("ngqt,tgd->ngqd", weights, values).reshape(len(x), -1)
        return self._product(mixed, layer(i, "attn_output.weight"))

    def _heads(self, i: int, part: str, x: Array, heads: int) -> Array:
        """A projection as heads, [n, heads, head_dim], with its bias and its norm where the model has them."""
        y = self._product(x, layer(i, f"{part}.weight"))
        if self.config.qkv_bias:
            y = y + self._vector(layer(i, f"{part}.bias"))
        y = y.reshape(len(x), heads, self.config.head_dim)
        if self.config.qk_norm and part != "attn_v":
            y = self._norm(y, layer(i, f"{part}_norm.weight"))
        return y

    def _rotate(self, x: Array, positions: NDArray[np.int64]) -> Array:
        """Turns each pair of a head's first `dims` numbers by its position's angle; x is [n, heads, head_dim]."""
        rope = self.config.rope
        angles = positions[:, None, None] * self._frequencies
        cos, sin = np.cos(angles) * self._magnitude, np.sin(angles) * self._magnitude
        pairs = np.arange(rope.dims).reshape((-1, 2) if rope.pairing == "interleaved" else (2, -1))
        first, second = pairs.T if rope.pairing == "interleaved" else pairs
        a, b = x[..., first], x[..., second]
        turned = x.copy()
        turned[..., first] = a * cos - b * sin
        turned[..., second] = a * sin + b * cos
        return turned

    def _feed_forward(self, i: int, x: Array) -> Array:
        gate = self._product(x, layer(i, "ffn_gate.weight"))
        up = self._product(x, layer(i, "ffn_up.weight"))
        return self._product(silu(gate) * up, layer(i, "ffn_down.weight"))

    def _norm(self, x: Array, name: str) -> Array:
        mean_square = np.mean(x * x, axis=-1, keepdims=True)
        normed: Array = x / np.sqrt(mean_square + self.config.norm_epsilon)
        return normed * self._vector(name)

    def _vector(self, name: str) -> Array:
        vector: Array = self._rows(name, 0, 1)[0]
        return vector

    def _product(self, x: Array, name: str) -> Array:
        """x times the transposed matrix, a few of its rows at a time."""
        rows, cols = self._file.tensors[name].shape
        step = max(1, CHUNK_WEIGHTS // cols)
        return np.concatenate([x @ self._rows(name, a, min(a + step, rows)).T for a in range(0, rows, step)], axis=-1)

    def _rows(self, name: str, first: int, last: int) -> Array:
        """Rows of a matrix; a vector is one row."""
        tensor = self._file.tensors[name]
        if not self._keep:
            return dequantize_rows(tensor, first, last).astype(np.float64)
        if name not in self._kept:
            self._kept[name] = dequantize(tensor).reshape(-1, tensor.shape[-1])
        return self._kept[name][first:last].astype(np.float64)


def silu(x: Array) -> Array:
    """x / (1 + exp(-x)), without overflow."""
    sigmoid: Array = 0.5 * (1.0 + np.tanh(0.5 * x))
    return x * sigmoid


def softmax(x: Array) -> Array:
    """Along the last axis."""
    weights: Array = np.exp(x - x.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def log_softmax(x: Array) -> Array:
    """Along the last axis, natural logarithm."""
    shifted: Array = x - x.max(axis=-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted
