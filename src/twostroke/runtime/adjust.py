"""What a request changes about the logits before a token is chosen: penalties, bias, withheld tokens, its grammar.

Every row that is verified has a history of its own: the prompt, what was written, and the drafts before it.  All float
operations are elementwise, in one order (repetition, frequency, presence, bias), so the result depends on the row's
logits and history alone.  Rows that ask for nothing never come here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twostroke.types import Row, Sampling

Logits = NDArray[Any]  # [samples, vocabulary], float32 (float64 for the reference), changed in place
Ids = NDArray[np.intp]
PROMPTS = 64  # prompts whose distinct tokens are kept
# By a byte of a mask, the most that each of its eight tokens' logits may be: bounds are many times faster to apply than
# bits, and leave the logits below them as they are.
BOUNDS = np.where(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little"), np.inf, -np.inf)
BOUNDS = BOUNDS.astype(np.float32)


def adjusts(row: Row) -> bool:
    """Whether the row's logits are changed before a token is chosen."""
    return bool(row.samples) and bool(row.prompt or row.grammar is not None or row.sampling.bias)


class Adjuster:
    """Changes the logits of rows; keeps what it found out about the prompts in use."""

    def __init__(self) -> None:
        # By identity, not by content: how long one client's row takes says nothing about another's prompt.
        self._prompts: dict[int, tuple[tuple[int, ...], Ids]] = {}

    def __call__(self, row: Row, logits: Logits) -> str | None:
        """Change logits [row.samples, vocabulary] in place; why the row's grammar failed, or None."""
        drafts = row.tokens[len(row.tokens) - row.drafts :]
        for i, line in enumerate(logits):
            if row.prompt and row.sampling.penalizes:
                self._penalize(line, row, (*row.written, *drafts[:i]))
            if row.sampling.bias:
                _add(line, row.sampling.bias)
            if row.prompt and len(row.written) + i < row.sampling.min_tokens:
                line[_known(row.sampling.withheld, len(line))] = -np.inf
        return _confine(row, logits, drafts)

    def _penalize(self, line: Logits, row: Row, answer: Sequence[int]) -> None:
        sampling = row.sampling
        ids, counts = np.unique(np.array(answer, np.intp), return_counts=True)
        if sampling.repetition_penalty != 1.0:
            prompt = self._distinct(row.prompt)
            places = np.minimum(np.searchsorted(prompt, ids), len(prompt) - 1)
            _repeat(line, prompt, sampling.repetition_penalty)
            _repeat(line, ids[prompt[places] != ids], sampling.repetition_penalty)
        if len(ids) and (sampling.frequency_penalty or sampling.presence_penalty):
            _subtract(line, ids, counts, sampling)

    def _distinct(self, prompt: tuple[int, ...]) -> Ids:
        kept = self._prompts.get(id(prompt))
        if kept is None or kept[0] is not prompt:
            kept = prompt, np.unique(np.array(prompt, np.intp))
            self._prompts[id(prompt)] = kept
            if len(self._prompts) > PROMPTS:
                del self._prompts[next(iter(self._prompts))]
        return kept[1]


def _repeat(line: Logits, ids: Ids, penalty: float) -> None:
    values, factor = line[ids], line.dtype.type(penalty)
    line[ids] = np.where(values > 0, values / factor, values * factor)


def _subtract(line: Logits, ids: Ids, counts: NDArray[Any], sampling: Sampling) -> None:
    number = line.dtype.type
    line[ids] -= counts.astype(line.dtype) * number(sampling.frequency_penalty)
    line[ids] -= number(sampling.presence_penalty)


def _add(line: Logits, bias: tuple[tuple[int, float], ...]) -> None:
    ids, values = _columns(bias)
    known = ids < len(line)  # a draft model may know fewer tokens
    line[ids[known]] += values[known].astype(line.dtype)


@lru_cache(maxsize=32)
def _columns(bias: tuple[tuple[int, float], ...]) -> tuple[Ids, NDArray[np.float64]]:
    return np.array([token for token, _ in bias], np.intp), np.array([value for _, value in bias], np.float64)


def _known(tokens: Sequence[int], vocabulary: int) -> list[int]:
    return [token for token in tokens if token < vocabulary]


def _confine(row: Row, logits: Logits, drafts: Sequence[int]) -> str | None:
    """Remove what the grammar forbids.  One that fails does so for its own row."""
    if row.grammar is None:
        return None
    try:
        masks = np.frombuffer(row.grammar.allowed(drafts), np.uint8).reshape(len(logits), -1)
        width = min(logits.shape[1], 8 * masks.shape[1])
        for line, mask in zip(logits, masks, strict=True):
            np.minimum(line[:width], BOUNDS.take(mask, axis=0).reshape(-1)[:width], out=line[:width])
            line[width:] = -np.inf
    except Exception as error:
        return f"the grammar failed: {error}"
    return None
