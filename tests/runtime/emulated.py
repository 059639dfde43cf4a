"""Float32 arithmetic as the kernels define it, in NumPy: fused multiply-add, exp, log and the fixed reductions.

Everything here rounds exactly as csrc/lanes.h and csrc/math.h prescribe, so tests can ask for equal bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float32]
F = np.float32


def fma(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> Floats:
    """a * b + c, rounded once.

    The product of two floats is exact in double precision.  The sum may not be: it is first rounded to odd, after which
    rounding it to a float gives the correctly rounded result (Boldo and Melquiond 2008).
    """
    product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
    addend = np.asarray(c, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        total = product + addend
        back = total - product
        error = (product - (total - back)) + (addend - back)
        inexact = np.isfinite(total) & (error != 0)
        even = (total.view(np.int64) & 1) == 0
        toward = np.where(error > 0, np.inf, -np.inf)
        odd = np.where(inexact & even, np.nextafter(total, toward), total)
        return np.asarray(odd, dtype=np.float32)


def chain(p: Floats, r: Floats, coefficients: list[float]) -> Floats:
    for coefficient in coefficients:
        p = fma(p, r, F(coefficient))
    return p


def exp(x: ArrayLike) -> Floats:
    x = np.asarray(x, np.float32)
    magic = F(float.fromhex("0x1.8p23"))
    with np.errstate(invalid="ignore", over="ignore"):
        shifted = fma(x, F(1.44269504088896341), magic)
        n = shifted - magic
        r = fma(n, F(2.12194440e-4), fma(n, F(-0.693359375), x))
        p = np.full_like(r, F(1.9875691500e-4))
        p = chain(p, r, [1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1])
        p = fma(p, r * r, r) + F(1)
        power = (shifted.view(np.int32) - magic.view(np.int32) + np.int32(126)) << np.int32(23)
        y = p * power.view(np.float32) * F(2)
    y = np.where(x < F(-86.5), F(0), y)
    return np.where(x > F(88.722), F(np.inf), y).astype(np.float32)


def log_parts(f: Floats, e: Floats) -> Floats:
    z = f * f
    p = np.full_like(f, F(7.0376836292e-2))
    p = chain(p, f, [-1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1])
    p = chain(p, f, [-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1])
    y = (p * f) * z
    y = fma(e, F(-2.12194440e-4), y)
    y = fma(z, F(-0.5), y)
    return fma(e, F(0.693359375), f + y)


def split(x: Floats) -> tuple[Floats, Floats]:
    """(m, e) with x = m * 2^e and m in [sqrt(1/2), sqrt(2))."""
    root_half = np.int32(0x3F3504F3)
    offset = x.view(np.int32) - root_half
    exponent = offset >> np.int32(23)
    m = ((offset & np.int32(0x7FFFFF)) + root_half).view(np.float32)
    return m, exponent.astype(np.float32)


def log(x: ArrayLike) -> Floats:
    m, e = split(np.asarray(x, np.float32))
    return log_parts(m - F(1), e)


def lane_blocks(x: Floats) -> Floats:
    """The last axis as [blocks, 16], padded with zeros."""
    pad = -x.shape[-1] % 16
    padded = np.concatenate([x, np.zeros((*x.shape[:-1], pad), np.float32)], axis=-1)
    return padded.reshape(*x.shape[:-1], -1, 16)


def tree_sum(lanes: Floats) -> Floats:
    half = lanes.shape[-1] // 2
    while half:
        lanes = lanes[..., :half] + lanes[..., half : 2 * half]
        half //= 2
    return lanes[..., 0]


def lane_sum(x: Floats) -> Floats:
    """Sum of the last axis by 16 lanes, block after block, then the tree."""
    blocks = lane_blocks(x)
    total = np.zeros((*x.shape[:-1], 16), np.float32)
    for i in range(blocks.shape[-2]):
        total = total + blocks[..., i, :]
    return tree_sum(total)


def rms_norm(x: Floats, gain: Floats, eps: float) -> Floats:
    blocks = lane_blocks(x)
    squares = np.zeros((*x.shape[:-1], 16), np.float32)
    for i in range(blocks.shape[-2]):
        squares = fma(blocks[..., i, :], blocks[..., i, :], squares)
    mean = tree_sum(squares) / F(x.shape[-1])
    out: Floats = (x * (F(1) / np.sqrt(mean + F(eps)))[..., None]) * gain
    return out


def silu_mul(gate: Floats, up: Floats) -> Floats:
    out: Floats = gate / (F(1) + exp(F(0) - gate)) * up
    return out


def rotate(x: Floats, cos: Floats, sin: Floats, pairing: str) -> Floats:
    """Heads [..., d] rotated by tables [half]."""
    half = cos.shape[-1]
    a = slice(0, 2 * half, 2) if pairing == "norm" else slice(0, half)
    b = slice(1, 2 * half, 2) if pairing == "norm" else slice(half, 2 * half)
    out = x.copy()
    out[..., a] = fma(x[..., a], cos, -(x[..., b] * sin))
    out[..., b] = fma(x[..., a], sin, x[..., b] * cos)
    return out


def codes(x: Floats, each: int, together: float = np.inf) -> tuple[NDArray[np.int32], Floats]:
    """Vectors [..., d] as integers and their steps; bounds of a magnitude, and of all together before rounding."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        total = lane_sum(np.abs(x))
        wrong = ~np.isfinite(total)
        top = np.where(wrong, F(0), np.abs(x).max(axis=-1)).astype(np.float32)
        tiny = top < F(1e-30)
        by_top, by_total = F(each) / np.where(tiny, F(1), top), F(together) / np.where(tiny, F(1), total)
        bound = by_total < by_top
        inverse = np.where(bound, by_total, by_top)
        magic = F(float.fromhex("0x1.8p23"))
        rounded = fma(x, inverse[..., None], magic).view(np.int32) - magic.view(np.int32)
        step = np.where(bound, total / F(together), top / F(each))
    step = np.where(wrong, F(np.nan), np.where(tiny, F(0), step)).astype(np.float32)
    return np.where((wrong | tiny)[..., None], 0, rounded), step


