"""Stored blocks to plain numbers, in numpy: what every kernel's unpacking is compared with.

Each weight is `scale * code` or `scale * code ± minimum`, with at most one rounding: products of a 16-bit scale with
small integers are exact even in float32.  This file knows block layouts and nothing of matrices' roles.

Layouts: ggml's `block_q4_0` … `block_q6_K` (ggml/src/ggml-common.h) and their `dequantize_row_*` (ggml-quants.c).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twostroke.runtime.weights.formats import BLOCKS, WeightType
from twostroke.runtime.weights.gguf import Tensor

Bytes = NDArray[np.uint8]
Codes = NDArray[np.integer[Any]]
Floats = NDArray[Any]  # of the float type asked for
Real = type[np.float32] | type[np.float64]
Split = tuple[Bytes, ...]


def dequantize(tensor: Tensor, dtype: Real = np.float32) -> Floats:
    """All weights of `tensor`, in its shape; rounded once to `dtype` (float32 equals ggml bit for bit)."""
    return dequantize_rows(tensor, 0, tensor.shape[0] if len(tensor.shape) > 1 else 1, dtype).reshape(tensor.shape)


def dequantize_rows(tensor: Tensor, first: int, last: int, dtype: Real = np.float32) -> Floats:
    """Rows first…last of a matrix (a vector is one row), at least one of them, shape [last - first, cols]."""
    block = BLOCKS[tensor.type]
    row_bytes = tensor.shape[-1] // block.weights * block.bytes
    blocks = tensor.data[first * row_bytes : last * row_bytes].reshape(-1, block.bytes)
    return _DECODERS[tensor.type](blocks, dtype).reshape(last - first, tensor.shape[-1])


def _split(blocks: Bytes, *sizes: int) -> Split:
    """The fields of every block: [blocks, size] for each size, and the rest."""
    return tuple(np.split(blocks, np.cumsum(sizes), axis=1))


def _half(field: Bytes, dtype: Real) -> Floats:
    """A float16 per block, [blocks, 1]."""
    return np.ascontiguousarray(field).view("<f2").astype(dtype)


def _nibbles(field: Bytes, group: int) -> Codes:
    """4-bit codes, [blocks, codes]: of every `group` bytes all low halves come first, then all high ones."""
    grouped = field.reshape(len(field), -1, group)
    return np.stack([grouped & 0x0F, grouped >> 4], axis=2).reshape(len(field), -1)


def _bits(field: Bytes) -> Codes:
    """Single bits, [blocks, 8 * bytes], lowest first."""
    return np.unpackbits(np.ascontiguousarray(field), axis=1, bitorder="little")


def _stored(code: str) -> Callable[[Bytes, Real], Floats]:
    return lambda blocks, dtype: np.ascontiguousarray(blocks).view(code).astype(dtype)


def _bf16(blocks: Bytes, dtype: Real) -> Floats:
    high = np.ascontiguousarray(blocks).view("<u2").astype(np.uint32) << 16
    return high.view(np.float32).astype(dtype)


def _q8_0(blocks: Bytes, dtype: Real) -> Floats:
    scale, codes = _split(blocks, 2)
    weights: Floats = _half(scale, dtype) * np.ascontiguousarray(codes).view(np.int8).astype(dtype)
    return weights


def _q4_0(blocks: Bytes, dtype: Real) -> Floats:
    scale, codes = _split(blocks, 2)
    weights: Floats = _half(scale, dtype) * (_nibbles(codes, 16).astype(dtype) - 8)
    return weights


def _q4_1(blocks: Bytes, dtype: Real) -> Floats:
    scale, minimum, codes = _split(blocks, 2, 2)
    weights: Floats = _half(scale, dtype) * _nibbles(codes, 16).astype(dtype) + _half(minimum, dtype)
    return weights


def _q5_0(blocks: Bytes, dtype: Real) -> Floats:
    scale, fifth, codes = _split(blocks, 2, 4)
    weights: Floats = _half(scale, dtype) * ((_nibbles(codes, 16) | _bits(fifth) << 4).astype(dtype) - 16)
    return weights


def _q5_1(blocks: Bytes, dtype: Real) -> Floats:
    scale, minimum, fifth, codes = _split(blocks, 2, 2, 4)
    whole = (_nibbles(codes, 16) | _bits(fifth) << 4).astype(dtype)
    weights: Floats = _half(scale, dtype) * whole + _half(minimum, dtype)
    return weights


def _sub_scales(packed: Bytes) -> Split:
    """Eight 6-bit scales and eight 6-bit minimums from 12 bytes, [blocks, 8, 1] each."""
    low, middle, high = _split(packed, 4, 4)
    scales = np.concatenate([low & 63, high & 0x0F | low >> 6 << 4], axis=1)
    minimums = np.concatenate([middle & 63, high >> 4 | middle >> 6 << 4], axis=1)
    return scales[..., None], minimums[..., None]


def _scale_sub_blocks(header: Split, codes: Codes, dtype: Real) -> Floats:
    """d * scale * code - dmin * minimum over sub-blocks of 32."""
    d, dmin, packed = header
    scales, minimums = _sub_scales(packed)
    scaled = _half(d, dtype)[..., None] * scales.astype(dtype) * codes.reshape(-1, 8, 32).astype(dtype)
    weights: Floats = (scaled - _half(dmin, dtype)[..., None] * minimums.astype(dtype)).reshape(-1, 256)
    return weights


def _q4_k(blocks: Bytes, dtype: Real) -> Floats:
    *header, codes = _split(blocks, 2, 2, 12)
    return _scale_sub_blocks(tuple(header), _nibbles(codes, 32), dtype)


def _q5_k(blocks: Bytes, dtype: Real) -> Floats:
    *header, fifth, codes = _split(blocks, 2, 2, 12, 32)
    fifths = _bits(fifth).reshape(-1, 32, 8).transpose(0, 2, 1).reshape(-1, 256)  # bit j of byte i is of code 32 j + i
    return _scale_sub_blocks(tuple(header), _nibbles(codes, 32) | fifths << 4, dtype)


def _q6_k(blocks: Bytes, dtype: Real) -> Floats:
    low, high, scales, d = _split(blocks, 128, 64, 16)
    shifts = np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    pairs = (high.reshape(-1, 2, 1, 32) >> shifts & 3).reshape(-1, 256)
    codes = (_nibbles(low, 64) | pairs << 4).astype(dtype) - 32
    steps = _half(d, dtype) * np.ascontiguousarray(scales).view(np.int8).astype(dtype)
    weights: Floats = (steps[..., None] * codes.reshape(-1, 16, 16)).reshape(-1, 256)
    return weights


_DECODERS: Mapping[WeightType, Callable[[Bytes, Real], Floats]] = {
    WeightType.F32: _stored("<f4"),
    WeightType.F16: _stored("<f2"),
    WeightType.BF16: _bf16,
    WeightType.Q4_0: _q4_0,
    WeightType.Q4_1: _q4_1,
    WeightType.Q5_0: _q5_0,
    WeightType.Q5_1: _q5_1,
    WeightType.Q8_0: _q8_0,
    WeightType.Q4_K: _q4_k,
    WeightType.Q5_K: _q5_k,
    WeightType.Q6_K: _q6_k,
}
