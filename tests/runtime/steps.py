"""Steps for tests of recorded programs: shares of sequences, laid out as the arrays that `Program.run` takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twostroke import _kernels as kernels

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Share:
    """Consecutive positions of one sequence, from `start`."""

    tokens: Sequence[int]
    start: int
    blocks: Sequence[int]


def ints(values: Sequence[int]) -> NDArray[np.int32]:
    return np.asarray(values, np.int32)


def offsets(lengths: Sequence[int]) -> NDArray[np.int32]:
    return ints([0, *np.cumsum(lengths)])


def run(program: kernels.Program, shares: Sequence[Share], samples: Sequence[int], output: int) -> Floats:
    """Runs one step; a view of the sampled rows of `output`."""
    return program.run(
        ints([t for s in shares for t in s.tokens]),
        ints([s.start + i for s in shares for i in range(len(s.tokens))]),
        offsets([len(s.tokens) for s in shares]),
        ints([b for s in shares for b in s.blocks]),
        offsets([len(s.blocks) for s in shares]),
        ints(samples),
        output,
    )


def chunked(tokens: Sequence[int], size: int, blocks: Sequence[int]) -> list[Share]:
    """The same tokens in shares of `size`."""
    return [Share(tokens[i : i + size], i, blocks) for i in range(0, len(tokens), size)]


def same_bits(a: NDArray[np.float32], b: NDArray[np.float32]) -> bool:
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return a.shape == b.shape and bool((a.view(np.int32) == b.view(np.int32)).all())
