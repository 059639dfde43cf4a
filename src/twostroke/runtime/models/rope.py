"""Rotary position tables: the angle of every position and frequency, computed once in float64.

Pair i of a head turns by position * base^(-2i/dims), stretched as the file says.  How the two numbers of a pair are
placed in a head (`Rope.pairing`) is the reader's business, not the table's.

Sources: RoFormer (Su et al. 2021, arXiv 2104.09864, section 3.2.2); YaRN (Peng et al. 2023, arXiv 2309.00071,
sections 3.2 to 3.4); Llama 3's frequency factors as llama.cpp stores them (`rope_freqs.weight`, divisors).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from twostroke.runtime.models.config import ModelConfig, Rope

Table = NDArray[np.float32]


def rope_tables(config: ModelConfig, context: int) -> tuple[Table, Table]:
    """(cos, sin), float32 [context, dims/2], rounded once from float64."""
    rope = config.rope
    angles = np.arange(context, dtype=np.float64)[:, None] * frequencies(rope)
    size = magnitude(rope)
    return (np.cos(angles) * size).astype(np.float32), (np.sin(angles) * size).astype(np.float32)


def frequencies(rope: Rope) -> NDArray[np.float64]:
    """Radians per position of each pair, [dims/2]."""
    plain = rope.base ** (-2.0 * np.arange(rope.dims // 2) / rope.dims)
    if rope.factors:
        plain = plain / np.array(rope.factors)
    scaling = rope.scaling
    if scaling.kind != "yarn":
        return plain / scaling.factor
    keep = _kept(rope)
    return plain / scaling.factor * (1.0 - keep) + plain * keep


def magnitude(rope: Rope) -> float:
    """What cos and sin are multiplied by: yarn's correction of the attention's temperature, else 1."""
    scaling = rope.scaling
    if scaling.kind != "yarn":
        return 1.0
    return scaling.attention_factor * (1.0 + 0.1 * math.log(max(1.0, scaling.factor)))


def _kept(rope: Rope) -> NDArray[np.float64]:
    """yarn's ramp per pair: 1 keeps the trained frequency (fast pairs), 0 divides it by the factor (slow ones)."""
    low = max(0, math.floor(_pair_turning(rope, rope.scaling.beta_fast)))
    high = min(rope.dims - 1, math.ceil(_pair_turning(rope, rope.scaling.beta_slow)))
    ramp = (np.arange(rope.dims // 2) - low) / max(0.001, high - low)
    return 1.0 - np.clip(ramp, 0.0, 1.0)


def _pair_turning(rope: Rope, turns: float) -> float:
    """The (fractional) pair that turns so many times over the original context."""
    return rope.dims * math.log(rope.scaling.original_context / (turns * 2 * math.pi)) / (2 * math.log(rope.base))
