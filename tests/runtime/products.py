"""What products of packed weights are defined to be, in NumPy: exact integers in a group, one order of floats between.

Integer weights come from the `gguf` package's dequantiser, run on the same bytes with a scale of one and a minimum of
zero (or the reverse), so nothing of the packed layout is repeated here.
"""

from __future__ import annotations

from dataclasses import dataclass

import gguf
import numpy as np
from gguf import quants
from numpy.typing import NDArray

from tests.runtime.emulated import fma

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

FLOATS = ("F32", "F16", "BF16")
GROUP_32 = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
GROUP_256 = ("Q4_K", "Q5_K", "Q6_K")
QUANTIZED = GROUP_32 + GROUP_256
TYPES = FLOATS + QUANTIZED
MINIMUMS = ("Q4_1", "Q5_1", "Q4_K", "Q5_K")


def number(name: str) -> int:
    return int(gguf.GGMLQuantizationType[name])


def group(name: str) -> int:
    return gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][0]


def block_bytes(name: str) -> int:
    return gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][1]


def scale_field(name: str) -> slice:
    return slice(208, 210) if name == "Q6_K" else slice(0, 2)


@dataclass(frozen=True)
class File:
    """The bytes of one weight as a file holds them, [rows, groups, bytes of a block]."""

    name: str
    blocks: Bytes

    @property
    def rows(self) -> int:
        return self.blocks.shape[0]

    @property
    def cols(self) -> int:
        return self.blocks.shape[1] * group(self.name)

    @property
    def flat(self) -> Bytes:
        return np.ascontiguousarray(self.blocks).reshape(-1)

    def values(self) -> Floats:
        """Dequantised, [rows, cols]."""
        data = np.ascontiguousarray(self.blocks).reshape(self.rows, -1)
        return quants.dequantize(data, gguf.GGMLQuantizationType[self.name]).reshape(self.rows, self.cols)

    def halves(self, field: slice) -> Floats:
        """A header field of every block, [rows, groups]."""
        return np.ascontiguousarray(self.blocks[..., field]).view(np.float16)[..., 0].astype(np.float32)

    def integers(self, scale: float, minimum: float) -> NDArray[np.int64]:
        """The values if every block had this scale and minimum: whole numbers, [rows, groups, group]."""
        blocks = self.blocks.copy()
        blocks[..., scale_field(self.name)] = np.frombuffer(np.float16(scale).tobytes(), np.uint8)
        if self.name in MINIMUMS:
            blocks[..., 2:4] = np.frombuffer(np.float16(minimum).tobytes(), np.uint8)
        whole = File(self.name, blocks).values().reshape(self.rows, -1, group(self.name))
        return np.rint(whole).astype(np.int64)


def random_file(name: str, rows: int, cols: int, seed: int = 0, fill: int | None = None) -> File:
    """Any codes and sub-block scales (or the byte `fill` everywhere) under sensible float scales."""
    rng = np.random.default_rng(seed)
    shape = (rows, cols // group(name), block_bytes(name))
    blocks = rng.integers(0, 256, shape, dtype=np.uint8) if fill is None else np.full(shape, fill, np.uint8)
    normal = rng.normal(scale=0.02, size=(*shape[:2], 2)).astype(np.float32)
    if name in FLOATS:
        blocks = normal[..., :1].view(np.uint8) if name != "F16" else normal[..., :1].astype(np.float16).view(np.uint8)
        return File(name, blocks[..., -block_bytes(name) :])
    blocks[..., scale_field(name)] = normal[..., :1].astype(np.float16).view(np.uint8)
    if name in MINIMUMS:
        blocks[..., 2:4] = normal[..., 1:].astype(np.float16).view(np.uint8)
    return File(name, blocks)


def quantized(x: Floats, width: int) -> tuple[NDArray[np.int64], Floats]:
    """Codes [M, groups, width] and scales [M, groups] of finite activations."""
    grouped = x.reshape(len(x), -1, width)
    most = np.abs(grouped).max(axis=2)
    zero = most < np.float32(1e-30)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inverse = np.float32(127) / most
        codes = np.rint(grouped * inverse[..., None])
    codes = np.where(zero[..., None], 0, codes).astype(np.int64)
    return codes, np.where(zero, np.float32(0), most / np.float32(127))


def of_floats(weights: Floats, x: Floats) -> Floats:
    out = np.zeros((len(x), len(weights)), np.float32)
    for k in range(x.shape[1]):
        out = fma(weights[None, :, k], x[:, k, None], out)
    return out


def product(file: File, x: Floats) -> Floats:
    """x [M, cols] times the weight: [M, rows], rounded as every kernel path must round it."""
    if file.name in FLOATS:
        return of_floats(file.values(), x)
    codes, scales = quantized(x, group(file.name))
    sums = np.einsum("mgk,ngk->gmn", codes, file.integers(1, 0)).astype(np.float32)
    d = file.halves(scale_field(file.name))
    lows, low = np.zeros_like(sums), np.zeros_like(d)
    if file.name in MINIMUMS:
        low = file.halves(slice(2, 4))
        lows = np.einsum("mgk,ngk->gmn", codes, file.integers(0, 1)).astype(np.float32)
    combine = combine_32 if file.name in GROUP_32 else combine_256
    out = np.zeros(sums.shape[1:], np.float32)
    for g in range(len(sums)):
        code_sums = codes[:, g].sum(axis=1).astype(np.float32)[:, None]
        out = combine(file.name, out, sums[g], lows[g], d[None, :, g], low[None, :, g], scales[:, g, None], code_sums)
    return out


def combine_32(
    name: str, out: Floats, total: Floats, _lows: Floats, d: Floats, low: Floats, scale: Floats, code_sums: Floats
) -> Floats:
    out = fma(total, d * scale, out)
    return fma(low, scale * code_sums, out) if name in MINIMUMS else out


def combine_256(
    name: str, out: Floats, total: Floats, lows: Floats, d: Floats, low: Floats, scale: Floats, _code_sums: Floats
) -> Floats:
    """`lows` is minus the sum of minimums times codes: ggml subtracts the minimums of the K types."""
    inner = fma(total, d, lows * low) if name in MINIMUMS else total * d
    return fma(inner, scale, out)


def activations(rows: int, cols: int, seed: int = 0) -> Floats:
    """Ordinary numbers with a few large ones, as layers produce them."""
    rng = np.random.default_rng(1000 + seed)
    x = rng.normal(size=(rows, cols))
    x[rng.random(x.shape) < 0.01] *= 30
    return x.astype(np.float32)


def same_bits(a: Floats, b: Floats) -> bool:
    return a.shape == b.shape and np.array_equal(a.view(np.uint32), b.view(np.uint32))