@dataclass(frozen=True)
class Cells:
    """How a KV type rounds what it stores and what meets it."""

    largest: int
    each: int
    together: float = np.inf

    def stored(self, x: Floats) -> tuple[NDArray[np.int32], Floats]:
        """Codes and scales of keys or values, one scale per vector [..., d]."""
        return codes(x, self.largest)

    def kept(self, x: Floats) -> Floats:
        """Keys or values as a store gives them back."""
        rounded, scale = self.stored(x)
        return np.asarray(rounded.astype(np.float32) * scale[..., None])

    def meeting(self, x: Floats) -> tuple[NDArray[np.int32], Floats]:
        """Queries [..., d], or weights of the keys of a chunk [..., n], as integers."""
        return codes(x, self.each, self.together)


CELLS = {"q16": Cells(8191, 32767, 261631), "q8": Cells(127, 16383)}


def attention(query: Floats, keys: Floats, values: Floats, kind: str = "q16") -> Floats:
    """One row's attention: query [heads, d], already scaled, over unrounded keys and values [heads, n, d]."""
    cells = CELLS[kind]
    scores = scored(cells, query, keys)
    merged: tuple[Floats, Floats, Floats] | None = None
    for start in range(0, keys.shape[1], 256):
        part = slice(start, start + 256)
        maximum, weights = softened(scores[:, part])
        chunk = maximum, lane_sum(weights), spent(cells, weights, values[:, part])
        merged = chunk if merged is None else merge(merged, chunk)
    assert merged is not None
    return merged[2] / merged[1][:, None]


def softened(scores: Floats) -> tuple[Floats, Floats]:
    maximum = scores.max(axis=-1)
    return maximum, exp(scores - maximum[:, None])


