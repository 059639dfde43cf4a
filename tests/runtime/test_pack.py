"""Packing keeps every bit of a file: what comes out again is ggml's dequantisation, and nothing grows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime import products
from tests.runtime.products import TYPES, File, random_file, same_bits
from twostroke import _kernels as kernels


def packed(file: File) -> kernels.Weight:
    return kernels.Weight.pack(products.number(file.name), file.rows, file.cols, file.flat)


@given(name=st.sampled_from(TYPES), rows=st.integers(1, 50), blocks=st.integers(1, 4), seed=st.integers(0, 2**16))
def test_values_come_back_unchanged(name: str, rows: int, blocks: int, seed: int) -> None:
    file = random_file(name, rows, blocks * products.group(name), seed)
    assert same_bits(packed(file).dequantize(np.arange(rows)), file.values())


@pytest.mark.parametrize("name", TYPES)
def test_rows_are_looked_up_in_any_order(name: str) -> None:
    file = random_file(name, 45, 512)
    rows = np.array([44, 0, 17, 17, 3])
    assert same_bits(packed(file).dequantize(rows), file.values()[rows])
    assert packed(file).dequantize(np.empty(0, np.int64)).shape == (0, 512)


@pytest.mark.parametrize("name", TYPES)
def test_a_weight_knows_itself(name: str) -> None:
    weight = packed(random_file(name, 37, 256))
    assert (weight.rows, weight.cols, weight.type) == (37, 256, name)
    assert weight.file_bytes == 37 * 256 // products.group(name) * products.block_bytes(name)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(("rows", "cols"), [(896, 4864), (256, 1536), (1536, 8960)])
def test_packed_weights_are_as_dense_as_the_file(name: str, rows: int, cols: int) -> None:
    size = rows * cols // products.group(name) * products.block_bytes(name)
    weight = kernels.Weight.pack(products.number(name), rows, cols, np.zeros(size, np.uint8))
    assert weight.file_bytes <= weight.resident_bytes <= 1.01 * weight.file_bytes


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("missing", [-1, 1])
def test_a_wrong_number_of_bytes_is_refused(name: str, missing: int) -> None:
    file = random_file(name, 5, 256)
    data = np.resize(file.flat, file.flat.size - missing)
    with pytest.raises(ValueError, match=rf"{name} of 5 x 256 takes {file.flat.size} bytes, not {data.size}"):
        kernels.Weight.pack(products.number(name), 5, 256, data)


@pytest.mark.parametrize("name", [name for name in TYPES if products.group(name) > 1])
def test_a_width_that_splits_a_block_is_refused(name: str) -> None:
    width = products.group(name)
    with pytest.raises(ValueError, match=rf"{name} needs a multiple of {width} columns, not {width + 16}"):
        kernels.Weight.pack(products.number(name), 1, width + 16, np.zeros(1000, np.uint8))


@pytest.mark.parametrize(("rows", "cols"), [(0, 256), (-1, 256), (1, 0), (2**31, 256), (1, 2**40)])
def test_an_impossible_shape_is_refused(rows: int, cols: int) -> None:
    with pytest.raises(ValueError, match="rows and columns"):
        kernels.Weight.pack(products.number("Q4_K"), rows, cols, np.zeros(144, np.uint8))


def test_an_unknown_type_is_refused_by_naming_the_known() -> None:
    with pytest.raises(ValueError, match=r"unknown weight type 10; known are .*Q4_K \(12\)"):
        kernels.Weight.pack(10, 1, 256, np.zeros(84, np.uint8))


@pytest.mark.parametrize("row", [-1, 5, 16, 2**40])
def test_a_row_that_is_not_there_is_refused(row: int) -> None:
    weight = packed(random_file("Q6_K", 5, 256))
    with pytest.raises(ValueError, match=f"row {row} is outside a weight of 5 rows"):
        weight.dequantize(np.array([0, row]))


def test_memory_is_given_back() -> None:
    """Weights share chunks; dropping all of them and packing again must not keep adding chunks."""
    data = np.zeros(1 << 20, np.uint8)
    resident = []
    for _ in range(3):
        weights = [kernels.Weight.pack(products.number("F32"), 256, 1024, data) for _ in range(80)]
        del weights
        with open("/proc/self/statm") as statm:
            resident.append(int(statm.read().split()[1]) * 4096)
    assert resident[2] - resident[0] < 80 << 20
