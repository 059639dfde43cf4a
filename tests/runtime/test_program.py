"""A whole recorded model against the same model in NumPy, bit for bit; and what a program refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime import emulated
from tests.runtime.steps import Share, chunked, ints, run, same_bits
from twostroke import _kernels as kernels

PATHS = kernels.kernel_paths()
F32, Q8_0 = 0, 8
EPS = 1e-5
POOL = kernels.Pool(1)


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    before = kernels.kernel_path()
    kernels.set_kernel_path(request.param)
    yield request.param
    kernels.set_kernel_path(before)


@dataclass
class Decoder:
    """A random decoder: its tensors, and its forward pass in NumPy over float rows and the kernels' products."""

    kind: int = Q8_0
    layers: int = 2
    width: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    ffn: int = 96
    vocabulary: int = 50
    context: int = 600
    pairing: str = "neox"
    store: str = "q16"
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def __post_init__(self) -> None:
        attended, stored = self.heads * self.head_dim, self.kv_heads * self.head_dim
        self.embedding = self.weight(self.vocabulary, self.width)
        self.head = self.weight(self.vocabulary, self.width)
        self.blocks = [
            {
                "q": self.weight(attended, self.width),
                "k": self.weight(stored, self.width),
                "v": self.weight(stored, self.width),
                "o": self.weight(self.width, attended),
                "gate": self.weight(self.ffn, self.width),
                "up": self.weight(self.ffn, self.width),
                "down": self.weight(self.width, self.ffn),
            }
            for _ in range(self.layers)
        ]
        self.bias = self.floats(attended) * np.float32(0.1)
        self.gains = [1 + self.floats(self.width) * np.float32(0.1) for _ in range(2 * self.layers + 1)]
        angles = np.arange(self.context)[:, None] / 100.0 ** (np.arange(self.head_dim // 2) / (self.head_dim // 2))
        self.cos, self.sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def floats(self, *shape: int) -> np.ndarray:
        return self.random.standard_normal(shape).astype(np.float32)

    def weight(self, rows: int, cols: int) -> kernels.Weight:
        if self.kind == F32:
            data = (self.floats(rows, cols) / np.float32(cols**0.5)).reshape(-1).view(np.uint8)
        else:
            codes = self.random.integers(-127, 128, (rows * cols // 32, 32)).astype(np.int8)
            scale = np.full((len(codes), 1), 1 / 64 / cols**0.5, np.float16)
            data = np.concatenate([scale.view(np.uint8), codes.view(np.uint8)], axis=1).reshape(-1)
        return kernels.Weight.pack(self.kind, rows, cols, np.ascontiguousarray(data))

    def logits(self, tokens: Sequence[int]) -> np.ndarray:
        """All positions of one sequence, [tokens, vocabulary]."""
        x = self.embedding.dequantize(np.asarray(tokens, np.int64))
        n, group, scale = len(tokens), self.heads // self.kv_heads, np.float32(self.head_dim**-0.5)
        for i, block in enumerate(self.blocks):
            h = emulated.rms_norm(x, self.gains[2 * i], EPS)
            q = kernels.multiply(POOL, block["q"], h, self.bias).reshape(n, self.heads, -1)
            k = kernels.multiply(POOL, block["k"], h).reshape(n, self.kv_heads, -1)
            v = kernels.multiply(POOL, block["v"], h).reshape(n, self.kv_heads, -1)
            cos, sin = self.cos[:n, None], self.sin[:n, None]
            q = emulated.rotate(q, cos, sin, self.pairing) * scale
            k = emulated.rotate(k, cos, sin, self.pairing)
            keys, values = (y.swapaxes(0, 1).repeat(group, axis=0) for y in (k, v))
            rows = [emulated.attention(q[m], keys[:, : m + 1], values[:, : m + 1], self.store) for m in range(n)]
            x = x + kernels.multiply(POOL, block["o"], np.stack(rows).reshape(n, -1))
            h = emulated.rms_norm(x, self.gains[2 * i + 1], EPS)
            gate, up = kernels.multiply(POOL, block["gate"], h), kernels.multiply(POOL, block["up"], h)
            x = x + kernels.multiply(POOL, block["down"], emulated.silu_mul(gate, up))
        return kernels.multiply(POOL, self.head, emulated.rms_norm(x, self.gains[-1], EPS))

    def record(self, threads: int = 1, max_rows: int = 64, blocks: int = 48) -> Recorded:
        store = kernels.KVStore(self.layers, blocks, self.kv_heads, self.head_dim, self.store)
        store.poison()
        p = kernels.Program(kernels.Pool(threads), max_rows)
        first, attended, stored = self.blocks[0], self.heads * self.head_dim, self.kv_heads * self.head_dim
        x, qkv, gate_up = p.register(self.width), p.register(attended + 2 * stored), p.register(2 * self.ffn)
        hidden, mixed, gated = p.activations(first["q"]), p.activations(first["o"]), p.activations(first["down"])
        p.embed(self.embedding, x)
        for i, block in enumerate(self.blocks):
            p.norm(x, self.gains[2 * i], EPS, quantized=[hidden])
            q = (block["q"], hidden, qkv, 0, self.bias, False)
            k = (block["k"], hidden, qkv, attended, None, False)
            v = (block["v"], hidden, qkv, attended + stored, None, False)
            p.multiply([q, k, v])
            p.rope_store(qkv, self.heads, store, i, self.cos, self.sin, self.pairing)
            p.attend(qkv, self.heads, store, i, self.head_dim**-0.5, quantized=[mixed])
            p.multiply([(block["o"], mixed, x, 0, None, True)])
            p.norm(x, self.gains[2 * i + 1], EPS, quantized=[hidden])
            p.multiply(
                [
                    (block["gate"], hidden, gate_up, 0, None, False),
                    (block["up"], hidden, gate_up, self.ffn, None, False),
                ]
            )
            p.silu_mul(gate_up, quantized=[gated])
            p.multiply([(block["down"], gated, x, 0, None, True)])
        last, logits = p.register(self.width), p.register(self.vocabulary)
        p.gather(x, last)
        p.norm(last, self.gains[-1], EPS, quantized=[hidden])
        p.multiply([(self.head, hidden, logits, 0, None, False)])
        return Recorded(p, store, logits)


@dataclass(frozen=True)
class Recorded:
    program: kernels.Program
    store: kernels.KVStore
    logits: int

    def step(self, shares: Sequence[Share], samples: Sequence[int] | None = None) -> np.ndarray:
        rows = range(sum(len(s.tokens) for s in shares)) if samples is None else samples
        return run(self.program, shares, rows, self.logits).copy()

    def sequence(self, tokens: Sequence[int], size: int, blocks: Sequence[int]) -> np.ndarray:
        return np.concatenate([self.step([share]) for share in chunked(tokens, size, blocks)])


def text(count: int, seed: int = 0) -> list[int]:
    return [int(t) for t in np.random.default_rng(seed).integers(0, 50, count)]


class TestWholeModel:
    @pytest.mark.parametrize("store", ["q16", "q8"])
    @pytest.mark.parametrize("kind", [F32, Q8_0])
    @pytest.mark.parametrize("pairing", ["norm", "neox"])
    def test_is_its_definition(self, path: str, kind: int, pairing: str, store: str) -> None:
        decoder = Decoder(kind, pairing=pairing, store=store)
        tokens = text(35)
        assert same_bits(decoder.record().sequence(tokens, 35, [3, 1, 2]), decoder.logits(tokens))

    @pytest.mark.parametrize("threads", [1, 2, 3])
    @pytest.mark.parametrize("size", [1, 3, 16, 17])
    def test_chunks_and_threads_change_no_bit(self, size: int, threads: int) -> None:
        decoder = Decoder()
        tokens = text(50)
        whole = decoder.record().sequence(tokens, 50, range(4))
        assert same_bits(decoder.record(threads).sequence(tokens, size, [9, 0, 7, 4]), whole)

    def test_paths_change_no_bit(self) -> None:
        decoder = Decoder(layers=3)
        before, results = kernels.kernel_path(), []
        for name in PATHS:
            kernels.set_kernel_path(name)
            results.append(decoder.record(2).sequence(text(64), 21, range(4)))
        kernels.set_kernel_path(before)
        assert all(same_bits(results[0], other) for other in results)

    def test_a_prefix_shared_by_blocks_changes_no_bit(self) -> None:
        decoder = Decoder()
        one, two = text(32) + text(9, 1), text(32) + text(13, 2)
        recorded, apart = decoder.record(2), decoder.record()
        recorded.sequence(one, 41, [0, 1, 2])
        shared = recorded.step([Share(two[32:], 32, [0, 1, 5])])
        assert same_bits(shared, apart.sequence(two, 45, range(3))[32:])

    def test_rejected_tokens_leave_no_trace(self) -> None:
        decoder = Decoder()
        tokens, wrong = text(30), text(8, 5)
        recorded = decoder.record(2)
        recorded.step([Share(tokens[:20], 0, [0, 1])])
        recorded.step([Share([tokens[20], *wrong], 20, [0, 1])])
        kept = recorded.step([Share(tokens[21:], 21, [0, 1])])
        assert same_bits(kept, decoder.record().sequence(tokens, 30, [0, 1])[21:])

    @given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 9)), min_size=1, max_size=5), st.integers(1, 3))
    @settings(max_examples=15, deadline=None)
    def test_neighbours_change_no_bit(self, plans: list[tuple[int, int]], threads: int) -> None:
        decoder, recorded, alone, shares = Decoder(layers=1), None, [], []
        recorded = decoder.record(threads)
        for i, (before, now) in enumerate(plans):
            tokens, table = text(before + now, i), list(range(4 * i, 4 * i + 4))
            alone.append(decoder.record().sequence(tokens, before + now, range(4))[before:])
            recorded.step([Share(tokens[:before], 0, table)])
            shares.append(Share(tokens[before:], before, table))
        assert same_bits(recorded.step(shares), np.concatenate(alone))

    def test_logits_of_sampled_rows_only(self) -> None:
        decoder = Decoder()
        recorded, tokens = decoder.record(), text(20)
        every = recorded.step([Share(tokens, 0, [0, 1])])
        assert same_bits(recorded.step([Share(tokens, 0, [0, 1])], [19, 3]), every[[19, 3]])