def scored(cells: Cells, query: Floats, keys: Floats) -> Floats:
    (q, step), (k, scale) = cells.meeting(query), cells.stored(keys)
    return exact_dots("hd,hnd->hn", q, k).astype(np.float32) * scale * step[:, None]


def spent(cells: Cells, weights: Floats, values: Floats) -> Floats:
    v, scale = cells.stored(values)
    w, step = cells.meeting(weights * scale)
    return exact_dots("hn,hnd->hd", w, v).astype(np.float32) * step[:, None]


def exact_dots(axes: str, a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.int64]:
    """Sums of products that 32 bits hold in any order."""
    assert np.einsum(axes, np.abs(a), np.abs(b), dtype=np.int64).max() < 2**31
    return np.asarray(np.einsum(axes, a, b, dtype=np.int64))


def merge(done: tuple[Floats, Floats, Floats], chunk: tuple[Floats, Floats, Floats]) -> tuple[Floats, Floats, Floats]:
    top = np.maximum(done[0], chunk[0])
    before, now = exp(done[0] - top), exp(chunk[0] - top)
    total = fma(chunk[1], now, done[1] * before)
    return top, total, fma(chunk[2], now[:, None], done[2] * before[:, None])


def philox(counter: NDArray[np.uint32], position: int, choice: int, seed: int) -> list[NDArray[np.uint32]]:
    """Philox4x32-10 at (counter, position, choice, domain) under the 64-bit key `seed`: four words per counter."""
    a, b, c, d = (np.broadcast_to(np.uint64(w), counter.shape) for w in (0, position, choice, 0x6E6F6973))
    a = counter.astype(np.uint64)
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        x, y = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b = (y >> shift) ^ b ^ np.uint64(k0), y & low
        c, d = (x >> shift) ^ d ^ np.uint64(k1), x & low
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [w.astype(np.uint32) for w in (a, b, c, d)]


def unit(w: NDArray[np.uint32]) -> Floats:
    high, low = (w >> np.uint32(16)).astype(np.float32), (w & np.uint32(0xFFFF)).astype(np.float32)
    out: Floats = fma(high, F(65536), low + F(0.5)) * F(2.0**-32)
    return out


def gumbel(seed: int, choice: int, position: int, ids: NDArray[Any]) -> Floats:
    words = np.stack(philox((ids // 64 * 16 + ids % 16).astype(np.uint32), position, choice, seed))
    w = words[ids // 16 % 4, np.arange(len(ids))]
    u, rest = unit(w), unit(~w)
    m, e = split(u)
    f = np.where(u < np.int32(0x3F3504F3).view(np.float32), m - F(1), -rest).astype(np.float32)
    return F(0) - log(F(0) - log_parts(f, e))


@dataclass(frozen=True)
class Choice:
    """How one row is sampled."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    choice: int = 0
    position: int = 0


def sample(logits: Floats, how: Choice) -> int:
    """The token of one row, by sorting everything."""
    logits = np.where(np.isnan(logits), F(-np.inf), logits)
    temperature, top = F(how.temperature), logits.max()
    if temperature < F(1e-5) or not np.isfinite(top):
        return int(logits.argmax())
    order = np.lexsort((np.arange(len(logits)), -logits))
    order = order[np.isfinite(logits[order])]
    if 0 < how.top_k < len(logits):
        order = order[: how.top_k]
    weights = exp(logits[order] / temperature - top / temperature)
    if how.top_p < 1:
        mass = (weights * F(2.0**40)).astype(np.int64).cumsum()
        target = np.ceil(np.float64(F(how.top_p)) * np.float64(mass[-1]))
        keep = max(1, int(np.searchsorted(mass, target)) + 1)
        order, weights = order[:keep], weights[:keep]
    order = np.sort(order[weights >= F(how.min_p)])
    scores = logits[order] / temperature + gumbel(how.seed, how.choice, how.position, order)
    return int(order[scores.argmax()])
