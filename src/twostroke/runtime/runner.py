"""The vault: rows of integers go in, the target's own choices come out.

Every array and every byte of KV stays behind this border.  A row's choices depend on the tokens before it and on its
sampling values alone (docs/exactness.md), so nothing here looks at how rows came to stand together.
"""

from __future__ import annotations

from collections.abc import Sequence

from twostroke._kernels import Pool, logprobs, sample
from twostroke.runtime.inputs import Floats, Inputs, draws, lay_out
from twostroke.runtime.models.decoder import Decoder
from twostroke.types import Logprobs, Picks, Row, TokenLogprob


class KernelRunner:
    """Implements `engine.protocols.Runner` with one decoder and the KV store it was recorded over."""

    def __init__(self, decoder: Decoder, pool: Pool) -> None:
        self.decoder = decoder
        self._pool = pool

    def execute(self, rows: Sequence[Row]) -> Sequence[Picks]:
        """One forward pass.  Raises ValueError where a row names a token, block or position that does not exist."""
        for row in rows:
            for copy in row.copies:
                self.decoder.store.copy(copy.source, copy.target, copy.tokens)
        if not rows:
            return ()
        inputs = lay_out(rows)
        return self._choose(rows, self.run(inputs), inputs)

    def run(self, inputs: Inputs) -> Floats:
        """Logits [S, vocab] of all sampled positions, row after row; a view that the next pass overwrites."""
        return self.decoder.run(inputs)

    def _choose(self, rows: Sequence[Row], logits: Floats, inputs: Inputs) -> list[Picks]:
        if not len(logits):
            return [Picks(()) for _ in rows]
        keys = draws(rows)
        chosen = sample(
            logits,
            keys.temperature,
            keys.top_k,
            keys.top_p,
            keys.min_p,
            keys.seed,
            keys.choice,
            inputs.chosen,
            self._pool,
        ).tolist()
        picks, begin = [], 0
        for row in rows:
            end = begin + row.samples
            tokens = tuple(chosen[begin:end])
            picks.append(Picks(tokens, _logprobs(logits[begin:end], tokens, row.sampling.logprobs)))
            begin = end
        return picks


def _logprobs(logits: Floats, tokens: Sequence[int], top: int | None) -> tuple[Logprobs, ...]:
    if top is None:
        return ()
    return tuple(_at(row, token, top) for row, token in zip(logits, tokens, strict=True))


def _at(row: Floats, token: int, top: int) -> Logprobs:
    chosen, ids, values = logprobs(row, token, top)
    best = tuple(TokenLogprob(i, v) for i, v in zip(ids.tolist(), values.tolist(), strict=True))
    return Logprobs(TokenLogprob(token, chosen), best)
