"""What kind of decoder a model file holds, read from its metadata and proved against its tensors.

One config drives one decoder: RMSNorm, rotary positions, grouped-query attention and SwiGLU, with the switches that
tell llama, qwen2 and qwen3 apart.  A feature the decoder lacks is refused by name, never ignored.  After `from_file`
returns, every tensor of the config exists with the shape it must have.

Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from twostroke.errors import Corrupt, UnsupportedArchitecture
from twostroke.runtime.models.tensors import OPTIONAL_TENSORS, ROPE_FACTORS, expected_shapes
from twostroke.runtime.weights.dequantize import dequantize
from twostroke.runtime.weights.gguf import REMEDY, ModelFile, Value

Pairing = Literal["interleaved", "half"]


@dataclass(frozen=True, slots=True)
class Architecture:
    """How the families differ."""

    pairing: Pairing  # which two numbers of a head rotate together: (2i, 2i+1) or (i, i + dims/2)
    qkv_bias: bool | None  # None: as the file has it
    qk_norm: bool


ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": Architecture("interleaved", qkv_bias=None, qk_norm=False),
    "qwen2": Architecture("half", qkv_bias=True, qk_norm=False),
    "qwen3": Architecture("half", qkv_bias=None, qk_norm=True),
}


@dataclass(frozen=True, slots=True)
class Scaling:
    """How rotary frequencies are stretched beyond the context they were trained on."""

    kind: Literal["none", "linear", "yarn"] = "none"
    factor: float = 1.0
    original_context: int = 0  # positions; yarn only
    attention_factor: float = 1.0  # yarn: multiplies cos and sin, beside yarn's own 1 + 0.1 ln(factor)
    beta_fast: float = 32.0
    beta_slow: float = 1.0


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary positions of a head's first `dims` numbers."""

    base: float
    dims: int
    pairing: Pairing
    scaling: Scaling = Scaling()
    factors: tuple[float, ...] = ()  # divides each of the dims/2 frequencies (llama 3); empty: none


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The sizes and switches of one decoder.  Counts are numbers of floats unless they say otherwise."""

    architecture: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int  # rows of the token table
    context: int  # positions the model was trained for
    norm_epsilon: float
    rope: Rope
    tied: bool  # the token table is also the output matrix
    qkv_bias: bool
    qk_norm: bool


class _Metadata:
    """Typed reading of one architecture's keys; the first wrong one raises `Corrupt`."""

    def __init__(self, file: ModelFile, architecture: str) -> None:
        self._file = file
        self._architecture = architecture

    def _get(self, key: str) -> tuple[str, Value | None]:
        full = f"{self._architecture}.{key}"
        return full, self._file.metadata.get(full)

    def count(self, key: str, default: int | None = None) -> int:
        """A positive whole number."""
        full, value = self._get(key)
        if value is None and default is not None:
            return default
        if isinstance(value, list):
            raise _unsupported(self._file, f"{full!r} differs by layer")
        if type(value) is not int or not 0 < value < 2**31:
            raise _corrupt(self._file, f"{full!r} is {value!r}, not a positive whole number")
        return value

    def real(self, key: str, default: float | None = None) -> float:
        """A positive number of a size that arithmetic bears."""
        full, value = self._get(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 1e-30 <= value <= 1e30:
            raise _corrupt(self._file, f"{full!r} is {value!r}, not a positive number from 1e-30 to 1e30")
        return float(value)

    def raw(self, key: str) -> Value | None:
        return self._get(key)[1]


def from_file(file: ModelFile) -> ModelConfig:
    """The config of `file`, whose tensors are checked against it.

    Raises `UnsupportedArchitecture` for a family or feature the decoder lacks and `Corrupt` where metadata is missing
    or contradicts the tensors.
    """
    name = file.metadata.get("general.architecture")
    if not isinstance(name, str):
        raise _corrupt(file, f"'general.architecture' is {name!r}, not a name")
    if name not in ARCHITECTURES:
        raise UnsupportedArchitecture(
            f"{file.path}: architecture {name!r} is not supported; choose a model of one of {', '.join(ARCHITECTURES)}"
        )
    metadata = _Metadata(file, name)
    _refuse_features(file, metadata)
    config = _config(file, name, metadata)
    _check_tensors(file, config)
    return config


def _config(file: ModelFile, name: str, metadata: _Metadata) -> ModelConfig:
    family = ARCHITECTURES[name]
    width, heads = metadata.count("embedding_length"), metadata.count("attention.head_count")
    kv_heads = metadata.count("attention.head_count_kv", heads)
    head_dim = metadata.count("attention.key_length", width // heads or None)
    if heads % kv_heads:
        raise _corrupt(file, f"{heads} query heads do not divide among {kv_heads} key/value heads")
    value_dim = metadata.count("attention.value_length", head_dim)
    if value_dim != head_dim:
        raise _unsupported(file, f"a head whose values are {value_dim} wide and keys {head_dim}")
    biased = "blk.0.attn_q.bias" in file.tensors if family.qkv_bias is None else family.qkv_bias
    context = metadata.count("context_length")
    return ModelConfig(
        architecture=name,
        layers=metadata.count("block_count"),
        width=width,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffn=metadata.count("feed_forward_length"),
        vocab=_vocabulary(file, metadata),
        context=context,
        norm_epsilon=metadata.real("attention.layer_norm_rms_epsilon"),
        rope=_rope(file, metadata, family.pairing, head_dim, context),
        tied="output.weight" not in file.tensors,
        qkv_bias=biased,
        qk_norm=family.qk_norm,
    )


def _vocabulary(file: ModelFile, metadata: _Metadata) -> int:
    """The number of rows of the token table; what else states it must agree."""
    table = file.tensors.get("token_embd.weight")
    if table is None:
        raise _corrupt(file, "tensor 'token_embd.weight' is missing")
    rows = table.shape[0]
    tokens = file.metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, list) and len(tokens) != rows:
        raise _corrupt(file, f"the vocabulary has {len(tokens)} tokens, 'token_embd.weight' {rows} rows")
    if metadata.count("vocab_size", rows) != rows:
        raise _corrupt(file, f"'vocab_size' is {metadata.raw('vocab_size')}, 'token_embd.weight' has {rows} rows")
    return rows


def _rope(file: ModelFile, metadata: _Metadata, pairing: Pairing, head_dim: int, context: int) -> Rope:
    dims = metadata.count("rope.dimension_count", head_dim)
    if dims > head_dim or dims % 2:
        raise _corrupt(file, f"{dims} rotary dimensions in heads of {head_dim}; it must be even and not more")
    base = metadata.real("rope.freq_base", 10_000.0)
    if base <= 1.0:
        raise _corrupt(file, f"the rotary base is {base}, it must be above 1")
    return Rope(
        base=base,
        dims=dims,
        pairing=pairing,
        scaling=_scaling(file, metadata, context),
        factors=_factors(file, dims),
    )


def _scaling(file: ModelFile, metadata: _Metadata, context: int) -> Scaling:
    factor = metadata.real("rope.scaling.factor", metadata.real("rope.scale_linear", 1.0))
    kind = metadata.raw("rope.scaling.type")
    if kind is None:
        kind = "none" if factor == 1.0 else "linear"
    if kind == "none":
        return Scaling()
    if kind == "linear":
        return Scaling("linear", factor)
    if kind != "yarn":
        raise _unsupported(file, f"rotary scaling of type {kind!r}")
    return Scaling(
        kind="yarn",
        factor=factor,
        original_context=metadata.count("rope.scaling.original_context_length", context),
        attention_factor=metadata.real("rope.scaling.attn_factor", 1.0),
        beta_fast=metadata.real("rope.scaling.yarn_beta_fast", 32.0),
        beta_slow=metadata.real("rope.scaling.yarn_beta_slow", 1.0),
    )


def _factors(file: ModelFile, dims: int) -> tuple[float, ...]:
    tensor = file.tensors.get(ROPE_FACTORS)
    if tensor is None:
        return ()
    if tensor.shape != (dims // 2,):
        raise _corrupt(file, f"tensor {ROPE_FACTORS!r} has shape {tensor.shape}, not {(dims // 2,)}")
    factors = dequantize(tensor, np.float64)
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise _corrupt(file, f"tensor {ROPE_FACTORS!r} holds values that are not positive numbers")
    return tuple(factors.tolist())


def _refuse_features(file: ModelFile, metadata: _Metadata) -> None:
    """Metadata that would change the result in a way the decoder does not know."""
    for key, absent in _ABSENT_WHEN.items():
        value = metadata.raw(key)
        if value is not None and value not in absent:
            raise _unsupported(file, f"metadata {key!r} = {value!r}")
    window = metadata.raw("attention.sliding_window")
    if type(window) is int and 0 < window < metadata.count("context_length"):
        raise _unsupported(file, f"attention in a sliding window of {window} positions")
    parts = file.metadata.get("split.count", 1)
    if parts not in (0, 1):
        raise UnsupportedArchitecture(
            f"{file.path}: it is one of {parts!r} parts of a model; merge them (`llama-gguf-split --merge`)"
        )


# Features by key, with the values that mean "not used".
_ABSENT_WHEN: Mapping[str, tuple[Value, ...]] = {
    "expert_count": (0,),
    "expert_used_count": (0,),
    "attention.causal": (True,),
    "attention.clamp_kqv": (0.0,),
    "attention.max_alibi_bias": (0.0,),
    "attention.scale": (0.0,),
    "attn_logit_softcapping": (0.0,),
    "final_logit_softcapping": (0.0,),
    "logit_scale": (0.0, 1.0),
    "embedding_scale": (0.0, 1.0),
    "residual_scale": (0.0, 1.0),
    "use_parallel_residual": (False,),
    "tensor_data_layout": ("", "Meta AI original pth", "reference"),
    "rope.scaling.yarn_log_multiplier": (0.0,),
    "rope.scaling.yarn_ext_factor": (-1.0, 1.0),
    "rope.scaling.yarn_attn_factor": (-1.0, 1.0),
}


def _check_tensors(file: ModelFile, config: ModelConfig) -> None:
    """Every tensor of the decoder is there in its shape, and no other one is."""
    if config.layers > len(file.tensors):
        raise _corrupt(file, f"{config.layers} layers are announced, the file has {len(file.tensors)} tensors")
    expected = expected_shapes(config)
    for name, shape in expected.items():
        tensor = file.tensors.get(name)
        if tensor is None:
            raise _corrupt(file, f"tensor {name!r} is missing")
        if tensor.shape != shape:
            raise _corrupt(file, f"tensor {name!r} has shape {tensor.shape}, not {shape}")
    for name in file.tensors:
        if name not in expected and not OPTIONAL_TENSORS.fullmatch(name):
            raise _unsupported(file, f"tensor {name!r}, which a {config.architecture} decoder does not use")


def _corrupt(file: ModelFile, what: str) -> Corrupt:
    return Corrupt(f"{file.path}: {what}; {REMEDY}")


def _unsupported(file: ModelFile, what: str) -> UnsupportedArchitecture:
    return UnsupportedArchitecture(f"{file.path}: {what} is not supported; choose another model or conversion of it")
