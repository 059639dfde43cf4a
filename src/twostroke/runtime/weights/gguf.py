"""A bounds-checked reader of GGUF model files (versions 2 and 3, little endian).

Every length and offset is compared with the bytes that are really there before it is used, so a damaged file ends in
a `ModelError` that names the field and the remedy, never in a crash or an absurd allocation.  Tensor bytes stay in
the file: the reader maps it and hands out views.  Nothing here knows what a key or a tensor is for.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twostroke.errors import Corrupt, ModelError, UnsupportedQuantization
from twostroke.runtime.weights.formats import BLOCKS, FOREIGN, WeightType, supported

Value = bool | int | float | str | list["Value"]

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MAX_DIMENSIONS = 4
MAX_NESTING = 4  # arrays inside arrays; no known file has any
REMEDY = "the file is damaged or not a GGUF model; download it again (`twostroke pull`)"

_STRING, _ARRAY = 8, 9
_CODES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_SCALARS: Mapping[int, struct.Struct] = {kind: struct.Struct("<" + code) for kind, code in _CODES.items()}
_U32, _U64 = _SCALARS[4], _SCALARS[10]


@dataclass(frozen=True, slots=True)
class Tensor:
    """One weight matrix or vector, as stored."""

    name: str
    type: WeightType
    shape: tuple[int, ...]  # slowest dimension first: (rows, cols) of a matrix, the reverse of ggml's `ne`
    data: NDArray[np.uint8]  # the raw bytes, a read-only view of the mapped file


@dataclass(frozen=True, slots=True)
class ModelFile:
    """What a GGUF file says.  The file stays mapped while any tensor's view lives."""

    path: Path
    version: int
    metadata: Mapping[str, Value]
    tensors: Mapping[str, Tensor]
    file_bytes: int


@dataclass(frozen=True, slots=True)
class _TensorInfo:
    """A tensor's entry in the header; `offset` counts from the start of the data section."""

    name: str
    type: WeightType
    shape: tuple[int, ...]
    offset: int
    bytes: int


class _Cursor:
    """Reads forward through `data`, refusing to pass its end."""

    __slots__ = ("at", "data", "path", "size")

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path = path
        self.data = data
        self.size = len(data)
        self.at = 0

    def corrupt(self, what: str) -> Corrupt:
        return Corrupt(f"{self.path}: {what}; {REMEDY}")

    def need(self, length: int, what: str) -> None:
        if length > self.size - self.at:
            raise self.corrupt(f"{what} needs {length} bytes at offset {self.at}, the file ends at {self.size}")

    def scalar(self, form: struct.Struct, what: str) -> int | float | bool:
        self.need(form.size, what)
        (value,) = form.unpack_from(self.data, self.at)
        self.at += form.size
        return value  # type: ignore[no-any-return]

    def u32(self, what: str) -> int:
        return int(self.scalar(_U32, what))

    def u64(self, what: str) -> int:
        return int(self.scalar(_U64, what))

    def string(self, what: str) -> str:
        length = self.u64(f"the length of {what}")
        self.need(length, what)
        start, self.at = self.at, self.at + length
        try:
            return str(self.data[start : self.at], "utf-8")
        except UnicodeDecodeError:
            raise self.corrupt(f"{what} at offset {start} is not UTF-8") from None

    def strings(self, count: int, what: str) -> list[str]:
        """`count` strings in a row.  Vocabularies hold 150k of them, hence the flat loop."""
        data, at, size = self.data, self.at, self.size
        length_at = _U64.unpack_from
        out: list[str] = []
        try:
            for _ in range(count):
                start = at + 8
                at = start + length_at(data, at)[0]
                if at > size:
                    raise struct.error
                out.append(str(data[start:at], "utf-8"))
        except struct.error:
            raise self.corrupt(f"{what}: item {len(out)} of {count} runs past the end of the file") from None
        except UnicodeDecodeError:
            raise self.corrupt(f"{what}: item {len(out)} is not UTF-8") from None
        self.at = at
        return out

    def numbers(self, form: struct.Struct, count: int) -> list[Value]:
        values = np.frombuffer(self.data, form.format, count, self.at).tolist()
        self.at += count * form.size
        return values  # type: ignore[no-any-return]

    def array(self, what: str, depth: int) -> list[Value]:
        kind = self.u32(f"the item type of {what}")
        count = self.u64(f"the item count of {what}")
        form = _SCALARS.get(kind)
        smallest = form.size if form else 8 if kind == _STRING else 12  # bytes an item takes at least
        self.need(count * smallest, f"{what}, an array of {count} items,")
        if form:
            return self.numbers(form, count)
        if kind == _STRING:
            return list(self.strings(count, what))
        if kind == _ARRAY and depth < MAX_NESTING:
            return [self.array(f"{what}[{i}]", depth + 1) for i in range(count)]
        raise self.corrupt(f"{what} has items of type {kind}, which does not exist or nests too deep")

    def value(self, kind: int, what: str) -> Value:
        if form := _SCALARS.get(kind):
            return self.scalar(form, what)
        if kind == _STRING:
            return self.string(what)
        if kind == _ARRAY:
            return self.array(what, depth=1)
        raise self.corrupt(f"{what} has type {kind}, which does not exist")

    def count(self, what: str, smallest: int) -> int:
        """A number of entries that could fit in the rest of the file if each took `smallest` bytes."""
        count = self.u64(f"the number of {what}")
        if count * smallest > self.size - self.at:
            raise self.corrupt(f"{count} {what} are announced, more than the file can hold")
        return count


