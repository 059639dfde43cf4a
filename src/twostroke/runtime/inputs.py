"""Rows of integers, laid out as the arrays one native call reads.

Rows of one sequence stand together ("a run"); what needs logits is named by index, so the output head sees those rows
and no others.  This file knows shapes, not meaning: nothing here looks at a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain

import numpy as np
from numpy.typing import NDArray

from twostroke.types import Row, Sampling

Ints = NDArray[np.int32]
Words = NDArray[np.uint64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Inputs:
    """One step's integers.  M positions in R runs, S of which are sampled and Z scored."""

    tokens: Ints  # [M]
    positions: Ints  # [M], absolute
    runs: Ints  # [R + 1], where each run begins in tokens
    blocks: Ints  # all block tables, end to end
    tables: Ints  # [R + 1], where each run's table begins in blocks
    samples: Ints  # [S + Z], indices into tokens whose logits are wanted: all that are sampled, then the scored
    chosen: Ints  # [S], absolute positions of the tokens that are chosen from them


@dataclass(frozen=True, slots=True)
class Draws:
    """How each of the S sampled rows chooses its token, but for the position it fills."""

    temperature: Floats  # [S]
    top_k: Ints  # [S], 0: all
    top_p: Floats  # [S]
    min_p: Floats  # [S]
    seed: Words  # [S]
    choice: Ints  # [S]


def _cut(array: Ints, *lengths: int) -> list[Ints]:
    """Neighbouring parts of one array: to make one and cut it is cheaper than to make several."""
    ends = list(accumulate(lengths))
    return [array[end - length : end] for length, end in zip(lengths, ends, strict=True)]


def lay_out(rows: Sequence[Row]) -> Inputs:
    """The arrays of one step, in the order of `rows`.  A token fills the position after the one it is chosen from."""
    tokens: list[int] = []
    positions: list[int] = []
    runs, tables = [0], [0]
    blocks: list[int] = []
    samples: list[int] = []
    scored: list[int] = []
    chosen: list[int] = []
    for row in rows:
        tokens += row.tokens
        positions += range(row.start, row.start + len(row.tokens))
        blocks += row.blocks
        end = len(tokens)
        if row.scores:
            scored += range(runs[-1], runs[-1] + len(row.scores))
        runs.append(end)
        tables.append(len(blocks))
        samples += range(end - row.samples, end)
        after = row.start + len(row.tokens)
        chosen += range(after - row.samples + 1, after + 1)
    parts = (tokens, positions, runs, blocks, tables, samples + scored, chosen)
    return Inputs(*_cut(np.array([*chain.from_iterable(parts)], np.int32), *map(len, parts)))


def draws(rows: Sequence[Row]) -> Draws:
    """One entry per sampled position.  Step after step they are the same, so they are kept."""
    return _draws(tuple([(row.sampling, row.choice, row.samples) for row in rows]))


@lru_cache(maxsize=32)
def _draws(wanted: tuple[tuple[Sampling, int, int], ...]) -> Draws:
    sampled = [(sampling, choice) for sampling, choice, samples in wanted for _ in range(samples)]
    values = (
        np.array([s.temperature for s, _ in sampled], np.float32),
        np.array([s.top_k for s, _ in sampled], np.int32),
        np.array([s.top_p for s, _ in sampled], np.float32),
        np.array([s.min_p for s, _ in sampled], np.float32),
        np.array([s.seed & 0xFFFFFFFFFFFFFFFF for s, _ in sampled], np.uint64),
        np.array([choice for _, choice in sampled], np.int32),
    )
    for array in values:
        array.flags.writeable = False  # the next step has the same one
    return Draws(*values)