class TestProfile:
    def test_times_every_operation_only_when_asked(self) -> None:
        recorded = Decoder(layers=1).record()
        recorded.step([Share(text(5), 0, [0])])
        assert not any(seconds for _, seconds in recorded.program.profile())
        recorded.program.profiling = True
        recorded.step([Share(text(5), 0, [0])])
        names = [name for name, _ in recorded.program.profile()]
        assert names[:5] == ["embed", "norm", "multiply", "rope_store", "attend"]
        assert all(seconds > 0 for _, seconds in recorded.program.profile())
        recorded.program.profiling = False
        assert not any(seconds for _, seconds in recorded.program.profile())


class TestRefusals:
    """A wrong argument raises before anything is computed; nothing is read outside."""

    GOOD = {
        "tokens": ints([1, 2, 3, 4]),
        "positions": ints([0, 1, 7, 8]),
        "run_offsets": ints([0, 2, 4]),
        "block_tables": ints([0, 1]),
        "table_offsets": ints([0, 1, 2]),
        "sample_rows": ints([1, 3]),
    }

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("tokens", ints([1, 2, 3, 50]), "token 50"),
            ("tokens", ints([1, 2, 3, -1]), "token -1"),
            ("tokens", np.asarray([1, 2, 3, 4]), "int32"),
            ("tokens", ints([1, 2, 3, 4] * 40), "positions"),
            ("tokens", ints([]), "positions"),
            ("positions", ints([0, 1, 8, 7]), "position 7"),
            ("positions", ints([-1, 0, 7, 8]), "negative"),
            ("positions", ints([0, 1, 15, 16]), "position 16"),
            ("positions", ints([0, 2, 7, 8]), "position 2"),
            ("positions", ints([0, 1, 600, 601]), "context"),
            ("positions", ints([0, 1, 2**31 - 2, 2**31 - 1]), "context"),
            ("positions", ints([0, 1, 7]), "positions"),
            ("run_offsets", ints([0, 2, 3]), "run_offsets"),
            ("run_offsets", ints([0]), "run_offsets"),
            ("run_offsets", ints([0, 5, 4]), "run 0"),
            ("run_offsets", ints([0, 0, 4]), "run 0"),
            ("run_offsets", ints([1, 2, 4]), "run_offsets"),
            ("block_tables", ints([0, 48]), "block 48"),
            ("block_tables", ints([0, -1]), "block -1"),
            ("block_tables", ints([0]), "table_offsets"),
            ("table_offsets", ints([0, 3, 2]), "run 0"),
            ("table_offsets", ints([0, 2]), "table_offsets"),
            ("table_offsets", ints([0, 0, 2]), "beyond its 0 blocks"),
            ("sample_rows", ints([4]), "sample row 4"),
            ("sample_rows", ints([-1]), "sample row -1"),
            ("sample_rows", ints([0] * 65), "at most 64"),
            ("sample_rows", np.zeros((1, 1), np.int32), "sample_rows"),
        ],
    )
    def test_inputs(self, name: str, value: np.ndarray, message: str) -> None:
        recorded = Decoder(layers=1).record()
        assert recorded.program.run(**self.GOOD, output=recorded.logits).shape == (2, 50)
        with pytest.raises(ValueError, match=message):
            recorded.program.run(**{**self.GOOD, name: value}, output=recorded.logits)

    def test_more_rows_than_recorded_for(self) -> None:
        recorded = Decoder(layers=1).record(max_rows=4)
        with pytest.raises(ValueError, match="1 to 4 rows, not 5"):
            recorded.step([Share([0] * 5, 0, [0])])

    def test_strided_arrays(self) -> None:
        recorded = Decoder(layers=1).record()
        with pytest.raises(ValueError, match="strided"):
            recorded.program.run(**{**self.GOOD, "tokens": ints(range(8))[::2]}, output=recorded.logits)

    def test_an_unknown_output(self) -> None:
        recorded = Decoder(layers=1).record()
        with pytest.raises(ValueError, match="no register 99"):
            recorded.program.run(**self.GOOD, output=99)

    @pytest.mark.parametrize(
        "record",
        [
            lambda p, w, s, t: p.register(0),
            lambda p, w, s, t: p.embed(w, 1),
            lambda p, w, s, t: p.embed(w, 7),
            lambda p, w, s, t: p.norm(0, np.ones(63, np.float32), 1e-5, 0),
            lambda p, w, s, t: p.norm(0, np.ones(64, np.float32), 1e-5, 1),
            lambda p, w, s, t: p.norm(0, np.ones(64, np.float32), 1e-5),
            lambda p, w, s, t: p.norm(1, np.ones(96, np.float32), 1e-5, quantized=[0]),
            lambda p, w, s, t: p.quantize(0, [1]),
            lambda p, w, s, t: p.multiply([(w, 0, 0, 15, None, False)]),
            lambda p, w, s, t: p.multiply([(w, 0, 0, -1, None, False)]),
            lambda p, w, s, t: p.multiply([(w, 0, 0, 0, np.ones(49, np.float32), False)]),
            lambda p, w, s, t: p.multiply([(w, 3, 0, 0, None, False)]),
            lambda p, w, s, t: p.rope_store(0, 2, s, 1, t, t, "neox"),
            lambda p, w, s, t: p.rope_store(0, 2, s, 0, t, t[:-1], "neox"),
            lambda p, w, s, t: p.rope_store(0, 2, s, 0, t, t, "other"),
            lambda p, w, s, t: p.rope_store(
                0, 2, s, 0, np.ones((4, 9), np.float32), np.ones((4, 9), np.float32), "neox"
            ),
            lambda p, w, s, t: p.rope_store(1, 2, s, 0, t, t, "neox"),
            lambda p, w, s, t: p.rope_store(0, 2, s, 0, t, t, "neox", np.ones(15, np.float32)),
            lambda p, w, s, t: p.attend(0, 2, s, 0, 1.0),
            lambda p, w, s, t: p.attend(0, 2, s, 0, 1.0, 1),
            lambda p, w, s, t: p.attend(0, 3, s, 0, 1.0, 2),
            lambda p, w, s, t: p.silu_mul(2, 2),
            lambda p, w, s, t: p.add(0, 1),
            lambda p, w, s, t: p.gather(0, 0),
            lambda p, w, s, t: p.gather(0, 1),
        ],
    )
    def test_recordings(self, record: Callable[..., object]) -> None:
        program, store = kernels.Program(POOL, 8), kernels.KVStore(1, 2, 1, 16)
        weight = kernels.Weight.pack(F32, 50, 64, np.zeros(50 * 64 * 4, np.uint8))
        for width in (64, 96, 32):
            program.register(width)
        program.activations(weight)
        with pytest.raises(ValueError, match=r"\w"):
            record(program, weight, store, np.ones((4, 8), np.float32))

    def test_attention_after_gather(self) -> None:
        program, store, table = kernels.Program(POOL, 8), kernels.KVStore(1, 2, 1, 16), np.ones((4, 8), np.float32)
        x, y = program.register(64), program.register(64)
        program.gather(x, y)
        with pytest.raises(ValueError, match="before gather"):
            program.rope_store(x, 2, store, 0, table, table, "neox")
        with pytest.raises(ValueError, match="once"):
            program.gather(x, y)
