"""Sampling against its definition in NumPy, token by token; the noise; log-probabilities; what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime import emulated
from tests.runtime.emulated import Choice
from tests.runtime.steps import Floats, ints, same_bits
from twostroke import _kernels as kernels

PATHS = kernels.kernel_paths()


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    before = kernels.kernel_path()
    kernels.set_kernel_path(request.param)
    yield request.param
    kernels.set_kernel_path(before)


def sample(logits: Floats, how: Sequence[Choice], pool: kernels.Pool | None = None) -> list[int]:
    def column(name: str, dtype: Any) -> Any:
        return np.asarray([getattr(h, name) for h in how], dtype)

    floats = {name: column(name, np.float32) for name in ("temperature", "top_p", "min_p")}
    whole = {name: column(name, np.int32) for name in ("top_k", "choice", "position")}
    return [int(t) for t in kernels.sample(logits, **floats, **whole, seed=column("seed", np.uint64), pool=pool)]


def peaked(count: int, seed: int = 0, spread: float = 3.0) -> Floats:
    return (np.random.default_rng(seed).standard_normal(count) * spread).astype(np.float32)


class TestGreedy:
    @pytest.mark.parametrize("count", [1, 15, 16, 63, 64, 65, 1000])
    def test_first_maximum(self, path: str, count: int) -> None:
        logits = peaked(count)
        assert sample(logits[None], [Choice(0.0)]) == [int(logits.argmax())]
        logits[count // 2 :] = 99.0
        assert sample(logits[None], [Choice(0.0)]) == [count // 2]

    def test_nan_counts_as_minus_infinity(self, path: str) -> None:
        logits = np.full(100, np.nan, np.float32)
        assert sample(logits[None], [Choice(0.0)]) == [0]
        logits[70] = -1e30
        assert sample(logits[None], [Choice(0.0)]) == [70]
        logits[30] = np.inf
        assert sample(logits[None], [Choice(1.0)]) == [30]

    def test_a_row_without_candidates(self, path: str) -> None:
        logits = np.full((1, 100), -np.inf, np.float32)
        assert sample(logits, [Choice(1.0, top_k=3, top_p=0.5)]) == [0]

    def test_a_temperature_that_noise_cannot_outweigh_is_greedy(self, path: str) -> None:
        logits = peaked(3000)
        assert sample(logits[None], [Choice(1e-6)]) == sample(logits[None], [Choice(1.1e-5)]) == [int(logits.argmax())]


class TestNoise:
    def test_is_its_definition(self, path: str) -> None:
        ids = ints([0, 1, 15, 16, 63, 64, 65, 127, 5000, 151935, 2**31 - 1, 7, 7])
        for seed, choice, position in [(0, 0, 0), (2**64 - 1, 3, 8191), (12345678901234567, 1, 2**31 - 1)]:
            noise = kernels.gumbel(seed, choice, position, ids)
            assert same_bits(noise, emulated.gumbel(seed, choice, position, ids))

    def test_the_generator_is_philox(self) -> None:
        """Known answer of Random123's philox4x32-10 (the digits of pi); then ours, its domain the last word."""
        words = emulated.philox(np.asarray([0], np.uint32), 0, 0, 0)
        assert len({int(w[0]) for w in words}) == 4
        state = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]
        key = [0xA4093822, 0x299F31D0]
        assert scalar_philox(state, key) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
        expected = scalar_philox([5, 7, 2, 0x6E6F6973], [0x89ABCDEF, 0x01234567])
        assert [int(w[0]) for w in emulated.philox(np.asarray([5], np.uint32), 7, 2, 0x0123456789ABCDEF)] == expected

    def test_is_standard_gumbel(self) -> None:
        noise = kernels.gumbel(11, 0, 3, np.arange(400_000, dtype=np.int32)).astype(np.float64)
        assert abs(noise.mean() - 0.5772) < 0.008
        assert abs(noise.var() - np.pi**2 / 6) < 0.02
        for x in (-1.0, 0.0, 1.0, 4.0):
            assert abs((noise < x).mean() - np.exp(-np.exp(-x))) < 0.003
        assert np.isfinite(noise).all()
        assert noise.max() < 23

    def test_log_of_every_range(self) -> None:
        u = np.concatenate([np.logspace(-9, -0.01, 3000), 1 - np.logspace(-7, -1, 3000)]).astype(np.float32)
        np.testing.assert_allclose(emulated.log(u), np.log(u.astype(np.float64)), rtol=3e-7)

    @pytest.mark.parametrize("other", [Choice(seed=1), Choice(choice=1), Choice(position=1)])
    def test_every_part_of_the_key_matters(self, other: Choice) -> None:
        ids = np.arange(1000, dtype=np.int32)
        a, b = kernels.gumbel(0, 0, 0, ids), kernels.gumbel(other.seed, other.choice, other.position, ids)
        assert (a != b).mean() > 0.99
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.1


