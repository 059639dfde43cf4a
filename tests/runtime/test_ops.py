"""Row operations against their definition in NumPy, bit for bit, on every instruction set."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime import emulated
from tests.runtime.steps import Share, run, same_bits
from twostroke import _kernels as kernels

WIDTHS = [1, 2, 15, 16, 17, 31, 64, 100, 577]
PATHS = kernels.kernel_paths()


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    before = kernels.kernel_path()
    kernels.set_kernel_path(request.param)
    yield request.param
    kernels.set_kernel_path(before)


def random(shape: tuple[int, ...], seed: int = 0, spread: float = 3.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * spread).astype(np.float32)


def perform(program: kernels.Program, rows: int, output: int) -> np.ndarray:
    """Runs a program without attention on `rows` rows and returns them all."""
    share = Share([0] * rows, 0, list(range((rows + 15) // 16)))
    return run(program, [share], range(rows), output).copy()


def make(threads: int = 1, rows: int = 8) -> kernels.Program:
    return kernels.Program(kernels.Pool(threads), rows)


class TestNorm:
    @pytest.mark.parametrize("width", WIDTHS)
    def test_is_the_definition(self, path: str, width: int) -> None:
        program, x, gain = make(), random((5, width)), random((width,), 1)
        source, out = program.register(width), program.register(width)
        program.norm(source, gain, 1e-5, out)
        program.rows(source)[:5] = x
        assert same_bits(perform(program, 5, out), emulated.rms_norm(x, gain, 1e-5))

    def test_of_zeros_is_zero(self, path: str) -> None:
        program = make()
        source, out = program.register(40), program.register(40)
        program.norm(source, np.ones(40, np.float32), 1e-6, out)
        assert not perform(program, 3, out).any()

    def test_does_not_depend_on_neighbours_or_threads(self, path: str) -> None:
        x, gain = random((64, 300)), random((300,), 1)
        alone = emulated.rms_norm(x, gain, 1e-5)
        for threads in (1, 2, 3):
            program = make(threads, 64)
            source, out = program.register(300), program.register(300)
            program.norm(source, gain, 1e-5, out)
            for rows in (1, 7, 64):
                program.rows(source)[:rows] = x[:rows]
                assert same_bits(perform(program, rows, out), alone[:rows])

    def test_in_place(self, path: str) -> None:
        program, x = make(), random((2, 33))
        source = program.register(33)
        program.norm(source, np.ones(33, np.float32), 1e-5, source)
        program.rows(source)[:2] = x
        assert same_bits(perform(program, 2, source), emulated.rms_norm(x, np.ones(33, np.float32), 1e-5))


class TestSilu:
    @pytest.mark.parametrize("width", WIDTHS)
    def test_is_the_definition(self, path: str, width: int) -> None:
        program, x = make(), random((4, 2 * width), 2, 8.0)
        source, out = program.register(2 * width), program.register(width)
        program.silu_mul(source, out)
        program.rows(source)[:4] = x
        assert same_bits(perform(program, 4, out), emulated.silu_mul(x[:, :width], x[:, width:]))

    def test_is_close_to_silu(self, path: str) -> None:
        x = np.linspace(-90, 90, 4001, dtype=np.float32)
        program = make()
        source, out = program.register(2 * x.size), program.register(x.size)
        program.silu_mul(source, out)
        program.rows(source)[0] = np.concatenate([x, np.ones_like(x)])
        exact = x.astype(np.float64) / (1 + np.exp(-x.astype(np.float64)))
        np.testing.assert_allclose(perform(program, 1, out)[0], exact, rtol=3e-7, atol=1e-35)

    @given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=40))
    @settings(max_examples=60, deadline=None)
    def test_any_float_gives_the_same_bits_on_every_path(self, gates: list[float]) -> None:
        x = np.asarray(gates + [1.0] * len(gates), np.float32)
        results = []
        before = kernels.kernel_path()
        for name in PATHS:
            kernels.set_kernel_path(name)
            program = make()
            source, out = program.register(x.size), program.register(x.size // 2)
            program.silu_mul(source, out)
            program.rows(source)[0] = x
            results.append(perform(program, 1, out))
        kernels.set_kernel_path(before)
        assert all(same_bits(results[0], other) for other in results)


class TestAddAndGather:
    def test_add(self, path: str) -> None:
        program, a, b = make(), random((3, 37)), random((3, 37), 1)
        x, out = program.register(37), program.register(37)
        program.add(x, out)
        program.rows(x)[:3], program.rows(out)[:3] = a, b
        assert same_bits(perform(program, 3, out), b + a)

    def test_gather_takes_the_sampled_rows_in_their_order(self) -> None:
        program, a = make(), random((6, 5))
        x, out = program.register(5), program.register(5)
        program.gather(x, out)
        program.rows(x)[:6] = a
        picked = run(program, [Share([0] * 6, 0, [0])], [4, 0, 4], out)
        assert same_bits(picked, a[[4, 0, 4]])

    def test_nothing_sampled_computes_nothing_after_gather(self) -> None:
        program, a = make(), random((6, 5))
        x, out = program.register(5), program.register(5)
        program.gather(x, out)
        program.add(x, out)
        program.rows(x)[:6] = a
        assert run(program, [Share([0] * 6, 0, [0])], [], out).shape == (0, 5)
        assert not program.rows(out).any()


class TestEmbed:
    def test_rows_of_the_table(self, path: str) -> None:
        table = random((50, 32))
        weight = kernels.Weight.pack(0, 50, 32, table.reshape(-1).view(np.uint8))
        program = make()
        out = program.register(32)
        program.embed(weight, out)
        tokens = [0, 49, 7, 7]
        assert same_bits(run(program, [Share(tokens, 0, [0])], range(4), out), table[tokens])


class TestRotate:
    @pytest.mark.parametrize("pairing", ["norm", "neox"])
    @pytest.mark.parametrize(("head_dim", "half"), [(16, 8), (32, 8), (64, 32), (48, 17)])
    def test_queries_and_keys(self, path: str, pairing: str, head_dim: int, half: int) -> None:
        heads, kv_heads, rows, start = 4, 2, 5, 3
        x = random((rows, (heads + 2 * kv_heads) * head_dim))
        angles = np.random.default_rng(3).uniform(-3, 3, (32, half))
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        store = kernels.KVStore(1, 2, kv_heads, head_dim)
        program = make()
        qkv = program.register(x.shape[1])
        program.rope_store(qkv, heads, store, 0, cos, sin, pairing)
        program.rows(qkv)[:rows] = x
        out = run(program, [Share([0] * rows, start, [1])], range(rows), qkv).copy()
        parts = x.reshape(rows, -1, head_dim)
        turned = emulated.rotate(
            parts[:, : heads + kv_heads], cos[start : start + rows, None], sin[start : start + rows, None], pairing
        )
        assert same_bits(out.reshape(rows, -1, head_dim)[:, : heads + kv_heads], turned)
        keys, values = store.read(0, 1)
        cells = slice(start, start + rows)
        assert same_bits(keys[:, cells], emulated.CELLS["q16"].kept(turned[:, heads:]).swapaxes(0, 1))
        assert same_bits(values[:, cells], emulated.CELLS["q16"].kept(parts[:, heads + kv_heads :]).swapaxes(0, 1))

    def test_norm_before_rotation(self, path: str) -> None:
        x, q_gain, k_gain = random((2, 64)), random((16,), 4), random((16,), 5)
        cos, sin = np.full((4, 8), 0.6, np.float32), np.full((4, 8), 0.8, np.float32)
        store = kernels.KVStore(1, 1, 1, 16)
        program = make()
        qkv = program.register(64)
        program.rope_store(qkv, 2, store, 0, cos, sin, "neox", q_gain, k_gain, 1e-6)
        program.rows(qkv)[:2] = x
        out = run(program, [Share([0, 0], 0, [0])], [0, 1], qkv).reshape(2, 4, 16)
        parts = x.reshape(2, 4, 16)
        queries = emulated.rotate(emulated.rms_norm(parts[:, :2], q_gain, 1e-6), cos[0], sin[0], "neox")
        keys = emulated.rotate(emulated.rms_norm(parts[:, 2], k_gain, 1e-6), cos[0], sin[0], "neox")
        assert same_bits(out[:, :2], queries)
        assert same_bits(out[:, 2], keys)


class TestPool:
    def test_a_wrong_number_of_threads_is_refused(self) -> None:
        with pytest.raises(ValueError, match="threads"):
            kernels.Pool(0)

    def test_many_dispatches_on_more_threads_than_processors(self) -> None:
        program, a = make(5, 64), random((64, 256))
        x, out = program.register(256), program.register(256)
        for _ in range(300):
            program.norm(x, np.ones(256, np.float32), 1e-5, out)
        program.rows(x)[:] = a
        assert same_bits(perform(program, 64, out), emulated.rms_norm(a, np.ones(256, np.float32), 1e-5))
