"""The weight types of a GGUF file: how many weights a block holds, and in how many bytes.

Numbers are ggml's, as they stand in the file.  This file knows sizes only, not what the bytes mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType


class WeightType(IntEnum):
    """The weight types that are read here, numbered as in ggml's `enum ggml_type`."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    BF16 = 30


@dataclass(frozen=True, slots=True)
class Block:
    """The unit of storage: `weights` consecutive weights of one row, in `bytes` bytes."""

    weights: int
    bytes: int


BLOCKS: Mapping[WeightType, Block] = MappingProxyType(
    {
        WeightType.F32: Block(1, 4),
        WeightType.F16: Block(1, 2),
        WeightType.BF16: Block(1, 2),
        WeightType.Q4_0: Block(32, 2 + 16),
        WeightType.Q4_1: Block(32, 2 + 2 + 16),
        WeightType.Q5_0: Block(32, 2 + 4 + 16),
        WeightType.Q5_1: Block(32, 2 + 2 + 4 + 16),
        WeightType.Q8_0: Block(32, 2 + 32),
        WeightType.Q4_K: Block(256, 2 + 2 + 12 + 128),
        WeightType.Q5_K: Block(256, 2 + 2 + 12 + 32 + 128),
        WeightType.Q6_K: Block(256, 128 + 64 + 16 + 2),
    }
)

# Types that exist but are not read here, so that an error can call them by their name.
FOREIGN: Mapping[int, str] = MappingProxyType(
    {
        9: "Q8_1",
        10: "Q2_K",
        11: "Q3_K",
        15: "Q8_K",
        16: "IQ2_XXS",
        17: "IQ2_XS",
        18: "IQ3_XXS",
        19: "IQ1_S",
        20: "IQ4_NL",
        21: "IQ3_S",
        22: "IQ2_S",
        23: "IQ4_XS",
        24: "I8",
        25: "I16",
        26: "I32",
        27: "I64",
        28: "F64",
        29: "IQ1_M",
        34: "TQ1_0",
        35: "TQ2_0",
        39: "MXFP4",
    }
)


def supported() -> str:
    """The names of all readable types, for messages."""
    return ", ".join(kind.name for kind in WeightType)
