"""The reader agrees with the `gguf` package on good files, and no bytes make it fail in any way but a ModelError."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf as oracle
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.tiny import Matrix, Raw, Tiny, gguf_bytes, model_metadata, model_tensors, write_model
from twostroke.errors import Corrupt, ModelError, UnsupportedQuantization
from twostroke.runtime.weights import gguf
from twostroke.runtime.weights.formats import WeightType

VECTOR: Matrix = (0, (4,), np.arange(4, dtype="<f4").tobytes())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.gguf"


def read(path: Path, data: bytes) -> gguf.ModelFile:
    path.write_bytes(data)
    return gguf.read(path)


def small(metadata: Mapping[str, Any] | None = None, tensors: Mapping[str, Matrix] | None = None, **how: int) -> bytes:
    return gguf_bytes({"general.architecture": "llama", **(metadata or {})}, tensors or {"x": VECTOR}, **how)


# --- good files


@pytest.mark.parametrize("kind", [kind.name for kind in WeightType])
def test_agrees_with_the_gguf_package(path: Path, kind: str) -> None:
    ours = gguf.read(write_model(path, Tiny("qwen3", weights=kind, tied=False)))
    theirs = oracle.GGUFReader(path)
    fields = {key: f.contents() for key, f in theirs.fields.items() if not key.startswith("GGUF.")}
    assert dict(ours.metadata) == fields
    assert list(ours.tensors) == [t.name for t in theirs.tensors]
    for tensor in theirs.tensors:
        mine = ours.tensors[tensor.name]
        assert int(mine.type) == int(tensor.tensor_type)
        assert mine.shape == tuple(reversed(tensor.shape.tolist()))
        assert mine.data.tobytes() == tensor.data.tobytes()


def test_reads_what_the_gguf_package_writes(path: Path) -> None:
    writer = oracle.GGUFWriter(path, "llama")
    writer.add_uint64("a.u64", 2**63)
    writer.add_int8("a.i8", -3)
    writer.add_float64("a.f64", 0.1)
    writer.add_array("a.words", ["one", "zwei", "三"])
    writer.add_array("a.floats", [0.5, -1.5])
    writer.add_tensor("t", np.ones((2, 3, 4), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = gguf.read(path)
    assert file.metadata == {
        "general.architecture": "llama",
        "a.u64": 2**63,
        "a.i8": -3,
        "a.f64": 0.1,
        "a.words": ["one", "zwei", "三"],
        "a.floats": [0.5, -1.5],
    }
    assert file.tensors["t"].shape == (2, 3, 4)
    assert file.tensors["t"].data.view("<f4").tolist() == [1.0] * 24


@pytest.mark.parametrize(
    ("kind", "form", "value"),
    [
        (0, "B", 255),
        (1, "b", -128),
        (2, "H", 65535),
        (3, "h", -32768),
        (4, "I", 2**32 - 1),
        (5, "i", -(2**31)),
        (6, "f", 0.25),
        (7, "?", True),
        (10, "Q", 2**64 - 1),
        (11, "q", -(2**63)),
        (12, "d", 1e-300),
    ],
)
def test_every_scalar_type_alone_and_in_an_array(path: Path, kind: int, form: str, value: Any) -> None:
    one = struct.pack("<" + form, value)
    array = struct.pack("<IQ", kind, 3) + one * 3
    metadata = read(path, small({"one": Raw(kind, one), "three": Raw(9, array)})).metadata
    assert metadata["one"] == value
    assert type(metadata["one"]) is type(value)
    assert metadata["three"] == [value] * 3


def test_empty_arrays_and_arrays_of_arrays(path: Path) -> None:
    pair = struct.pack("<IQ", 5, 2) + struct.pack("<ii", 1, 2)
    nested = struct.pack("<IQ", 9, 2) + pair + pair
    empty = struct.pack("<IQ", 8, 0)
    metadata = read(path, small({"nested": Raw(9, nested), "empty": Raw(9, empty)})).metadata
    assert metadata["nested"] == [[1, 2], [1, 2]]
    assert metadata["empty"] == []


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("alignment", [8, 32, 128])
def test_versions_and_alignments(path: Path, version: int, alignment: int) -> None:
    tensors = {"x": VECTOR, "y": VECTOR}
    data = small({"general.alignment": alignment}, tensors, version=version, alignment=alignment)
    file = read(path, data)
    assert file.version == version
    assert file.file_bytes == len(data)
    assert [t.data.view("<f4").tolist() for t in file.tensors.values()] == [[0.0, 1.0, 2.0, 3.0]] * 2


def test_tensor_bytes_are_views_that_cannot_be_written(path: Path) -> None:
    data = read(path, small()).tensors["x"].data
    assert not data.flags.owndata
    assert not data.flags.writeable


def test_a_file_without_tensors_is_read(path: Path) -> None:
    assert read(path, gguf_bytes({"general.architecture": "llama"}, {})).tensors == {}


# --- bad files: the message names the file, the field and the remedy


def refused(path: Path, data: bytes, *words: str, error: type[ModelError] = Corrupt) -> None:
    with pytest.raises(error) as caught:
        read(path, data)
    assert caught.type is error
    for word in (str(path), *words):
        assert word in caught.value.message


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.gguf: cannot be read \(No such file"):
        gguf.read(tmp_path / "none.gguf")
    with pytest.raises(ModelError, match="cannot be read"):
        gguf.read(tmp_path)


def test_empty_and_foreign_files(path: Path) -> None:
    refused(path, b"", "empty", "download it again")
    refused(path, b"GG", "the header needs 8 bytes")
    refused(path, b"PK\x03\x04" + bytes(100), r"b'PK\x03\x04', not b'GGUF'")
    refused(path, b"<html>Not found</html>" * 9, "not b'GGUF'", "download it again")


@pytest.mark.parametrize("version", [0, 1, 4, 2**31])
def test_wrong_version(path: Path, version: int) -> None:
    refused(path, small(version=version), f"version {version}")


def test_big_endian_is_named(path: Path) -> None:
    refused(path, small(version=3 << 24), "big-endian", error=ModelError)


@pytest.mark.parametrize("at", [8, 16])
@pytest.mark.parametrize("count", [2**64 - 1, 2**63, 2**32, 10**6])
def test_absurd_counts(path: Path, at: int, count: int) -> None:
    data = bytearray(small())
    data[at : at + 8] = struct.pack("<Q", count)
    refused(path, bytes(data), f"{count} ", "more than the file can hold")


@pytest.mark.parametrize("length", [2**64 - 1, 2**40, 10_000])
def test_absurd_lengths(path: Path, length: int) -> None:
    claim = struct.pack("<Q", length)
    refused(path, small({"k": Raw(8, claim + b"abc")}), "'k'", f"{length} bytes")
    for kind in (0, 4, 8, 9, 12):
        refused(path, small({"k": Raw(9, struct.pack("<I", kind) + claim)}), "'k'", f"{length} items")


def test_a_string_that_runs_past_the_end_inside_an_array(path: Path) -> None:
    array = struct.pack("<IQ", 8, 2) + struct.pack("<Q", 1) + b"a" + struct.pack("<Q", 2**50)
    refused(path, small({"k": Raw(9, array)}), "'k'", "item 1 of 2")


def test_unknown_value_types(path: Path) -> None:
    refused(path, small({"k": Raw(13, b"")}), "'k' has type 13")
    refused(path, small({"k": Raw(9, struct.pack("<IQ", 77, 1) + bytes(12))}), "'k' has items of type 77")


def test_arrays_nested_without_end(path: Path) -> None:
    deep = struct.pack("<IQ", 9, 1) * 5000
    refused(path, small({"k": Raw(9, deep)}), "'k'[0]", "nests too deep")


def test_text_that_is_not_utf8(path: Path) -> None:
    bad = struct.pack("<Q", 2) + b"\xff\xfe"
    refused(path, small({"k": Raw(8, bad)}), "'k'", "not UTF-8")
    refused(path, small({"k": Raw(9, struct.pack("<IQ", 8, 1) + bad)}), "item 0", "not UTF-8")


def test_a_key_or_a_tensor_that_occurs_twice(path: Path) -> None:
    refused(path, small({"kk": 1, "k2": 2}).replace(b"k2", b"kk"), "'kk' occurs twice")
    refused(path, small(tensors={"tt": VECTOR, "t2": VECTOR}).replace(b"t2", b"tt"), "same name")


@pytest.mark.parametrize("alignment", [0, 1, 7, 48, "32", -8])
def test_bad_alignment(path: Path, alignment: Any) -> None:
    refused(path, small({"general.alignment": alignment}), "'general.alignment'", repr(alignment))


@pytest.mark.parametrize(("number", "name"), [(10, "Q2_K"), (16, "IQ2_XXS"), (4, "number 4"), (9999, "number 9999")])
def test_unsupported_weight_types_name_type_and_tensor(path: Path, number: int, name: str) -> None:
    data = small(tensors={"blk.0.ffn_up.weight": (number, (4,), bytes(16))})
    refused(path, data, "'blk.0.ffn_up.weight'", name, "Q4_K", error=UnsupportedQuantization)


@pytest.mark.parametrize("shape", [(), (0,), (1, 1, 1, 1, 1), (0, 4)])
def test_impossible_shapes(path: Path, shape: tuple[int, ...]) -> None:
    refused(path, small(tensors={"x": (0, shape, bytes(16))}), "'x'")


def test_rows_that_do_not_fill_blocks(path: Path) -> None:
    refused(path, small(tensors={"x": (8, (2, 33), bytes(99))}), "'x' of type Q8_0", "blocks of 32")


@pytest.mark.parametrize("shape", [(9,), (2**62,), (2**63, 2**63), (1000, 1000)])
def test_tensor_data_past_the_end(path: Path, shape: tuple[int, ...]) -> None:
    refused(path, small(tensors={"x": (0, shape, bytes(16))}), "tensor 'x' ends at")


def test_overlapping_and_misaligned_tensors(path: Path) -> None:
    data = small(tensors={"a": VECTOR, "b": VECTOR})
    second = data.rindex(struct.pack("<IQ", 0, 32))
    cases = {0: ("'a' and 'b' overlap",), 16: ("'b' lies at 16", "32"), 2**64 - 32: ("'b' ends at",)}
    for offset, words in cases.items():
        moved = data[: second + 4] + struct.pack("<Q", offset) + data[second + 12 :]
        refused(path, moved, *words)


# --- any bytes at all

VALID = gguf_bytes(
    model_metadata(Tiny(metadata={"nested": [["a", "b"], ["c"]]})),
    {k: v for k, v in model_tensors(Tiny()).items() if k.startswith("blk.0.attn")},
)
HEADER = VALID.index(b"blk.0.attn_norm.weight") + 700  # the part whose bytes mean something


def survives(path: Path, data: bytes) -> None:
    """Reads or refuses; whatever was accepted lies inside the file."""
    try:
        file = read(path, data)
    except ModelError:
        return
    assert sum(t.data.nbytes for t in file.tensors.values()) <= len(data)


@pytest.mark.parametrize("cut", [*range(64), *range(64, len(VALID), 4999), len(VALID) - 1])
def test_truncated_anywhere(path: Path, cut: int) -> None:
    if cut < len(VALID) - 31:
        with pytest.raises(ModelError):
            read(path, VALID[:cut])
    else:  # the padding of the last tensor may be missing
        survives(path, VALID[:cut])


POSITIONS = st.integers(0, HEADER)
CHANGES = st.one_of(st.binary(min_size=1, max_size=9), st.sampled_from([b"\xff" * 8, bytes(8)]))
COUNTS = st.integers(0, 5)


@settings(max_examples=300, deadline=None)
@given(edits=st.lists(st.tuples(POSITIONS, CHANGES), min_size=1, max_size=4))
@example(edits=[(8, b"\xff" * 16)])
def test_mutated_bytes(tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, bytes]]) -> None:
    data = bytearray(VALID)
    for at, new in edits:
        data[at : at + len(new)] = new
    survives(tmp_path_factory.getbasetemp() / "mutated.gguf", bytes(data))


@settings(max_examples=200, deadline=None)
@given(tail=st.binary(max_size=200), version=st.sampled_from([2, 3]), counts=st.tuples(COUNTS, COUNTS))
def test_garbage_after_a_valid_start(
    tmp_path_factory: pytest.TempPathFactory, tail: bytes, version: int, counts: tuple[int, int]
) -> None:
    data = b"GGUF" + struct.pack("<IQQ", version, *counts) + tail
    survives(tmp_path_factory.getbasetemp() / "garbage.gguf", data)
