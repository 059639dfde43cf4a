"""Products of packed weights are, bit for bit, what `products.py` defines: on every path, for every shape."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime import products
from tests.runtime.products import GROUP_256, QUANTIZED, TYPES, File, activations, random_file, same_bits
from twostroke import _kernels as kernels

WIDTHS = {1: (1, 7, 96), 32: (32, 288), 256: (256, 1280)}


@pytest.fixture(scope="module")
def pool() -> kernels.Pool:
    return kernels.Pool(2)


@pytest.fixture(params=kernels.kernel_paths())
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    before = kernels.kernel_path()
    kernels.set_kernel_path(request.param)
    yield request.param
    kernels.set_kernel_path(before)


def packed(file: File) -> kernels.Weight:
    return kernels.Weight.pack(products.number(file.name), file.rows, file.cols, file.flat)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("rows", [1, 7, 16, 17, 100])
def test_products_have_the_defined_bits(name: str, rows: int, path: str, pool: kernels.Pool) -> None:
    for cols in WIDTHS[products.group(name)]:
        file = random_file(name, rows, cols, seed=rows + cols)
        weight, x = packed(file), activations(40, cols, seed=rows)
        expected = products.product(file, x)
        for count in [*range(1, 18), 24, 25, 31, 32, 33, 40]:
            assert same_bits(kernels.multiply(pool, weight, x[:count]), expected[:count]), (cols, count)


@pytest.mark.parametrize("name", QUANTIZED)
@pytest.mark.parametrize("count", [64, 130, 300])
def test_many_rows(name: str, count: int, path: str, pool: kernels.Pool) -> None:
    cols = 3 * 256
    file, x = random_file(name, 40, cols, seed=count), activations(count, cols)
    assert same_bits(kernels.multiply(pool, packed(file), x), products.product(file, x))


@pytest.mark.parametrize("name", QUANTIZED)
def test_rows_wider_than_the_cache_are_done_in_passes(name: str, path: str, pool: kernels.Pool) -> None:
    """Enough activations that one pass over the rows no longer fits the second-level cache."""
    cols, count = 16384, 70
    file, x = random_file(name, 17, cols), activations(count, cols)
    together = kernels.multiply(pool, packed(file), x)
    assert same_bits(together[[0, 63, 64, 69]], products.product(file, x[[0, 63, 64, 69]]))


@pytest.mark.parametrize("name", QUANTIZED)
@pytest.mark.parametrize("fill", [0x00, 0x7F, 0x80, 0xFF, 0xF0, 0x0F])
def test_extreme_codes_meet_extreme_activations(name: str, fill: int, path: str, pool: kernels.Pool) -> None:
    """The largest sums an integer register must hold: all codes and scales alike, all activations plus or minus 127."""
    file = random_file(name, 20, 512, fill=fill)
    signs = np.where(np.random.default_rng(fill).random((6, 512)) < 0.5, -1, 1)
    signs[0], signs[1] = 1, -1
    signs[2] = np.resize([1, -1], 512)
    x = signs.astype(np.float32)
    for count in (1, 2, 6):
        assert same_bits(kernels.multiply(pool, packed(file), x[:count]), products.product(file, x[:count]))


@pytest.mark.parametrize("name", TYPES)
def test_products_are_close_to_exact_ones(name: str, path: str, pool: kernels.Pool) -> None:
    file, x = random_file(name, 64, 1024), activations(8, 1024)
    exact = x.astype(np.float64) @ file.values().astype(np.float64).T
    error = np.abs(kernels.multiply(pool, packed(file), x) - exact)
    scale = np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(file.values().astype(np.float64), axis=1)[None]
    assert (error / scale).max() < (0.02 if name in QUANTIZED else 1e-6)


@settings(max_examples=60)
@given(
    name=st.sampled_from(TYPES),
    path=st.sampled_from(kernels.kernel_paths()),
    rows=st.integers(1, 70),
    blocks=st.integers(1, 5),
    count=st.integers(1, 40),
    threads=st.integers(1, 3),
    seed=st.integers(0, 2**16),
)
def test_a_row_does_not_know_its_neighbours(
    name: str, path: str, rows: int, blocks: int, count: int, threads: int, seed: int
) -> None:
    cols = blocks * max(32, products.group(name))
    weight, x = packed(random_file(name, rows, cols, seed)), activations(count, cols, seed)
    before = kernels.kernel_path()
    alone = np.concatenate([kernels.multiply(kernels.Pool(1), weight, row[None]) for row in x])
    kernels.set_kernel_path(path)
    try:
        together = kernels.multiply(kernels.Pool(threads), weight, x)
    finally:
        kernels.set_kernel_path(before)
    assert same_bits(together, alone)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("count", [1, 4, 21])
def test_paths_and_threads_agree(name: str, count: int) -> None:
    weight, x = packed(random_file(name, 2000, 512)), activations(count, 512)
    before = kernels.kernel_path()
    outputs = []
    try:
        for way in kernels.kernel_paths():
            kernels.set_kernel_path(way)
            outputs += [kernels.multiply(kernels.Pool(threads), weight, x) for threads in (1, 2, 3)]
    finally:
        kernels.set_kernel_path(before)
    assert all(same_bits(outputs[0], other) for other in outputs[1:])


@pytest.mark.parametrize("name", TYPES)
def test_a_bias_is_added_last(name: str, path: str, pool: kernels.Pool) -> None:
    file = random_file(name, 21, 256)
    bias = np.random.default_rng(3).normal(size=21).astype(np.float32)
    for count in (1, 6):
        x = activations(count, 256)
        assert same_bits(kernels.multiply(pool, packed(file), x, bias), products.product(file, x) + bias)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_row(name: str, poison: float, path: str, pool: kernels.Pool) -> None:
    weight, x = packed(random_file(name, 33, 512)), activations(7, 512)
    clean = kernels.multiply(pool, weight, x)
    x[3, 300] = poison
    dirty = kernels.multiply(pool, weight, x)
    others = [0, 1, 2, 4, 5, 6]
    assert same_bits(dirty[others], clean[others])
    assert not np.isfinite(dirty[3]).any()
    if name in QUANTIZED:
        assert np.isnan(dirty[3]).all()


def test_no_rows_give_no_outputs(path: str, pool: kernels.Pool) -> None:
    weight = packed(random_file("Q4_K", 33, 256))
    assert kernels.multiply(pool, weight, np.empty((0, 256), np.float32)).shape == (0, 33)


@pytest.mark.parametrize("name", TYPES)
def test_shapes_that_do_not_fit_are_refused(name: str, pool: kernels.Pool) -> None:
    weight = packed(random_file(name, 20, 256))
    with pytest.raises(ValueError, match="512 columns, the weight has 256"):
        kernels.multiply(pool, weight, activations(2, 512))
    with pytest.raises(ValueError, match="19 values, the weight has 20"):
        kernels.multiply(pool, weight, activations(2, 256), np.zeros(19, np.float32))


def test_arrays_of_another_kind_are_refused(pool: kernels.Pool) -> None:
    weight, x = packed(random_file("Q4_K", 20, 256)), activations(256, 256)
    for other in (x.astype(np.float64), x.T, x[:, :, None], x[0]):
        with pytest.raises(TypeError):
            kernels.multiply(pool, weight, other)


@pytest.mark.parametrize("name", GROUP_256)
def test_sub_block_scales_of_zero(name: str, path: str, pool: kernels.Pool) -> None:
    file = random_file(name, 16, 512, fill=0)
    x = activations(9, 512)
    assert same_bits(kernels.multiply(pool, packed(file), x), products.product(file, x))
