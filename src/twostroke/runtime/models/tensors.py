"""The names and shapes of a decoder's tensors, as GGUF files spell them.

Shapes are (outputs, inputs), the file's slowest dimension first.  This file knows names, not arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twostroke.runtime.models.config import ModelConfig

EMBEDDING = "token_embd.weight"
OUTPUT_NORM = "output_norm.weight"
OUTPUT = "output.weight"
ROPE_FACTORS = "rope_freqs.weight"

# Present in some files, never needed: frequencies that follow from the metadata.
OPTIONAL_TENSORS = re.compile(r"rope_freqs\.weight|blk\.\d+\.attn_rot_embd|blk\.\d+\.attn_rotary_emb\.inv_freq")


def layer(index: int, part: str) -> str:
    """The name of a layer's tensor: `layer(3, "attn_q.weight")`."""
    return f"blk.{index}.{part}"


def output_name(config: ModelConfig) -> str:
    """The matrix that gives logits: the token table where it is tied."""
    return EMBEDDING if config.tied else OUTPUT


def expected_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor the decoder reads, and its shape."""
    shapes: dict[str, tuple[int, ...]] = {EMBEDDING: (config.vocab, config.width), OUTPUT_NORM: (config.width,)}
    if not config.tied:
        shapes[OUTPUT] = (config.vocab, config.width)
    parts = dict(layer_shapes(config))
    return shapes | {layer(i, part): shape for i in range(config.layers) for part, shape in parts.items()}


def layer_shapes(config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The parts of one layer."""
    width, ffn = config.width, config.ffn
    q, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    yield "attn_norm.weight", (width,)
    yield from (("attn_q.weight", (q, width)), ("attn_k.weight", (kv, width)), ("attn_v.weight", (kv, width)))
    if config.qkv_bias:
        yield from (("attn_q.bias", (q,)), ("attn_k.bias", (kv,)), ("attn_v.bias", (kv,)))
    if config.qk_norm:
        yield from (("attn_q_norm.weight", (config.head_dim,)), ("attn_k_norm.weight", (config.head_dim,)))
    yield "attn_output.weight", (width, q)
    yield "ffn_norm.weight", (width,)
    yield from (("ffn_gate.weight", (ffn, width)), ("ffn_up.weight", (ffn, width)), ("ffn_down.weight", (width, ffn)))
