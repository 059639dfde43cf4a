"""One model at the runner: how long a forward pass over given rows takes, Python included.

The KV that rows attend to is written beforehand, so that it is memory and not untouched zero pages.  Choices are
thrown away.  There is no scheduler here: rows are made by hand, as verification, batching and prefill would make them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import Literal

import numpy as np

from twostroke._kernels import KVStore, Pool, read_bandwidth
from twostroke.assemble import Model
from twostroke.runtime.models.decoder import Decoder
from twostroke.runtime.runner import KernelRunner
from twostroke.types import Row, Sampling

BLOCK = KVStore.BLOCK_TOKENS
CHUNK = 512  # prompt tokens a step
SHORT = 128  # positions before a row on a "short" context
MOST_SEQUENCES = 16
PROBE_BYTES = 1 << 30  # several times any last-level cache
GREEDY = Sampling()


class Bed:
    """A decoder over `context` positions of written KV, and makers of rows for it."""

    def __init__(self, model: Model, pool: Pool, kv_type: Literal["q16", "q8"] = "q16") -> None:
        config = model.config
        self.vocab = config.vocab
        self.context = model.context
        short_blocks = MOST_SEQUENCES * _blocks_for(SHORT + MOST_SEQUENCES)
        blocks = max(_blocks_for(model.context), short_blocks)
        self.store = KVStore(config.layers, blocks, config.kv_heads, config.head_dim, kv_type)
        self.runner = KernelRunner(Decoder(config, model.weights, self.store, pool, CHUNK), pool)
        _write(self.store)

    def one_sequence(self, rows: int, end: int = SHORT + MOST_SEQUENCES) -> list[Row]:
        """`rows` rows of one sequence, the last at position `end` − 1: what verifying `rows` − 1 drafts computes."""
        blocks = tuple(range(_blocks_for(end)))
        return [Row(0, end - rows, self._tokens(rows), rows - 1, rows, blocks, GREEDY)]

    def sequences(self, count: int) -> list[Row]:
        """One row each of `count` sequences on short contexts: what a decoding batch computes."""
        each = _blocks_for(SHORT + 1)
        return [self._single(number, tuple(range(number * each, (number + 1) * each))) for number in range(count)]

    def _single(self, number: int, blocks: tuple[int, ...]) -> Row:
        return Row(number, SHORT, self._tokens(1, number), 0, 1, blocks, GREEDY)

    def prompt(self, tokens: int) -> list[list[Row]]:
        """The steps that read a prompt of so many tokens, chunk by chunk; only the last samples."""
        return [self._chunk(begin, min(begin + CHUNK, tokens), tokens) for begin in range(0, tokens, CHUNK)]

    def _chunk(self, begin: int, end: int, tokens: int) -> list[Row]:
        blocks = tuple(range(_blocks_for(end)))
        return [Row(0, begin, self._tokens(end - begin, begin), 0, int(end == tokens), blocks, GREEDY)]

    def _tokens(self, count: int, seed: int = 0) -> tuple[int, ...]:
        return tuple(np.random.default_rng(seed).integers(0, self.vocab, count).tolist())

    def seconds(self, *steps: Sequence[Row]) -> float:
        """How long these steps take, one after another."""
        began = perf_counter()
        for rows in steps:
            self.runner.execute(rows)
        return perf_counter() - began


def _blocks_for(positions: int) -> int:
    return -(-positions // BLOCK)


def _write(store: KVStore) -> None:
    """Fill every cell with ordinary numbers."""
    shape = (store.kv_heads, BLOCK, store.head_dim)
    keys, values = np.random.default_rng(0).standard_normal((2, *shape), dtype=np.float32)
    for layer in range(store.layers):
        for block in range(store.blocks):
            store.write(layer, block, keys, values)


def bandwidth(pool: Pool) -> float:
    """Bytes a second that all threads read from memory together, now."""
    return median(read_bandwidth(pool, PROBE_BYTES, 3)) * 1e9
