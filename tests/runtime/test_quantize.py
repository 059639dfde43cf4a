"""Activations become int8 codes with one scale per group, the same on every path."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.runtime import products
from tests.runtime.products import activations, same_bits
from twostroke import _kernels as kernels


@pytest.fixture(params=kernels.kernel_paths())
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    before = kernels.kernel_path()
    kernels.set_kernel_path(request.param)
    yield request.param
    kernels.set_kernel_path(before)


@pytest.mark.parametrize("group", [32, 256])
def test_codes_round_to_nearest_even(group: int, path: str) -> None:
    x = activations(9, 1536)
    x[0, :group] = np.resize(np.arange(-127, 128, 0.5), group)
    codes, scales = kernels.quantize(x, group)
    expected, expected_scales = products.quantized(x, group)
    assert np.array_equal(codes, expected.reshape(codes.shape))
    assert same_bits(scales, expected_scales)


@given(x=arrays.arrays(np.float32, (1, 256), elements=st.floats(width=32)), group=st.sampled_from([32, 256]))
def test_any_floats_whatever(x: products.Floats, group: int) -> None:
    before = kernels.kernel_path()
    try:
        answers = []
        for way in kernels.kernel_paths():
            kernels.set_kernel_path(way)
            answers.append(kernels.quantize(x, group))
    finally:
        kernels.set_kernel_path(before)
    codes, scales = answers[0]
    for other_codes, other_scales in answers[1:]:
        assert np.array_equal(codes, other_codes)
        assert same_bits(scales, other_scales)
    finite = np.isfinite(x.reshape(-1, group)).all(axis=1)
    assert np.array_equal(np.isnan(scales[0]), ~finite)
    assert not codes.reshape(-1, group)[~finite].any()
    clean = np.where(finite[:, None], x.reshape(-1, group), 0).reshape(1, -1).astype(np.float32)
    expected, expected_scales = products.quantized(clean, group)
    assert np.array_equal(codes.reshape(-1, group), expected.reshape(-1, group))
    assert same_bits(scales[0][finite], expected_scales[0][finite])


@pytest.mark.parametrize("group", [32, 256])
def test_codes_are_as_near_as_eight_bits_allow(group: int, path: str) -> None:
    x = activations(5, 512)
    codes, scales = kernels.quantize(x, group)
    back = codes.reshape(5, -1, group) * scales[..., None].astype(np.float64)
    assert (np.abs(back - x.reshape(back.shape)) <= 0.5001 * scales[..., None]).all()
    assert np.abs(codes).max() == 127


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-38, 1e-45, 9e-31])
def test_what_is_nearly_nothing_counts_as_nothing(value: float, path: str) -> None:
    codes, scales = kernels.quantize(np.full((1, 256), value, np.float32), 32)
    assert not codes.any()
    assert same_bits(scales, np.zeros((1, 8), np.float32))


@pytest.mark.parametrize("value", [1e-30, 1.0, 3.4e38])
def test_the_whole_range_of_floats_is_covered(value: float, path: str) -> None:
    x = np.full((1, 256), value, np.float32)
    x[0, ::2] *= -1
    codes, scales = kernels.quantize(x, 256)
    assert np.array_equal(codes[0], np.resize([-127, 127], 256))
    assert scales[0, 0] == np.float32(value) / np.float32(127)


@pytest.mark.parametrize(("cols", "group"), [(48, 32), (128, 256)])
def test_a_width_that_splits_a_group_is_refused(cols: int, group: int) -> None:
    with pytest.raises(ValueError, match=f"positive multiple of {group} columns"):
        kernels.quantize(activations(1, cols), group)


def test_an_unknown_group_is_refused() -> None:
    with pytest.raises(ValueError, match="32 or 256 wide, not 64"):
        kernels.quantize(activations(1, 64), 64)
