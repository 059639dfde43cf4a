"""Block sizes and numbers are ggml's."""

from __future__ import annotations

import gguf as oracle
import pytest

from twostroke.runtime.weights.formats import BLOCKS, FOREIGN, WeightType, supported


@pytest.mark.parametrize("kind", list(WeightType))
def test_numbers_and_sizes_are_those_of_ggml(kind: WeightType) -> None:
    theirs = oracle.GGMLQuantizationType(int(kind))
    assert theirs.name == kind.name
    assert oracle.GGML_QUANT_SIZES[theirs] == (BLOCKS[kind].weights, BLOCKS[kind].bytes)


def test_foreign_types_are_named_as_in_ggml_and_not_supported() -> None:
    theirs = {int(kind): kind.name for kind in oracle.GGMLQuantizationType}
    for number, name in FOREIGN.items():
        assert theirs[number] == name
        assert number not in set(WeightType)


def test_every_supported_type_is_listed_for_messages() -> None:
    assert supported().split(", ") == [kind.name for kind in WeightType]
