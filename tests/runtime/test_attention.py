"""Paged attention against its definition in NumPy, bit for bit: shapes, chunking, threads, paths and dirty cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime import emulated
from tests.runtime.steps import Share, chunked, run, same_bits
from twostroke import _kernels as kernels

PATHS = kernels.kernel_paths()
FAST = PATHS[-1]


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    before = kernels.kernel_path()
    kernels.set_kernel_path(request.param)
    yield request.param
    kernels.set_kernel_path(before)


@dataclass(frozen=True)
class Shape:
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    kind: str = "q16"

    @property
    def width(self) -> int:
        return (self.heads + 2 * self.kv_heads) * self.head_dim


class Bench:
    """One attention layer over a store whose every cell starts as NaN."""

    def __init__(self, shape: Shape, blocks: int, threads: int = 1, max_rows: int = 512, context: int = 16384) -> None:
        self.shape = shape
        self.store = kernels.KVStore(1, blocks, shape.kv_heads, shape.head_dim, shape.kind)
        self.store.poison()
        self.program = kernels.Program(kernels.Pool(threads), max_rows)
        self.qkv = self.program.register(shape.width)
        self.out = self.program.register(shape.heads * shape.head_dim)
        half = shape.head_dim // 2
        still = np.ones((context, half), np.float32), np.zeros((context, half), np.float32)
        self.program.rope_store(self.qkv, shape.heads, self.store, 0, *still, "neox")
        self.program.attend(self.qkv, shape.heads, self.store, 0, 1.0, self.out)

    def step(self, shares: Sequence[Share], rows: np.ndarray) -> np.ndarray:
        self.program.rows(self.qkv)[: len(rows)] = rows
        return run(self.program, shares, range(len(rows)), self.out).copy()

    def sequence(self, rows: np.ndarray, size: int, blocks: Sequence[int]) -> np.ndarray:
        """A whole sequence in chunks of `size`."""
        parts = [
            self.step([share], rows[share.start : share.start + len(share.tokens)])
            for share in chunked([0] * len(rows), size, blocks)
        ]
        return np.concatenate(parts)


def rows_of(shape: Shape, count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, shape.width)).astype(np.float32)


def defined(shape: Shape, rows: np.ndarray, row: int) -> np.ndarray:
    """What attention at position `row` is, by its definition."""
    parts = rows[: row + 1].reshape(row + 1, -1, shape.head_dim)
    group = shape.heads // shape.kv_heads
    keys = parts[:, shape.heads : shape.heads + shape.kv_heads].swapaxes(0, 1).repeat(group, axis=0)
    values = parts[:, shape.heads + shape.kv_heads :].swapaxes(0, 1).repeat(group, axis=0)
    return emulated.attention(parts[row, : shape.heads], keys, values, shape.kind).reshape(-1)


def scattered(count: int, total: int, seed: int = 0) -> list[int]:
    return [int(b) for b in np.random.default_rng(seed).permutation(total)[:count]]


class TestDefinition:
    @pytest.mark.parametrize("kind", ["q16", "q8"])
    @pytest.mark.parametrize(
        ("heads", "kv_heads", "head_dim"), [(1, 1, 16), (4, 2, 32), (6, 1, 48), (7, 1, 64), (13, 1, 16)]
    )
    def test_every_position(self, path: str, kind: str, heads: int, kv_heads: int, head_dim: int) -> None:
        shape = Shape(heads, kv_heads, head_dim, kind)
        rows = rows_of(shape, 37)
        out = Bench(shape, 4).sequence(rows, 37, scattered(3, 4))
        for row in (0, 1, 15, 16, 17, 36):
            assert same_bits(out[row], defined(shape, rows, row))

    @pytest.mark.parametrize("kind", ["q16", "q8"])
    def test_across_chunks_of_keys(self, path: str, kind: str) -> None:
        shape = Shape(3, 1, 16, kind)
        rows = rows_of(shape, 530)
        out = Bench(shape, 40).sequence(rows, 265, scattered(34, 40))
        for row in (254, 255, 256, 257, 511, 512, 529):
            assert same_bits(out[row], defined(shape, rows, row))

    def test_a_long_context(self) -> None:
        shape = Shape(2, 1, 16)
        rows = rows_of(shape, 8195)
        out = Bench(shape, 513, threads=2).sequence(rows, 512, scattered(513, 513))
        for row in (8191, 8192, 8194):
            assert same_bits(out[row], defined(shape, rows, row))

    def test_is_close_to_softmax_in_double_precision(self) -> None:
        shape = Shape(4, 2, 64)
        rows = rows_of(shape, 300)
        out = Bench(shape, 19).sequence(rows, 300, range(19))[-1].reshape(4, 64)
        parts = rows.reshape(300, 8, 64).astype(np.float64)
        for head in range(4):
            scores = parts[:, 4 + head // 2] @ parts[-1, head]
            weights = np.exp(scores - scores.max())
            expected = (weights / weights.sum()) @ parts[:, 6 + head // 2]
            np.testing.assert_allclose(out[head], expected, atol=0.02)

    def test_the_scale_multiplies_queries(self) -> None:
        shape = Shape(2, 1, 16)
        bench, rows = Bench(shape, 2), rows_of(shape, 5)
        half = np.ones((32, 8), np.float32), np.zeros((32, 8), np.float32)
        program = kernels.Program(kernels.Pool(1), 8)
        qkv, out = program.register(shape.width), program.register(32)
        program.rope_store(qkv, 2, bench.store, 0, *half, "neox")
        program.attend(qkv, 2, bench.store, 0, 0.25, out)
        program.rows(qkv)[:5] = rows
        scaled = run(program, [Share([0] * 5, 0, [1])], range(5), out).copy()
        rows[:, :32] *= np.float32(0.25)
        assert same_bits(scaled, bench.sequence(rows, 5, [1]))


class TestRounding:
    """What rounding to integers adds: vectors that have no step, the largest sums, and cells that hold anything."""

    @pytest.fixture(params=["q16", "q8"])
    def shape(self, request: pytest.FixtureRequest) -> Shape:
        return Shape(6, 2, 32, request.param)

    def cut(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Views of the queries, keys and values of rows, [rows, heads, d]."""
        parts = rows.reshape(len(rows), -1, 32)
        return parts[:, :6], parts[:, 6:8], parts[:, 8:]

    def test_a_query_of_zeros_sees_all_keys_alike(self, path: str, shape: Shape) -> None:
        rows = rows_of(shape, 40)
        self.cut(rows)[0][30:] = 0
        out = Bench(shape, 3).sequence(rows, 40, range(3))
        for row in (29, 30, 39):
            assert same_bits(out[row], defined(shape, rows, row))
        mean = self.cut(rows)[2].mean(axis=0).repeat(3, axis=0).reshape(-1)
        np.testing.assert_allclose(out[39], mean, atol=0.02)

    @pytest.mark.parametrize("size", [0, 1e-36, 1e-42])
    def test_values_of_nothing_come_out_as_zeros(self, path: str, shape: Shape, size: float) -> None:
        rows = rows_of(shape, 40)
        self.cut(rows)[2][:] *= np.float32(size)
        assert not Bench(shape, 3).sequence(rows, 40, range(3)).any()

    @pytest.mark.parametrize("size", [1e-20, 1e-29, 1e-36, 1e-42])
    def test_small_vectors(self, path: str, shape: Shape, size: float) -> None:
        rows = rows_of(shape, 20) * np.float32(size)
        out = Bench(shape, 2).sequence(rows, 20, range(2))
        for row in (0, 19):
            assert same_bits(out[row], defined(shape, rows, row))

    @pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("part", [1, 2])
    def test_what_is_not_finite_is_seen_by_those_who_see_it(
        self, path: str, shape: Shape, part: int, wrong: float
    ) -> None:
        rows = rows_of(shape, 40)
        bench = Bench(shape, 3)
        whole = bench.sequence(rows, 40, range(3)).reshape(40, 2, -1)
        self.cut(rows)[part][21, 1, 5] = wrong
        out = bench.sequence(rows, 40, range(3)).reshape(40, 2, -1)
        assert same_bits(out[:, 0], whole[:, 0])
        assert same_bits(out[:21, 1], whole[:21, 1])
        assert np.isnan(out[21:, 1]).all()

    @pytest.mark.parametrize("wrong", [np.nan, np.inf])
    def test_a_query_that_is_not_finite_spoils_its_own_result_only(self, path: str, shape: Shape, wrong: float) -> None:
        rows = rows_of(shape, 40)
        whole = Bench(shape, 3).sequence(rows, 40, range(3)).reshape(40, 6, -1)
        self.cut(rows)[0][21, 3, 5] = wrong
        out = Bench(shape, 3).sequence(rows, 40, range(3)).reshape(40, 6, -1)
        assert np.isnan(out[21, 3]).all()
        whole[21, 3] = out[21, 3]
        assert same_bits(out, whole)

    @pytest.mark.parametrize("dirt", [1e30, -1e-3, np.nan, np.inf])
    def test_what_a_hidden_cell_holds_changes_nothing(self, path: str, shape: Shape, dirt: float) -> None:
        rows = rows_of(shape, 300)
        whole = Bench(shape, 19).sequence(rows, 300, range(19))
        bench, cells = Bench(shape, 19), np.full((2, 16, 32), dirt, np.float32)
        for block in range(19):
            bench.store.write(0, block, cells, cells)
        assert same_bits(bench.sequence(rows, 7, range(19)), whole)

    @pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
    def test_the_largest_sums_fit(self, path: str, shape: Shape, signs: tuple[int, int]) -> None:
        """Every code of query, keys and values at its end, in the largest head and a full chunk of keys."""
        shape = Shape(1, 1, 1024, shape.kind)
        rows = np.ones((257, shape.width), np.float32)
        rows[:, 1024:2048] *= signs[0]
        rows[:, 2048:] *= signs[1]
        out = Bench(shape, 17).sequence(rows, 257, range(17))
        for row in (0, 255, 256):
            assert same_bits(out[row], defined(shape, rows, row))
        half_a_step = 5e-4 if shape.kind == "q16" else 1e-6  # of 256 equal weights
        np.testing.assert_allclose(out, np.full_like(out, signs[1]), rtol=half_a_step)

    def test_a_large_head_of_any_numbers(self, path: str, shape: Shape) -> None:
        shape = Shape(5, 1, 1024, shape.kind)
        rows = rows_of(shape, 40)
        out = Bench(shape, 3).sequence(rows, 40, range(3))
        for row in (0, 17, 39):
            assert same_bits(out[row], defined(shape, rows, row))

    def test_outliers(self, path: str, shape: Shape) -> None:
        """One number may be as large as all others together, or a million times larger."""
        rows = rows_of(shape, 300) * np.float32(10) ** np.random.default_rng(1).integers(-3, 4, (300, shape.width))
        rows = rows.astype(np.float32)
        self.cut(rows)[0][::2, :, 7] = 32
        out = Bench(shape, 19).sequence(rows, 300, range(19))
        for row in (0, 17, 254, 299):
            assert same_bits(out[row], defined(shape, rows, row))

    def test_is_close_to_softmax_in_double_precision(self, shape: Shape) -> None:
        rows = rows_of(shape, 300)
        out = Bench(shape, 19).sequence(rows, 300, range(19))[-1].reshape(6, 32)
        queries, keys, values = (x.astype(np.float64) for x in self.cut(rows))
        for head in range(6):
            scores = keys[:, head // 3] @ queries[-1, head]
            weights = np.exp(scores - scores.max())
            expected = (weights / weights.sum()) @ values[:, head // 3]
            np.testing.assert_allclose(out[head], expected, atol=0.0005 if shape.kind == "q16" else 0.05)


class TestInvariance:
    @pytest.mark.parametrize("kind", ["q16", "q8"])
    @pytest.mark.parametrize("size", [1, 3, 16, 17, 300])
    def test_chunking_threads_and_paths_change_no_bit(self, kind: str, size: int) -> None:
        shape = Shape(6, 2, 32, kind)
        rows = rows_of(shape, 300)
        whole = Bench(shape, 20).sequence(rows, 300, range(19))
        before = kernels.kernel_path()
        for name in PATHS if size > 1 else [FAST]:
            kernels.set_kernel_path(name)
            for threads in (1, 2, 3):
                bench = Bench(shape, 24, threads)
                assert same_bits(bench.sequence(rows, size, scattered(19, 24, size)), whole)
        kernels.set_kernel_path(before)

    @pytest.mark.parametrize("threads", [1, 2, 3])
    def test_neighbours_change_no_bit(self, threads: int) -> None:
        shape = Shape(14, 2, 64)
        lengths = [1, 290, 33, 700, 5]
        sequences = [rows_of(shape, n, seed) for seed, n in enumerate(lengths)]
        tables, blocks = [], scattered(80, 80)
        for n in lengths:
            count = (n + 15) // 16
            tables.append(blocks[:count])
            blocks = blocks[count:]
        alone = [Bench(shape, 80).sequence(s, 512, t) for s, t in zip(sequences, tables, strict=True)]
        bench = Bench(shape, 80, threads)
        for rows, table in zip(sequences, tables, strict=True):
            bench.sequence(rows, 97, table)
        # The last few rows of all of them again, in one step.
        tails = [min(n, 1 + i) for i, n in enumerate(lengths)]
        shares = [Share([0] * t, n - t, b) for t, n, b in zip(tails, lengths, tables, strict=True)]
        mixed = bench.step(shares, np.concatenate([s[-t:] for s, t in zip(sequences, tails, strict=True)]))
        assert same_bits(mixed, np.concatenate([a[-t:] for a, t in zip(alone, tails, strict=True)]))

    @given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.sampled_from(["q16", "q8"]), st.integers(1, 3))
    @settings(max_examples=25, deadline=None)
    def test_any_chunking(self, sizes: list[int], kind: str, threads: int) -> None:
        shape = Shape(3, 1, 16, kind)
        rows = rows_of(shape, sum(sizes), len(sizes))
        table = scattered((len(rows) + 15) // 16, 64)
        whole = Bench(shape, 64).sequence(rows, 512, table)
        bench, start, parts = Bench(shape, 64, threads), 0, []
        for size in sizes:
            parts.append(bench.step([Share([0] * size, start, table)], rows[start : start + size]))
            start += size
        assert same_bits(np.concatenate(parts), whole)

    def test_decoding_a_long_context_equals_reading_it(self) -> None:
        shape = Shape(6, 1, 64)
        rows = rows_of(shape, 8200)
        table = scattered(513, 520)
        prefilled = Bench(shape, 520, 2)
        whole = prefilled.sequence(rows, 512, table)
        again = prefilled.step([Share([0] * 8, 8192, table)], rows[8192:])
        single = np.concatenate([prefilled.step([Share([0], p, table)], rows[p : p + 1]) for p in range(8192, 8200)])
        assert same_bits(again, whole[8192:])
        assert same_bits(single, whole[8192:])


class TestStore:
    @pytest.mark.parametrize("kind", ["q16", "q8"])
    def test_cells_read_as_they_were_rounded(self, path: str, kind: str) -> None:
        store = kernels.KVStore(2, 3, 2, 32, kind)
        keys, values = (np.random.default_rng(s).standard_normal((2, 16, 32)).astype(np.float32) for s in (0, 1))
        store.write(1, 2, keys, values)
        for stored, exact in zip(store.read(1, 2), (keys, values), strict=True):
            assert same_bits(stored, emulated.CELLS[kind].kept(exact))

    @pytest.mark.parametrize("kind", ["q16", "q8"])
    def test_a_cell_whose_magnitudes_add_up_to_more_than_a_float_reads_as_nan(self, path: str, kind: str) -> None:
        store = kernels.KVStore(1, 1, 2, 32, kind)
        cells = np.zeros((2, 16, 32), np.float32)
        cells[0, 5] = 3e38
        store.write(0, 0, cells, cells)
        for stored in store.read(0, 0):
            assert np.isnan(stored[0, 5]).all()
            assert np.isnan(stored).sum() == 32

    @pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("kind", ["q16", "q8"])
    def test_a_cell_that_is_not_finite_reads_as_nan(self, path: str, kind: str, wrong: float) -> None:
        store = kernels.KVStore(1, 1, 2, 32, kind)
        cells = np.random.default_rng(0).standard_normal((2, 16, 32)).astype(np.float32)
        cells[1, 3, 31] = wrong
        store.write(0, 0, cells, -cells)
        for stored in store.read(0, 0):
            assert np.isnan(stored[1, 3]).all()
            assert np.isnan(stored).sum() == 32

    @pytest.mark.parametrize("kind", ["q16", "q8"])
    @pytest.mark.parametrize("tokens", [0, 1, 3, 4, 7, 16])
    def test_copy_takes_the_first_cells_of_all_layers_only(self, kind: str, tokens: int) -> None:
        store = kernels.KVStore(3, 4, 2, 32, kind)
        store.poison()
        cells = np.random.default_rng(0).standard_normal((3, 2, 2, 16, 32)).astype(np.float32)
        for layer in range(3):
            store.write(layer, 1, *cells[layer])
        store.copy(1, 3, tokens)
        for layer in range(3):
            for source, target in zip(store.read(layer, 1), store.read(layer, 3), strict=True):
                assert same_bits(target[:, :tokens], source[:, :tokens])
                assert np.isnan(target[:, tokens:]).all()
            assert np.isnan(store.read(layer, 0)[0]).all()

    @pytest.mark.parametrize("kind", ["q16", "q8"])
    @pytest.mark.parametrize("tokens", [0, 1, 3, 4, 7, 15])
    def test_copy_leaves_the_other_cells_as_they_are(self, kind: str, tokens: int) -> None:
        store = kernels.KVStore(1, 2, 2, 32, kind)
        cells = np.random.default_rng(0).standard_normal((2, 2, 16, 32)).astype(np.float32)
        for block in range(2):
            store.write(0, block, cells[block], -cells[block])
        before = store.read(0, 1)
        store.copy(0, 1, tokens)
        for old, new in zip(before, store.read(0, 1), strict=True):
            assert same_bits(new[:, tokens:], old[:, tokens:])

    @pytest.mark.parametrize("kind", ["q16", "q8"])
    def test_going_on_from_a_copied_part_changes_no_bit(self, kind: str) -> None:
        shape = Shape(4, 2, 32, kind)
        rows = rows_of(shape, 40)
        bench = Bench(shape, 8)
        whole = bench.sequence(rows, 40, [0, 1, 2])
        bench.store.copy(1, 5, 7)
        rest = bench.step([Share([0] * 17, 23, [0, 5, 6])], rows[23:])
        assert same_bits(rest, whole[23:])

    def test_sizes(self) -> None:
        store = kernels.KVStore(28, 10, 2, 128)
        assert (store.bytes_per_token, store.bytes) == (28 * 2 * 2 * 260, 160 * 28 * 2 * 2 * 260)
        assert kernels.KVStore(28, 10, 2, 128, "q8").bytes_per_token == 28 * 2 * 2 * (128 + 4)
        assert (store.layers, store.blocks, store.kv_heads, store.head_dim, store.type) == (28, 10, 2, 128, "q16")
        assert store.BLOCK_TOKENS == 16

    @pytest.mark.parametrize(
        "arguments", [(0, 1, 1, 16), (1, 0, 1, 16), (1, 1, 0, 16), (1, 1, 1, 24), (1, 1, 1, 16, "q4")]
    )
    def test_wrong_shapes_are_refused(self, arguments: tuple[int, int, int, int]) -> None:
        with pytest.raises(ValueError, match="not"):
            kernels.KVStore(*arguments)

    def test_wrong_cells_are_refused(self) -> None:
        store = kernels.KVStore(1, 2, 1, 16)
        cells = np.zeros((1, 16, 16), np.float32)
        for call in (
            lambda: store.copy(0, 2, 1),
            lambda: store.copy(-1, 0, 1),
            lambda: store.copy(0, 1, 17),
            lambda: store.copy(1, 1, 3),
            lambda: store.read(1, 0),
            lambda: store.read(0, 2),
            lambda: store.write(0, 0, cells[:, :8], cells),
            lambda: store.write(0, 0, cells.astype(np.float64), cells),
            lambda: store.write(0, 0, cells.swapaxes(1, 2), cells),
            lambda: store.poison(2),
        ):
            with pytest.raises(ValueError, match=r"not|same|must"):
                call()
