"""One decoder for every architecture here, recorded once as a program and run by one native call a step.

Llama, Qwen2 and Qwen3 differ in what a file holds (biases, per-head norms, a separate output matrix) and in how rotary
pairs stand; all of that is in the values below, so recording asks what a layer has, never what it is called.  This file
knows shapes and order; the numbers are computed in csrc/.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from twostroke._kernels import KVStore, Pool, Program, Weight
from twostroke.runtime.inputs import Inputs
from twostroke.runtime.models.config import ModelConfig, Pairing

if TYPE_CHECKING:
    from twostroke._kernels import Quantized, Register

Floats = NDArray[np.float32]
PAIRING: dict[Pairing, Literal["norm", "neox"]] = {"interleaved": "norm", "half": "neox"}  # the kernels' words


@dataclass(frozen=True, slots=True)
class Linear:
    """weight · x (+ bias); bias is [rows] or absent."""

    weight: Weight
    bias: Floats | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """One transformer block.  Gains are [width], or [head_dim] for the per-head norms."""

    attention_norm: Floats
    q: Linear
    k: Linear
    v: Linear
    q_norm: Floats | None
    k_norm: Floats | None
    attention_output: Linear
    ffn_norm: Floats
    gate: Linear
    up: Linear
    down: Linear


@dataclass(frozen=True, slots=True)
class Weights:
    """Everything a decoder reads.  `output` is the embedding itself where the file ties them.

    An output matrix may have fewer rows than the vocabulary: a drafter need not be able to say every token.
    """

    embedding: Weight
    layers: tuple[Layer, ...]
    output_norm: Floats
    output: Weight
    cos: Floats  # [context, rope_dims / 2]
    sin: Floats

    @property
    def bytes_per_step(self) -> int:
        """Bytes of weights that one step reads, as in the file (the token table is looked up, not read)."""
        linears = (linear for layer in self.layers for linear in _linears(layer))
        return sum(linear.weight.file_bytes for linear in linears) + self.output.file_bytes

    @property
    def resident_bytes(self) -> int:
        """Bytes of packed weights in memory."""
        linears = [linear.weight for layer in self.layers for linear in _linears(layer)]
        matrices = {id(weight): weight for weight in [*linears, self.embedding, self.output]}
        return sum(weight.resident_bytes for weight in matrices.values())


def _linears(layer: Layer) -> tuple[Linear, ...]:
    return (layer.q, layer.k, layer.v, layer.attention_output, layer.gate, layer.up, layer.down)


def _grouping(weight: Weight) -> str:
    """What weights must have in common to read the same activation buffer: how their type groups its inputs."""
    if weight.type.endswith("_K"):
        return "256"
    return "float" if weight.type in ("F32", "F16", "BF16") else "32"


class Decoder:
    """A recorded forward pass over one KV store: integers in, a view of logits [S, vocab] out."""

    def __init__(self, config: ModelConfig, weights: Weights, store: KVStore, pool: Pool, max_rows: int) -> None:
        self.store = store
        self.max_rows = max_rows
        self.program = Program(pool, max_rows)
        self._logits = _Recorder(self.program, config, store).record(weights)

    def run(self, inputs: Inputs) -> Floats:
        """Logits of the sampled rows, [S, vocab], valid until the next run."""
        return self.program.run(
            inputs.tokens,
            inputs.positions,
            inputs.runs,
            inputs.blocks,
            inputs.tables,
            inputs.samples,
            self._logits,
        )


class _Recorder:
    """Registers and activation buffers, shared by all layers, and the operations in order."""

    def __init__(self, program: Program, config: ModelConfig, store: KVStore) -> None:
        self.program, self.config, self.store = program, config, store
        self.hidden = program.register(config.width)
        self.qkv = program.register((config.heads + 2 * config.kv_heads) * config.head_dim)
        self.gate_up = program.register(2 * config.ffn)
        self._buffers: dict[tuple[int, str, str], Quantized] = {}

    def record(self, weights: Weights) -> Register:
        self.program.embed(weights.embedding, self.hidden)
        for index, layer in enumerate(weights.layers):
            self._attention(index, layer, weights)
            self._feed_forward(layer)
        return self._head(weights.output_norm, weights.output)

    def _attention(self, index: int, layer: Layer, weights: Weights) -> None:
        config = self.config
        q_width, kv_width = config.heads * config.head_dim, config.kv_heads * config.head_dim
        self._norm(self.hidden, layer.attention_norm, "width", (layer.q, layer.k, layer.v))
        columns = zip((layer.q, layer.k, layer.v), (0, q_width, q_width + kv_width), strict=True)
        self.program.multiply([self._product(linear, "width", self.qkv, column) for linear, column in columns])
        self.program.rope_store(
            self.qkv,
            config.heads,
            self.store,
            index,
            weights.cos,
            weights.sin,
            PAIRING[config.rope.pairing],
            layer.q_norm,
            layer.k_norm,
            config.norm_epsilon,
        )
        read = self._buffers_of("attention", (layer.attention_output,))
        self.program.attend(self.qkv, config.heads, self.store, index, config.head_dim**-0.5, None, read)
        self.program.multiply([self._product(layer.attention_output, "attention", self.hidden, add=True)])

    def _feed_forward(self, layer: Layer) -> None:
        self._norm(self.hidden, layer.ffn_norm, "width", (layer.gate, layer.up))
        columns = zip((layer.gate, layer.up), (0, self.config.ffn), strict=True)
        self.program.multiply([self._product(linear, "width", self.gate_up, column) for linear, column in columns])
        self.program.silu_mul(self.gate_up, None, self._buffers_of("ffn", (layer.down,)))
        self.program.multiply([self._product(layer.down, "ffn", self.hidden, add=True)])

    def _head(self, gain: Floats, output: Weight) -> Register:
        """Only the sampled rows pass the output matrix, the largest of all."""
        sampled = self.program.register(self.config.width)
        logits = self.program.register(output.rows)
        self.program.gather(self.hidden, sampled)
        head = Linear(output)
        self._norm(sampled, gain, "head", (head,))
        self.program.multiply([self._product(head, "head", logits)])
        return logits

    def _norm(self, x: Register, gain: Floats, use: str, readers: Iterable[Linear]) -> None:
        self.program.norm(x, gain, self.config.norm_epsilon, None, self._buffers_of(use, readers))

    def _buffers_of(self, use: str, readers: Iterable[Linear]) -> Sequence[Quantized]:
        """The activation buffers that `readers` want, one for each grouping among them."""
        return list(dict.fromkeys(self._buffer(use, linear.weight) for linear in readers))

    def _buffer(self, use: str, weight: Weight) -> Quantized:
        key = (weight.cols, _grouping(weight), use)
        if key not in self._buffers:
            self._buffers[key] = self.program.activations(weight)
        return self._buffers[key]

    def _product(
        self, linear: Linear, use: str, out: Register, column: int = 0, *, add: bool = False
    ) -> tuple[Weight, Quantized, Register, int, Floats | None, bool]:
        return (linear.weight, self._buffer(use, linear.weight), out, column, linear.bias, add)
