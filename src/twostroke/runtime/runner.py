"""The vault: rows of integers go in, the target's own choices come out.

Every array and every byte of KV stays behind this border.  A row's choices depend on the tokens before it and on its
sampling values alone (docs/exactness.md), so nothing here looks at how rows came to stand together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from twostroke._kernels import Pool, logprobs, sample
from twostroke.runtime.adjust import Adjuster, adjusts
from twostroke.runtime.inputs import Floats, Inputs, draws, lay_out
from twostroke.runtime.models.decoder import Decoder
from twostroke.types import Logprobs, Picks, Row, TokenLogprob


class KernelRunner:
    """Implements `engine.protocols.Runner` with one decoder and the KV store it was recorded over."""

    def __init__(self, decoder: Decoder, pool: Pool) -> None:
        self.decoder = decoder
        self._pool = pool
        self._adjust = Adjuster()

    def execute(self, rows: Sequence[Row]) -> Sequence[Picks]:
        """One forward pass.  Raises ValueError where a row names a token, block or position that does not exist."""
        for row in rows:
            for copy in row.copies:
                self.decoder.store.copy(copy.source, copy.target, copy.tokens)
        if not rows:
            return ()
        inputs = lay_out(rows)
        logits, sampled = self.run(inputs), len(inputs.chosen)
        picks = self._choose(rows, logits[:sampled], inputs)
        return _scored(rows, picks, logits[sampled:]) if len(logits) > sampled else picks

    def run(self, inputs: Inputs) -> Floats:
        """Logits [S + Z, vocab] of all sampled, then all scored positions; a view that the next pass overwrites."""
        return self.decoder.run(inputs)

    def _choose(self, rows: Sequence[Row], logits: Floats, inputs: Inputs) -> list[Picks]:
        if not len(logits):
            return [Picks(()) for _ in rows]
        plain, errors = self._adjusted(rows, logits)
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
            unmodified = plain.get(row.sequence, logits[begin:end])
            picks.append(
                Picks(tokens, _logprobs(unmodified, tokens, row.sampling.logprobs), error=errors.get(row.sequence))
            )
            begin = end
        return picks

    def _adjusted(self, rows: Sequence[Row], logits: Floats) -> tuple[dict[int, Floats], dict[int, str]]:
        """Change the logits of rows that ask for it.

        Returns copies of those whose probabilities are reported, and why grammars failed, both by sequence.
        """
        plain: dict[int, Floats] = {}
        errors: dict[int, str] = {}
        begin = 0
        for row in rows:
            end = begin + row.samples
            if adjusts(row):
                if row.sampling.logprobs is not None:
                    plain[row.sequence] = np.array(logits[begin:end])
                if (error := self._adjust(row, logits[begin:end])) is not None:
                    errors[row.sequence] = error
            begin = end
        return plain, errors


def _scored(rows: Sequence[Row], picks: Sequence[Picks], logits: Floats) -> list[Picks]:
    """The picks, with what was asked about known tokens; logits [Z, vocab], row after row."""
    scored, begin = [], 0
    for row, pick in zip(rows, picks, strict=True):
        end = begin + len(row.scores)
        scored.append(replace(pick, scores=_logprobs(logits[begin:end], row.scores, row.alternatives)))
        begin = end
    return scored


def _logprobs(logits: Floats, tokens: Sequence[int], top: int | None) -> tuple[Logprobs, ...]:
    if top is None:
        return ()
    return tuple(_at(row, token, top) for row, token in zip(logits, tokens, strict=True))


def _at(row: Floats, token: int, top: int) -> Logprobs:
    chosen, ids, values = logprobs(row, token, top)
    best = tuple(TokenLogprob(i, v) for i, v in zip(ids.tolist(), values.tolist(), strict=True))
    return Logprobs(TokenLogprob(token, chosen), best)
