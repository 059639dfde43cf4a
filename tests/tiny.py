"""Tiny random models as real GGUF files, made in milliseconds, the same bytes every time.

    path = write_model(tmp_path / "tiny.gguf")                                  # llama, Q8_0, tied
    path = write_model(tmp_path / "q.gguf", Tiny("qwen3", weights={"": "Q4_K", "ffn_down": "Q6_K"}, tied=False))

They have a byte-level BPE tokenizer of 300 tokens, ChatML's template and weights whose scale keeps logits lively.
What they say is noise; how they say it goes through every path of a real model.  `gguf_bytes` alone writes any file,
well-formed or not.  Knows nothing of the reader it feeds.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twostroke.runtime.weights.formats import BLOCKS, WeightType

Matrix = tuple[int, tuple[int, ...], bytes]  # ggml type, shape (outputs, inputs), raw bytes

END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
MERGES = (
    "Ġ t|h e|i n|r e|Ġ a|o n|e r|Ġt he|a t|o u|e n|Ġ s|i s|Ġ w|i t|n d|Ġ c|e s|Ġ o|in g|Ġ f|Ġ p|e d|o r|Ġ i|a n|Ġa nd"
    "|Ġ b|Ġ m|l f|Ġo f|Ġ d|Ġt o|Ġ =|Ġ (|d e|de f|Ġ Ġ|ĠĠ ĠĠ|s e|se lf"
)


@dataclass(frozen=True)
class Tiny:
    """The shape of a tiny model.  Inner sizes are multiples of 256 so that every weight type fits."""

    architecture: str = "llama"
    weights: str | Mapping[str, str] = "Q8_0"  # a type, or types by part of the tensor's name ("" for the rest)
    tied: bool = True
    bias: bool | None = None  # None: as the architecture has it
    layers: int = 2
    width: int = 256
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    ffn: int = 512
    context: int = 1024
    seed: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)  # replaces keys; None removes one

    @property
    def has_bias(self) -> bool:
        return self.architecture == "qwen2" if self.bias is None else self.bias


@dataclass(frozen=True)
class Raw:
    """A metadata value of an exact GGUF type, already encoded."""

    kind: int
    data: bytes


def write_model(path: Path, tiny: Tiny | None = None) -> Path:
    """Writes the model and returns its path."""
    tiny = tiny or Tiny()
    path.write_bytes(gguf_bytes(model_metadata(tiny), model_tensors(tiny)))
    return path


def model_metadata(tiny: Tiny) -> dict[str, Any]:
    """What a converter would write for this model."""
    name = tiny.architecture
    values = {
        "general.architecture": name,
        "general.name": f"tiny {name}",
        f"{name}.block_count": tiny.layers,
        f"{name}.context_length": tiny.context,
        f"{name}.embedding_length": tiny.width,
        f"{name}.feed_forward_length": tiny.ffn,
        f"{name}.attention.head_count": tiny.heads,
        f"{name}.attention.head_count_kv": tiny.kv_heads,
        f"{name}.attention.key_length": tiny.head_dim,
        f"{name}.attention.value_length": tiny.head_dim,
        f"{name}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{name}.rope.freq_base": 10_000.0,
    }
    merged = values | tokenizer_metadata() | dict(tiny.metadata)
    return {key: value for key, value in merged.items() if value is not None}


def tokenizer_metadata() -> dict[str, Any]:
    """Byte-level BPE: 256 bytes, 41 merges, 3 control tokens."""
    merges = MERGES.split("|")
    tokens = [*byte_letters(), *(merge.replace(" ", "") for merge in merges), END_OF_TEXT, TURN_START, TURN_END]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * (len(tokens) - 3) + [3] * 3,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": len(tokens) - 3,
        "tokenizer.ggml.eos_token_id": len(tokens) - 1,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }


def byte_letters() -> list[str]:
    """GPT-2's printable letter for each byte, in the order of its vocabulary: printable bytes first."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(b) for b in printable] + [chr(256 + i) for i in range(256 - len(printable))]


def model_tensors(tiny: Tiny) -> dict[str, Matrix]:
    """All tensors, random by name and seed."""
    return {name: _tensor(tiny, name, shape) for name, shape in _shapes(tiny)}


