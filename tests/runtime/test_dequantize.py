"""Dequantised weights equal the `gguf` package's bit for bit, and a scalar reading of ggml's block definitions."""

from __future__ import annotations

import gguf as oracle
import numpy as np
import pytest
from gguf import quants
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.tiny import random_weights
from twostroke.runtime.weights.dequantize import dequantize, dequantize_rows
from twostroke.runtime.weights.formats import BLOCKS, WeightType
from twostroke.runtime.weights.gguf import Tensor

KINDS = list(WeightType)


def tensor(kind: WeightType, rows: int, cols: int, data: NDArray[np.uint8]) -> Tensor:
    return Tensor("x", kind, (rows, cols), data)


def theirs(kind: WeightType, rows: int, data: NDArray[np.uint8]) -> NDArray[np.float32]:
    with np.errstate(all="ignore"):
        return quants.dequantize(data.reshape(rows, -1), oracle.GGMLQuantizationType(int(kind)))


def sensible(kind: WeightType, rows: int, cols: int, seed: int = 0) -> Tensor:
    data = random_weights(kind, (rows, cols), 0.05, np.random.default_rng(seed))
    return tensor(kind, rows, cols, data)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 5), blocks=st.integers(1, 3))
def test_any_bytes_equal_the_oracle(kind: WeightType, seed: int, rows: int, blocks: int) -> None:
    block = BLOCKS[kind]
    data = np.random.default_rng(seed).integers(0, 256, rows * blocks * block.bytes, dtype=np.uint8)
    with np.errstate(all="ignore"):
        ours = dequantize(tensor(kind, rows, blocks * block.weights, data))
    assert ours.dtype == np.float32
    assert np.array_equal(ours, theirs(kind, rows, data), equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
def test_float64_differs_from_float32_by_one_rounding(kind: WeightType) -> None:
    x = sensible(kind, 4, 512)
    wide = dequantize(x, np.float64)
    assert wide.dtype == np.float64
    assert np.array_equal(wide.astype(np.float32), dequantize(x))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_the_rows_of_the_whole(kind: WeightType) -> None:
    x = sensible(kind, 7, 512)
    whole = dequantize(x)
    for first, last in ((0, 7), (2, 5), (6, 7)):
        assert np.array_equal(dequantize_rows(x, first, last), whole[first:last])


@pytest.mark.parametrize("kind", [WeightType.F32, WeightType.F16, WeightType.BF16])
def test_vectors_keep_their_shape(kind: WeightType) -> None:
    data = random_weights(kind, (1, 24), 1.0, np.random.default_rng(1))
    assert dequantize(Tensor("v", kind, (24,), data)).shape == (24,)


# --- block by block, by hand: one weight at a time, as ggml-quants.c spells it


def half(raw: NDArray[np.uint8], at: int) -> float:
    return float(raw[at : at + 2].view("<f2")[0])


def by_hand_4_or_5_bits(kind: WeightType, raw: NDArray[np.uint8], j: int) -> float:
    with_minimum, five = kind in (WeightType.Q4_1, WeightType.Q5_1), kind in (WeightType.Q5_0, WeightType.Q5_1)
    at = 4 if with_minimum else 2
    bits = int.from_bytes(raw[at : at + 4].tobytes(), "little") if five else 0
    byte = int(raw[at + 4 * five + j % 16])
    code = (byte & 15 if j < 16 else byte >> 4) | (bits >> j & 1) << 4
    d = half(raw, 0)
    return d * code + half(raw, 2) if with_minimum else d * (code - (16 if five else 8))


def by_hand_k(kind: WeightType, raw: NDArray[np.uint8], j: int) -> float:
    packed, sub = [int(b) for b in raw[4:16]], j // 32
    if sub < 4:
        scale, minimum = packed[sub] & 63, packed[sub + 4] & 63
    else:
        scale = packed[sub + 4] & 15 | packed[sub - 4] >> 6 << 4
        minimum = packed[sub + 4] >> 4 | packed[sub] >> 6 << 4
    codes = 48 if kind == WeightType.Q5_K else 16
    byte = int(raw[codes + 32 * (j // 64) + j % 32])
    code = byte >> 4 if sub % 2 else byte & 15
    if kind == WeightType.Q5_K:
        code |= (int(raw[16 + j % 32]) >> sub & 1) << 4
    return half(raw, 0) * scale * code - half(raw, 2) * minimum


def by_hand_q6_k(raw: NDArray[np.uint8], j: int) -> float:
    part, within = j // 128, j % 128
    quarter, i = within // 32, within % 32
    low = int(raw[64 * part + 32 * (quarter % 2) + i])
    low = low >> 4 if quarter >= 2 else low & 15
    high = int(raw[128 + 32 * part + i]) >> 2 * quarter & 3
    scale = int(raw[192 + j // 16].view(np.int8))
    return half(raw, 208) * scale * ((low | high << 4) - 32)


def by_hand(kind: WeightType, raw: NDArray[np.uint8], j: int) -> float:
    if kind == WeightType.Q8_0:
        return half(raw, 0) * int(raw[2 + j].view(np.int8))
    if kind == WeightType.Q6_K:
        return by_hand_q6_k(raw, j)
    return by_hand_k(kind, raw, j) if kind in (WeightType.Q4_K, WeightType.Q5_K) else by_hand_4_or_5_bits(kind, raw, j)


@pytest.mark.parametrize("kind", [k for k in KINDS if BLOCKS[k].weights > 1])
def test_each_weight_by_hand(kind: WeightType) -> None:
    block = BLOCKS[kind]
    x = sensible(kind, 1, 3 * block.weights, seed=3)
    expected = [by_hand(kind, raw, j) for raw in x.data.reshape(3, -1) for j in range(block.weights)]
    assert dequantize(x, np.float64)[0].tolist() == expected
