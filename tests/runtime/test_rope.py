"""Rotary tables are the published formulas, computed here pair by pair with `math`."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.runtime.models.config import ModelConfig, Rope, Scaling
from twostroke.runtime.models.rope import frequencies, magnitude, rope_tables

PLAIN = Rope(base=10_000.0, dims=64, pairing="half")
YARN = Scaling("yarn", factor=4.0, original_context=4096)


def config(rope: Rope) -> ModelConfig:
    return ModelConfig("qwen2", 1, 256, 4, 2, 64, 512, 300, 1024, 1e-6, rope, True, True, False)


def test_shapes_types_and_position_zero() -> None:
    cos, sin = rope_tables(config(replace(PLAIN, dims=32)), 7)
    assert (cos.shape, sin.shape) == ((7, 16), (7, 16))
    assert (cos.dtype, sin.dtype) == (np.float32, np.float32)
    assert cos[0].tolist() == [1.0] * 16
    assert sin[0].tolist() == [0.0] * 16


@given(
    position=st.integers(0, 40_000),
    pair=st.integers(0, 31),
    base=st.sampled_from([10_000.0, 500_000.0, 1e6]),
    factor=st.sampled_from([1.0, 2.5]),
)
def test_each_angle(position: int, pair: int, base: float, factor: float) -> None:
    rope = replace(PLAIN, base=base, scaling=Scaling("linear", factor))
    angle = position * float(frequencies(rope)[pair])
    assert float(frequencies(rope)[pair]) == pytest.approx(base ** (-pair / 32) / factor, rel=1e-14)
    assert math.hypot(math.cos(angle), math.sin(angle)) == pytest.approx(1.0)


def test_tables_are_float64_rounded_once() -> None:
    cos, sin = rope_tables(config(PLAIN), 33_000)
    angles = 32_999 * frequencies(PLAIN)
    assert np.array_equal(cos[-1], np.cos(angles).astype(np.float32))
    assert np.array_equal(sin[-1], np.sin(angles).astype(np.float32))


def test_a_longer_table_begins_with_the_shorter() -> None:
    for short, long in zip(rope_tables(config(PLAIN), 10), rope_tables(config(PLAIN), 1000), strict=True):
        assert np.array_equal(short, long[:10])


def test_linear_scaling_is_a_slower_position() -> None:
    scaled, _ = rope_tables(config(replace(PLAIN, scaling=Scaling("linear", 4.0))), 41)
    plain, _ = rope_tables(config(PLAIN), 11)
    assert np.array_equal(scaled[::4], plain)


def test_factors_divide_frequencies() -> None:
    factors = tuple(1.0 + i for i in range(32))
    assert np.allclose(frequencies(replace(PLAIN, factors=factors)) * factors, frequencies(PLAIN), rtol=1e-15)


def test_yarn_keeps_fast_pairs_and_divides_slow_ones() -> None:
    ratio = frequencies(replace(PLAIN, scaling=YARN)) / frequencies(PLAIN)
    turns = YARN.original_context * frequencies(PLAIN) / (2 * math.pi)
    assert ratio[turns > 32] == pytest.approx(1.0)
    assert ratio[turns < 0.5] == pytest.approx(0.25)
    assert (np.diff(ratio) <= 1e-15).all()


def test_yarn_between_the_ends() -> None:
    """One pair by hand: dims 64, base 10000, context 4096: the ramp runs from pair 10 to pair 23."""
    low = math.floor(64 * math.log(4096 / (32 * 2 * math.pi)) / (2 * math.log(10_000)))
    high = math.ceil(64 * math.log(4096 / (2 * math.pi)) / (2 * math.log(10_000)))
    assert (low, high) == (10, 23)
    keep = 1 - (15 - low) / (high - low)
    plain = 10_000.0 ** (-15 / 32)
    expected = plain / 4 * (1 - keep) + plain * keep
    assert frequencies(replace(PLAIN, scaling=YARN))[15] == pytest.approx(expected, rel=1e-14)


def test_yarn_magnitude() -> None:
    assert magnitude(PLAIN) == 1.0
    assert magnitude(replace(PLAIN, scaling=YARN)) == pytest.approx(1 + 0.1 * math.log(4))
    assert magnitude(replace(PLAIN, scaling=replace(YARN, attention_factor=0.5))) == pytest.approx(
        0.5 * (1 + 0.1 * math.log(4))
    )
    cos, _ = rope_tables(config(replace(PLAIN, scaling=YARN)), 1)
    assert cos[0] == pytest.approx(1 + 0.1 * math.log(4))


@given(
    base=st.floats(1.001, 1e30),
    factor=st.floats(1e-30, 1e30),
    context=st.integers(1, 2**31 - 1),
    fast=st.floats(1e-30, 1e30),
    slow=st.floats(1e-30, 1e30),
    dims=st.sampled_from([2, 64, 128]),
)
def test_any_accepted_scaling_gives_a_table(
    base: float, factor: float, context: int, fast: float, slow: float, dims: int
) -> None:
    scaling = Scaling("yarn", factor, context, beta_fast=fast, beta_slow=slow)
    cos, sin = rope_tables(config(Rope(base, dims, "half", scaling)), 2)
    assert cos.shape == sin.shape == (2, dims // 2)
