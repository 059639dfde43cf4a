"""Rows of integers, laid out as the arrays one native call reads.

Rows of one sequence stand together ("a run"); what needs logits is named by index, so the output head sees those rows
and no others.  This file knows shapes, not meaning: nothing here looks at a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import numpy as np
from numpy.typing import NDArray

from twostroke.types import Row

Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Inputs:
    """One step's integers.  M positions in R runs, S of which are sampled."""

    tokens: Ints  # [M]
    positions: Ints  # [M], absolute
    runs: Ints  # [R + 1], where each run begins in tokens
    blocks: Ints  # all block tables, end to end
    tables: Ints  # [R + 1], where each run's table begins in blocks
    samples: Ints  # [S], indices into tokens whose logits are wanted


@dataclass(frozen=True, slots=True)
class Draws:
    """How each of the S sampled rows chooses its token."""

    temperature: NDArray[np.float32]  # [S]
    top_k: Ints  # [S], 0: all
    top_p: NDArray[np.float32]  # [S]
    min_p: NDArray[np.float32]  # [S]
    seed: NDArray[np.uint64]  # [S]
    choice: Ints  # [S]
    position: Ints  # [S], of the token being chosen


def _cut(array: Ints, *lengths: int) -> list[Ints]:
    """Neighbouring parts of one array: to make one and cut it is cheaper than to make several."""
    ends = list(accumulate(lengths))
    return [array[end - length : end] for length, end in zip(lengths, ends, strict=True)]


def lay_out(rows: Sequence[Row]) -> Inputs:
    """The arrays of one step, in the order of `rows`."""
    tokens: list[int] = []
    positions: list[int] = []
    runs, tables = [0], [0]
    blocks: list[int] = []
    samples: list[int] = []
    for row in rows:
        tokens += row.tokens
        positions += range(row.start, row.start + len(row.tokens))
        blocks += row.blocks
        end = len(tokens)
        runs.append(end)
        tables.append(len(blocks))
        samples += range(end - row.samples, end)
    parts = (tokens, positions, runs, blocks, tables, samples)
    return Inputs(*_cut(np.array([*chain.from_iterable(parts)], np.int32), *map(len, parts)))


def draws(rows: Sequence[Row]) -> Draws:
    """One entry per sampled position.  A token's position is one past the row that chooses it."""
    sampled = [(row, end) for row in rows for end in _choice_positions(row)]
    return Draws(
        temperature=np.array([row.sampling.temperature for row, _ in sampled], np.float32),
        top_k=np.array([row.sampling.top_k for row, _ in sampled], np.int32),
        top_p=np.array([row.sampling.top_p for row, _ in sampled], np.float32),
        min_p=np.array([row.sampling.min_p for row, _ in sampled], np.float32),
        seed=np.array([row.sampling.seed & 0xFFFFFFFFFFFFFFFF for row, _ in sampled], np.uint64),
        choice=np.array([row.choice for row, _ in sampled], np.int32),
        position=np.array([position for _, position in sampled], np.int32),
    )


def _choice_positions(row: Row) -> range:
    end = row.start + len(row.tokens)
    return range(end - row.samples + 1, end + 1)