def read(path: str | Path) -> ModelFile:
    """Reads the header and maps the tensors of the GGUF file at `path`.

    Raises `Corrupt` where anything in the file contradicts its size or itself, `UnsupportedQuantization` for a weight
    type no kernel here reads, and `ModelError` where the file cannot be opened.
    """
    path = Path(path)
    cursor = _Cursor(path, _map(path))
    version = _read_version(cursor)
    tensor_count = cursor.count("tensors", smallest=24)
    metadata = _read_metadata(cursor, cursor.count("metadata entries", smallest=13))
    infos = [_read_tensor_info(cursor) for _ in range(tensor_count)]
    base = _aligned(cursor.at, _alignment(cursor, metadata))
    _check_placement(cursor, infos, base, _alignment(cursor, metadata))
    tensors = {info.name: _view(cursor, info, base) for info in infos}
    return ModelFile(path, version, metadata, tensors, cursor.size)


def _map(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    except ValueError:
        raise Corrupt(f"{path}: the file is empty; {REMEDY}") from None


def _read_version(cursor: _Cursor) -> int:
    cursor.need(8, "the header")
    magic = cursor.data[:4]
    cursor.at = 4
    if magic != MAGIC:
        raise cursor.corrupt(f"it begins with {magic!r}, not {MAGIC!r}")
    version = cursor.u32("the version")
    if version in VERSIONS:
        return version
    if int.from_bytes(version.to_bytes(4, "little"), "big") in VERSIONS:
        raise ModelError(f"{cursor.path}: the file is big-endian; use a little-endian conversion of the model")
    raise Corrupt(f"{cursor.path}: GGUF version {version} is not readable, only {VERSIONS}; get a newer conversion")


def _read_metadata(cursor: _Cursor, count: int) -> dict[str, Value]:
    metadata: dict[str, Value] = {}
    for i in range(count):
        key = cursor.string(f"metadata key {i}")
        if key in metadata:
            raise cursor.corrupt(f"metadata key {key!r} occurs twice")
        metadata[key] = cursor.value(cursor.u32(f"the type of {key!r}"), repr(key))
    return metadata


def _read_tensor_info(cursor: _Cursor) -> _TensorInfo:
    name = cursor.string("a tensor's name")
    what = f"tensor {name!r}"
    dimensions = cursor.u32(f"the number of dimensions of {what}")
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise cursor.corrupt(f"{what} has {dimensions} dimensions, not 1 to {MAX_DIMENSIONS}")
    shape = tuple(cursor.u64(f"dimension {i} of {what}") for i in range(dimensions))[::-1]
    kind = _weight_type(cursor, cursor.u32(f"the type of {what}"), what)
    offset = cursor.u64(f"the offset of {what}")
    return _TensorInfo(name, kind, shape, offset, _tensor_bytes(cursor, kind, shape, what))


def _weight_type(cursor: _Cursor, number: int, what: str) -> WeightType:
    try:
        return WeightType(number)
    except ValueError:
        name = FOREIGN.get(number, f"number {number}")
        raise UnsupportedQuantization(
            f"{cursor.path}: {what} has weight type {name}; get a conversion that uses only {supported()}"
        ) from None


def _tensor_bytes(cursor: _Cursor, kind: WeightType, shape: tuple[int, ...], what: str) -> int:
    block = BLOCKS[kind]
    if min(shape) < 1 or shape[-1] % block.weights:
        raise cursor.corrupt(f"{what} of type {kind.name} has shape {shape}; rows come in blocks of {block.weights}")
    return prod(shape) // block.weights * block.bytes


def _alignment(cursor: _Cursor, metadata: Mapping[str, Value]) -> int:
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(alignment) is not int or alignment < 8 or alignment & (alignment - 1):
        raise cursor.corrupt(f"'general.alignment' is {alignment!r}, not a power of two from 8 up")
    return alignment


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def _check_placement(cursor: _Cursor, infos: list[_TensorInfo], base: int, alignment: int) -> None:
    """Unique names, aligned offsets, no two tensors over the same bytes, none past the end."""
    if len({info.name for info in infos}) != len(infos):
        raise cursor.corrupt("two tensors have the same name")
    placed = sorted(infos, key=lambda info: info.offset)
    for info in placed:
        if info.offset % alignment:
            raise cursor.corrupt(f"tensor {info.name!r} lies at {info.offset}, not a multiple of {alignment}")
        if base + info.offset + info.bytes > cursor.size:
            end = base + info.offset + info.bytes
            raise cursor.corrupt(f"tensor {info.name!r} ends at {end}, the file at {cursor.size}")
    for before, after in pairwise(placed):
        if before.offset + before.bytes > after.offset:
            raise cursor.corrupt(f"tensors {before.name!r} and {after.name!r} overlap")


def _view(cursor: _Cursor, info: _TensorInfo, base: int) -> Tensor:
    data = np.frombuffer(cursor.data, np.uint8, info.bytes, base + info.offset)
    return Tensor(info.name, info.type, info.shape, data)