def scalar_philox(counter: list[int], key: list[int]) -> list[int]:
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        x, y = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (y >> 32) ^ b ^ k0, y & 0xFFFFFFFF, (x >> 32) ^ d ^ k1, x & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [a, b, c, d]


CHOICES = [
    Choice(),
    Choice(0.6),
    Choice(4.0),
    Choice(0.8, top_k=1),
    Choice(0.8, top_k=40),
    Choice(2.0, top_k=900),
    Choice(0.8, top_p=0.95),
    Choice(3.0, top_p=0.99),
    Choice(1.0, top_p=1e-6),
    Choice(1.0, min_p=0.05),
    Choice(5.0, min_p=1.0),
    Choice(0.7, top_k=50, top_p=0.9, min_p=0.02),
    Choice(1.5, top_p=0.5, min_p=0.3),
]


class TestDefinition:
    @pytest.mark.parametrize("how", CHOICES)
    @pytest.mark.parametrize("count", [1, 17, 64, 1000, 5003])
    def test_the_same_token(self, path: str, count: int, how: Choice) -> None:
        rows = [Choice(how.temperature, how.top_k, how.top_p, how.min_p, s, s % 3, 10 * s) for s in range(8)]
        logits = np.stack([peaked(count, s) for s in range(8)])
        assert sample(logits, rows) == [emulated.sample(row, h) for row, h in zip(logits, rows, strict=True)]

    @pytest.mark.parametrize(
        "how", [Choice(), Choice(1.0, top_k=100), Choice(1.0, top_p=0.9), Choice(9.0, top_p=0.999)]
    )
    def test_a_large_vocabulary(self, how: Choice) -> None:
        logits = peaked(151_936, 5, 2.0)
        rows = [Choice(how.temperature, how.top_k, how.top_p, how.min_p, s) for s in range(4)]
        assert sample(np.stack([logits] * 4), rows) == [emulated.sample(logits, row) for row in rows]

    @given(
        st.lists(st.integers(-6, 6) | st.just(None), min_size=1, max_size=200),
        st.sampled_from([0.3, 1.0, 2.5]),
        st.integers(0, 60),
        st.floats(1 / 128, 1.0, width=32),
        st.floats(0.0, 1.0, width=32),
        st.integers(0, 2**64 - 1),
    )
    @settings(max_examples=150, deadline=None)
    def test_ties_holes_and_any_truncation(
        self, values: list[int | None], temperature: float, k: int, p: float, m: float, seed: int
    ) -> None:
        logits = np.asarray([np.nan if v is None else v / 2 for v in values], np.float32)
        how = Choice(temperature, k, p, m, seed, 1, 9)
        expected = emulated.sample(logits, how)
        before = kernels.kernel_path()
        for name in PATHS:
            kernels.set_kernel_path(name)
            assert sample(logits[None], [how]) == [expected]
        kernels.set_kernel_path(before)

    def test_a_tie_at_the_cut_goes_to_the_lowest_ids(self, path: str) -> None:
        """However far behind the cut, in lane blocks of its own, an equal logit lies."""
        rows = [Choice(1.0, top_k=3, seed=s) for s in range(500)]
        assert set(sample(np.zeros((500, 200), np.float32), rows)) == {0, 1, 2}

    def test_masked_tokens_are_never_drawn(self) -> None:
        logits = np.full((500, 300), -np.inf, np.float32)
        logits[:, [3, 299]] = 0.0
        rows = [Choice(1.0, (0, 5)[s % 2], (1.0, 0.9)[s // 2 % 2], seed=s) for s in range(500)]
        assert set(sample(logits, rows)) == {3, 299}

    def test_rows_threads_and_strides_change_nothing(self) -> None:
        wide = np.stack([np.append(peaked(997, s), np.full(27, 99, np.float32)) for s in range(16)])
        rows = [CHOICES[s % len(CHOICES)] for s in range(16)]
        alone = [sample(wide[s : s + 1, :997], [rows[s]])[0] for s in range(16)]
        for threads in (1, 2, 3):
            assert sample(wide[:, :997], rows, kernels.Pool(threads)) == alone


class TestDistribution:
    def test_frequencies_are_probabilities(self) -> None:
        logits, draws = np.asarray([2.0, 1.0, 0.0, -1.0, 0.5, -3.0], np.float32), 40_000
        rows = [Choice(1.3, seed=42, position=s) for s in range(draws)]
        counts = np.bincount(sample(np.broadcast_to(logits, (draws, 6)), rows), minlength=6)
        expected = np.exp(logits / 1.3) / np.exp(logits / 1.3).sum()
        assert np.abs(counts / draws - expected).max() < 4 * np.sqrt(0.25 / draws)

    def test_truncation_renormalises(self) -> None:
        logits, draws = np.asarray([1.0, 1.0, 0.0, -9.0], np.float32), 20_000
        for how in (Choice(top_k=2), Choice(top_p=0.8), Choice(min_p=0.5)):
            rows = [Choice(1.0, how.top_k, how.top_p, how.min_p, 7, 0, s) for s in range(draws)]
            counts = np.bincount(sample(np.broadcast_to(logits, (draws, 4)), rows), minlength=4)
            assert counts[2:].sum() == 0
            assert abs(counts[0] / draws - 0.5) < 4 * np.sqrt(0.25 / draws)

    def test_choices_of_one_request_differ(self) -> None:
        rows = [Choice(1.0, seed=5, choice=c) for c in range(50)]
        assert len(set(sample(np.zeros((50, 1000), np.float32), rows))) > 40


class TestLogprobs:
    def test_of_the_unmodified_distribution(self, path: str) -> None:
        logits = peaked(5003)
        exact = logits - np.log(np.exp(logits.astype(np.float64)).sum())
        order = np.lexsort((np.arange(5003), -logits))
        chosen, ids, values = kernels.logprobs(logits, 77, 20)
        assert ids.tolist() == order[:20].tolist()
        np.testing.assert_allclose(values, exact[order[:20]], atol=2e-6)
        assert abs(chosen - exact[77]) < 2e-6

    def test_every_path_gives_the_same_bits(self) -> None:
        logits, results = peaked(3001), []
        before = kernels.kernel_path()
        for name in PATHS:
            kernels.set_kernel_path(name)
            chosen, _, values = kernels.logprobs(logits, 3000, 5)
            results.append(np.append(values, np.float32(chosen)))
        kernels.set_kernel_path(before)
        assert all(same_bits(results[0], other) for other in results)

    def test_ties_go_to_the_lowest_id_and_masked_tokens_are_left_out(self) -> None:
        logits = np.asarray([1, 3, 3, -np.inf, 3, np.nan], np.float32)
        chosen, ids, values = kernels.logprobs(logits, 3, 5)
        assert ids.tolist() == [1, 2, 4, 0]
        assert chosen == -np.inf
        assert values[0] == values[2] > values[3]

    def test_none_asked_for(self) -> None:
        chosen, ids, values = kernels.logprobs(np.zeros(4, np.float32), 2, 0)
        assert abs(chosen + np.log(4)) < 1e-6
        assert len(ids) == len(values) == 0


class TestRefusals:
    @pytest.mark.parametrize(
        ("how", "message"),
        [
            (Choice(-1.0), "temperature"),
            (Choice(float("nan")), "temperature"),
            (Choice(float("inf")), "temperature"),
            (Choice(top_k=-1), "top_k"),
            (Choice(top_p=0.0), "top_p"),
            (Choice(top_p=float("nan")), "top_p"),
            (Choice(min_p=1.5), "min_p"),
            (Choice(min_p=-0.5), "min_p"),
        ],
    )
    def test_parameters(self, how: Choice, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            sample(np.zeros((1, 8), np.float32), [how])

    @pytest.mark.parametrize(
        "logits",
        [
            np.zeros(8, np.float32),
            np.zeros((1, 8)),
            np.zeros((1, 0), np.float32),
            np.zeros((1, 16), np.float32)[:, ::2],
        ],
    )
    def test_logits(self, logits: Any) -> None:
        with pytest.raises(ValueError, match="logits"):
            sample(logits, [Choice()])

    def test_too_few_parameters(self) -> None:
        with pytest.raises(ValueError, match=r"shape \[2\], not \[1\]"):
            sample(np.zeros((2, 8), np.float32), [Choice()])

    def test_tokens_outside_the_row(self) -> None:
        row = np.zeros(8, np.float32)
        for call in (
            lambda: kernels.logprobs(row, 8, 1),
            lambda: kernels.logprobs(row, -1, 1),
            lambda: kernels.logprobs(row, 0, -1),
            lambda: kernels.logprobs(row[None], 0, 1),
            lambda: kernels.gumbel(0, 0, 0, ints([-1])),
        ):
            with pytest.raises(ValueError, match=r"chosen|top|logits|ids"):
                call()
