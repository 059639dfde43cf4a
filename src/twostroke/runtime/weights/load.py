"""From a model file to packed weights in memory, a tensor at a time.

Matrices are repacked without loss into the kernels' layout; gains and biases become float32.  The file is mapped and
each tensor's pages are given back as soon as it is packed, so the peak is the packed model and one tensor.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twostroke._kernels import Weight
from twostroke.errors import Corrupt
from twostroke.runtime.models import tensors
from twostroke.runtime.models.config import ModelConfig
from twostroke.runtime.models.decoder import Layer, Linear, Weights
from twostroke.runtime.models.rope import rope_tables
from twostroke.runtime.weights.dequantize import dequantize
from twostroke.runtime.weights.gguf import ModelFile, Tensor

Floats = NDArray[np.float32]
Progress = Callable[[int, int], None]  # bytes done, bytes in all


def load_weights(
    file: ModelFile,
    config: ModelConfig,
    context: int,
    progress: Progress = lambda done, total: None,
    shortlist: int | None = None,
) -> Weights:
    """Everything a decoder reads, with rotary tables for `context` positions.

    With `shortlist` the output matrix has only its first rows: byte-pair vocabularies number tokens in the order in
    which merging found them, so low ids are mostly the frequent ones (docs/speculation.md says how far that holds).
    Raises `Corrupt`.
    """
    return _Loader(file, progress).load(config, context, shortlist)


class _Loader:
    def __init__(self, file: ModelFile, progress: Progress) -> None:
        self.file, self.progress = file, progress
        self.done = 0
        self.total = sum(tensor.data.nbytes for tensor in file.tensors.values())

    def load(self, config: ModelConfig, context: int, shortlist: int | None) -> Weights:
        embedding = self.matrix(tensors.EMBEDDING)
        cos, sin = rope_tables(config, context)
        return Weights(
            embedding=embedding,
            layers=tuple(self.layer(config, index) for index in range(config.layers)),
            output_norm=self.vector(tensors.OUTPUT_NORM),
            output=embedding if config.tied and not shortlist else self.matrix(tensors.output_name(config), shortlist),
            cos=cos,
            sin=sin,
        )

    def layer(self, config: ModelConfig, index: int) -> Layer:
        def name(part: str) -> str:
            return tensors.layer(index, part)

        def linear(part: str, bias: bool = False) -> Linear:
            return Linear(self.matrix(name(f"{part}.weight")), self.vector(name(f"{part}.bias")) if bias else None)

        return Layer(
            attention_norm=self.vector(name("attn_norm.weight")),
            q=linear("attn_q", config.qkv_bias),
            k=linear("attn_k", config.qkv_bias),
            v=linear("attn_v", config.qkv_bias),
            q_norm=self.vector(name("attn_q_norm.weight")) if config.qk_norm else None,
            k_norm=self.vector(name("attn_k_norm.weight")) if config.qk_norm else None,
            attention_output=linear("attn_output"),
            ffn_norm=self.vector(name("ffn_norm.weight")),
            gate=linear("ffn_gate"),
            up=linear("ffn_up"),
            down=linear("ffn_down"),
        )

    def matrix(self, name: str, first: int | None = None) -> Weight:
        """The tensor packed, or only its first rows."""
        tensor = self.file.tensors[name]
        rows = min(first or tensor.shape[0], tensor.shape[0])
        data = tensor.data[: tensor.data.nbytes // tensor.shape[0] * rows]
        try:
            weight = Weight.pack(int(tensor.type), rows, tensor.shape[1], data)
        except ValueError as error:
            raise Corrupt(f"{self.file.path}: tensor {name!r}: {error}") from error
        self._forget(tensor)
        return weight

    def vector(self, name: str) -> Floats:
        tensor = self.file.tensors[name]
        values = np.ascontiguousarray(dequantize(tensor), np.float32)
        if not np.isfinite(values).all():
            raise Corrupt(f"{self.file.path}: tensor {name!r} holds values that are not numbers; download it again")
        self._forget(tensor)
        return values

    def _forget(self, tensor: Tensor) -> None:
        """Give the tensor's pages back to the system; the packed copy is what counts now."""
        self.done += tensor.data.nbytes
        self.progress(self.done, self.total)
        base: object = tensor.data
        while isinstance(base, np.ndarray):
            base = base.base
        mapped = base.obj if isinstance(base, memoryview) else base
        if isinstance(mapped, mmap.mmap):
            page = mmap.PAGESIZE
            begin = tensor.data.ctypes.data - np.frombuffer(mapped, np.uint8, 1).ctypes.data
            first, last = -(-begin // page) * page, (begin + tensor.data.nbytes) // page * page
            if last > first:
                mapped.madvise(mmap.MADV_DONTNEED, first, last - first)


def kv_bytes_per_token(config: ModelConfig, kv_type: str) -> int:
    """Bytes of keys and values of one position in all layers: integers of 16 or 8 bits with a float scale per head."""
    per_head = config.head_dim * (1 if kv_type == "q8" else 2) + 4
    return 2 * config.layers * config.kv_heads * per_head


def content_version(path: Path, config: ModelConfig) -> str:
    """What names these weights in cache keys: the file's identity and size.  A changed file is another version."""
    stat = path.stat()
    return f"{path.resolve()}:{stat.st_size}:{stat.st_mtime_ns}:{config.architecture}"
