"""A `Runner` over the float64 reference, one token at a time: slow, plain, and indifferent to batch and chunking.

Each token is computed alone from cells found through its row's block table, so a result depends on the tokens before
it and on nothing else.  A cell nobody wrote holds NaN and ends in `RunnerFailed`, never in a token.  Meant for tiny
models and for tests; it knows nothing of requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from twostroke.errors import RunnerFailed
from twostroke.runtime.adjust import Adjuster, adjusts
from twostroke.runtime.reference import Array, Reference, log_softmax, softmax
from twostroke.types import Logprobs, Picks, Row, Sampling, TokenLogprob

Choose = Callable[[Array, Sampling, int, int], int]  # logits [vocab], sampling, choice, position of the chosen token


class ReferenceRunner:
    """Keeps KV for `blocks` blocks of `block_size` positions, float64."""

    def __init__(self, model: Reference, blocks: int, block_size: int = 16, choose: Choose | None = None) -> None:
        config = model.config
        shape = (config.layers, blocks * block_size, config.kv_heads, config.head_dim)
        self._model = model
        self._block_size = block_size
        self._choose = choose or draw
        self._adjust = Adjuster()
        self._keys = np.full(shape, np.nan)
        self._values = np.full(shape, np.nan)

    def execute(self, rows: Sequence[Row]) -> list[Picks]:
        """One forward pass over all rows; all copies are made first.  Raises `RunnerFailed` on unwritten KV."""
        for copy in (copy for row in rows for copy in row.copies):
            source, target = copy.source * self._block_size, copy.target * self._block_size
            for cells in (self._keys, self._values):
                cells[:, target : target + copy.tokens] = cells[:, source : source + copy.tokens]
        return [self._run(row) for row in rows]

    def _run(self, row: Row) -> Picks:
        hidden = [self._token(row, row.start + i, token) for i, token in enumerate(row.tokens)]
        first = len(row.tokens) - row.samples
        logits = [self._logits(row, state) for state in hidden[first:]]
        changed, error = self._adjusted(row, logits)
        places = range(row.start + first + 1, row.start + len(row.tokens) + 1)
        tokens = [
            self._choose(line, row.sampling, row.choice, place) for line, place in zip(changed, places, strict=True)
        ]
        scored = [self._logits(row, state) for state in hidden[: len(row.scores)]]
        return Picks(
            tuple(tokens),
            _reports(logits, tokens, row.sampling.logprobs),
            _reports(scored, row.scores, row.alternatives),
            error,
        )

    def _adjusted(self, row: Row, logits: Sequence[Array]) -> tuple[Sequence[Array], str | None]:
        if not adjusts(row):
            return logits, None
        changed = np.array(logits)
        error = self._adjust(row, changed)
        return list(changed), error

    def _token(self, row: Row, position: int, token: int) -> Array:
        where = np.arange(position + 1)
        cells = np.array(row.blocks)[where // self._block_size] * self._block_size + where % self._block_size
        return self._model.hidden([token], position, _Paged(self._keys, self._values, cells))

    def _logits(self, row: Row, hidden: Array) -> Array:
        logits: Array = self._model.head(hidden)[0]
        if not np.isfinite(logits).all():
            raise RunnerFailed(f"sequence {row.sequence} reads KV that nobody wrote, among its positions")
        return logits


class _Paged:
    """The memory of one token: cells 0…position of its sequence, the last of which it writes."""

    def __init__(self, keys: Array, values: Array, cells: NDArray[np.int64]) -> None:
        self._keys = keys
        self._values = values
        self._cells = cells

    def extend(self, layer: int, keys: Array, values: Array) -> tuple[Array, Array]:
        self._keys[layer, self._cells[-1]] = keys[0]
        self._values[layer, self._cells[-1]] = values[0]
        return self._keys[layer, self._cells], self._values[layer, self._cells]


def draw(logits: Array, sampling: Sampling, choice: int, position: int) -> int:
    """argmax(logits / T + gumbel) over the candidates that top-k, then top-p, then min-p leave.

    The noise of a token is keyed by (seed, choice, position, token), so that it is the same whoever draws.
    """
    if sampling.temperature == 0.0:
        return int(np.argmax(logits))
    scaled = logits / sampling.temperature
    order = np.argsort(-scaled, kind="stable")[: sampling.top_k or None]
    weights = softmax(scaled[order])
    order = order[np.cumsum(weights) - weights < sampling.top_p]
    order = order[scaled[order] >= scaled[order[0]] + np.log(max(sampling.min_p, np.finfo(float).tiny))]
    key = np.array([sampling.seed % 2**64, choice << 40 | position], np.uint64)
    noise = np.random.Generator(np.random.Philox(key=key)).gumbel(size=len(logits))
    return int(order[np.argmax(scaled[order] + noise[order])])


def _reports(logits: Sequence[Array], tokens: Sequence[int], count: int | None) -> tuple[Logprobs, ...]:
    if count is None:
        return ()
    return tuple(_report(line, token, count) for line, token in zip(logits, tokens, strict=True))


def _report(logits: Array, token: int, count: int) -> Logprobs:
    logprobs = log_softmax(logits)
    best = np.argsort(-logprobs, kind="stable")[:count].tolist()
    chosen, *top = (TokenLogprob(t, float(logprobs[t])) for t in (token, *best))
    return Logprobs(chosen, tuple(top))
