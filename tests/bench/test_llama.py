"""The peer is found, read and, where it fails, reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.rounds import Unmeasured

from bench import llama


def program(folder: Path, body: str) -> Path:
    """A stand-in for llama-bench."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "llama-bench"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return folder


def results(*tests: dict[str, object]) -> str:
    return json.dumps(list(tests))


ONE = results(
    {"n_prompt": 8, "n_gen": 0, "samples_ns": [3_000_000_000, 1_000_000_000, 2_000_000_000]},
    {"n_prompt": 0, "n_gen": 4, "samples_ns": [2_000_000_000]},
)


def test_seconds_are_medians_by_batch_and_by_generated_token() -> None:
    assert llama.read(ONE) == {"p8": 2.0, "n": 0.5}


@pytest.mark.parametrize("text", ["", "{", "{}x", '[{"n_prompt": 8}]', "[3]"])
def test_output_that_is_no_result_is_unmeasured(text: str) -> None:
    with pytest.raises(Unmeasured, match="no results"):
        llama.read(text)


@pytest.mark.parametrize(("code", "words"), [(-4, "killed by SIGILL"), (1, "exit status 1")])
def test_an_ending_is_said_in_words(code: int, words: str) -> None:
    assert llama.ending(code) == words


def test_builds_named_in_the_environment_come_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = program(tmp_path / "one" / "bin", "echo version: 1")
    second = program(tmp_path / "two" / "bin", "echo version: 2")
    monkeypatch.setenv(llama.VARIABLE, f"{first}:{second}")
    assert [(p.label, p.version) for p in llama.peers()] == [
        ("llama.cpp [one]", "version: 1"),
        ("llama.cpp [two]", "version: 2"),
    ]


def test_a_build_on_the_path_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = program(tmp_path / "bin", "echo version: 1")
    monkeypatch.delenv(llama.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    assert [peer.folder for peer in llama.peers()] == [folder]


def test_no_build_is_no_peer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(llama.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert llama.peers() == ()


def bench(folder: Path) -> llama.Bench:
    return llama.Bench(llama.Peer(folder, "1"), Path("model.gguf"), 2)


def test_the_program_is_asked_for_the_batches(tmp_path: Path) -> None:
    folder = program(tmp_path, f"echo \"$@\" > {tmp_path}/asked; echo '{ONE}'")
    assert bench(folder).seconds([1, 8], 4, 3) == {"p8": 2.0, "n": 0.5}
    asked = (tmp_path / "asked").read_text().strip()
    assert asked == "-m model.gguf -t 2 -o json -p 1,8 -n 4 -r 3"


def test_a_build_that_dies_is_tried_without_repacking_and_labelled(tmp_path: Path) -> None:
    folder = program(tmp_path / "fragile", f"case \"$*\" in *repack*) echo '{ONE}';; *) kill -ILL $$;; esac")
    fragile = bench(folder)
    assert fragile.seconds([8], 0, 1)["p8"] == 2.0
    assert fragile.label == "llama.cpp [fragile] --repack 0"
    assert fragile.seconds([8], 0, 1)["p8"] == 2.0


def test_a_build_that_fails_both_ways_is_unmeasured_and_says_how(tmp_path: Path) -> None:
    with pytest.raises(Unmeasured, match=r"SIGILL.*exit status 3"):
        bench(program(tmp_path, 'case "$*" in *repack*) exit 3;; *) kill -ILL $$;; esac')).seconds([8], 0, 1)


def test_a_program_that_is_not_there_is_unmeasured(tmp_path: Path) -> None:
    with pytest.raises(Unmeasured, match="llama-bench"):
        bench(tmp_path / "nowhere").seconds([8], 0, 1)


def test_drafting_with_a_model_needs_one() -> None:
    assert [drafting.name for drafting in llama.draftings(None)] == ["off", "ngram-simple"]
    (*_, simple) = llama.draftings(Path("d.gguf"))
    assert simple.flags[:2] == ("-md", "d.gguf")


def test_a_server_gets_room_for_every_slot(tmp_path: Path) -> None:
    command = llama.server_command(llama.Peer(tmp_path, "1"), Path("m.gguf"), 8001, 2, 4, 1024, ["--no-repack"])
    assert command[0] == str(tmp_path / "llama-server")
    assert command[command.index("-c") + 1] == "4096"
    assert command[command.index("-np") + 1] == "4"
    assert command[-1] == "--no-repack"