def _shapes(tiny: Tiny) -> Iterator[tuple[str, tuple[int, ...]]]:
    vocab = len(tokenizer_metadata()["tokenizer.ggml.tokens"])
    q, kv = tiny.heads * tiny.head_dim, tiny.kv_heads * tiny.head_dim
    yield "token_embd.weight", (vocab, tiny.width)
    for i in range(tiny.layers):
        yield f"blk.{i}.attn_norm.weight", (tiny.width,)
        for part, rows in (("q", q), ("k", kv), ("v", kv)):
            yield f"blk.{i}.attn_{part}.weight", (rows, tiny.width)
            if tiny.has_bias:
                yield f"blk.{i}.attn_{part}.bias", (rows,)
        if tiny.architecture == "qwen3":
            yield f"blk.{i}.attn_q_norm.weight", (tiny.head_dim,)
            yield f"blk.{i}.attn_k_norm.weight", (tiny.head_dim,)
        yield f"blk.{i}.attn_output.weight", (tiny.width, q)
        yield f"blk.{i}.ffn_norm.weight", (tiny.width,)
        yield f"blk.{i}.ffn_gate.weight", (tiny.ffn, tiny.width)
        yield f"blk.{i}.ffn_up.weight", (tiny.ffn, tiny.width)
        yield f"blk.{i}.ffn_down.weight", (tiny.width, tiny.ffn)
    yield "output_norm.weight", (tiny.width,)
    if not tiny.tied:
        yield "output.weight", (vocab, tiny.width)


def _tensor(tiny: Tiny, name: str, shape: tuple[int, ...]) -> Matrix:
    rng = np.random.default_rng([tiny.seed, zlib.crc32(name.encode())])
    if len(shape) == 1:
        values = rng.normal(1.0 if "norm" in name else 0.0, 0.1, shape).astype("<f4")
        return int(WeightType.F32), shape, values.tobytes()
    kind = _kind(tiny, name)
    deviation = 0.1 if name in ("token_embd.weight", "output.weight") else shape[1] ** -0.5
    return int(kind), shape, random_weights(kind, shape, deviation, rng).tobytes()


def _kind(tiny: Tiny, name: str) -> WeightType:
    types = {"": tiny.weights} if isinstance(tiny.weights, str) else tiny.weights
    named = (kind for part, kind in types.items() if part and part in name)
    return WeightType[next(named, types.get("", "Q8_0"))]


# The deviation of a block's weights for a scale of 1, and its minimum in scales (fields: d, then m or dmin).
_SPREAD: Mapping[WeightType, tuple[float, float]] = {
    WeightType.Q4_0: (4.61, 0.0),
    WeightType.Q4_1: (4.61, -7.5),
    WeightType.Q5_0: (9.23, 0.0),
    WeightType.Q5_1: (9.23, -15.5),
    WeightType.Q8_0: (73.9, 0.0),
    WeightType.Q4_K: (256.0, 7.5),
    WeightType.Q5_K: (521.0, 15.5),
    WeightType.Q6_K: (1367.0, 0.0),
}


def random_weights(
    kind: WeightType, shape: tuple[int, ...], deviation: float, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Stored bytes of random weights of about this standard deviation: random codes under sensible scales."""
    if kind in (WeightType.F32, WeightType.F16, WeightType.BF16):
        values = rng.normal(0.0, deviation, shape).astype(np.float16 if kind == WeightType.F16 else np.float32)
        halves = values.reshape(-1).view(np.uint8)
        return halves.reshape(-1, 4)[:, 2:].reshape(-1) if kind == WeightType.BF16 else halves
    block = BLOCKS[kind]
    count = int(np.prod(shape)) // block.weights
    blocks = rng.integers(0, 256, (count, block.bytes), dtype=np.uint8)
    unit, minimum = _SPREAD[kind]
    scales = (deviation / unit * rng.uniform(0.5, 1.5, (count, 1))).astype("<f2")
    at = block.bytes - 2 if kind == WeightType.Q6_K else 0
    blocks[:, at : at + 2] = scales.view(np.uint8)
    if minimum:
        blocks[:, 2:4] = (scales * np.float16(minimum)).astype("<f2").view(np.uint8)
    return blocks.reshape(-1)


def gguf_bytes(
    metadata: Mapping[str, Any], tensors: Mapping[str, Matrix], *, version: int = 3, alignment: int = 32
) -> bytes:
    """A GGUF file of these entries, in their order."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    head += b"".join(_string(key) + _value(value) for key, value in metadata.items())
    body = b""
    for name, (kind, shape, data) in tensors.items():
        sizes = struct.pack(f"<{len(shape)}Q", *reversed(shape))
        head += _string(name) + struct.pack("<I", len(shape)) + sizes + struct.pack("<IQ", kind, len(body))
        body += data + bytes(-len(data) % alignment)
    return head + bytes(-len(head) % alignment) + body


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: Any) -> bytes:
    if isinstance(value, Raw):
        return struct.pack("<I", value.kind) + value.data
    kind, data = _encoded(value)
    return struct.pack("<I", kind) + data


def _encoded(value: Any) -> tuple[int, bytes]:
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return (4, struct.pack("<I", value)) if value >= 0 else (5, struct.pack("<i", value))
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, _string(value)
    items = [(5, struct.pack("<i", v)) if type(v) is int else _encoded(v) for v in value]
    kind = items[0][0] if items else 5
    return 9, struct.pack("<IQ", kind, len(items)) + b"".join(data for _, data in items)
