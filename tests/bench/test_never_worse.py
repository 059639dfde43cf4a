"""Modes that write the same answer by turns, and what is said of their times."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.never_worse import GOVERNED, OFF, Result, constant
from bench.workload import Prompt

from bench import never_worse
from tests.tiny import Tiny, write_model
from twostroke.assemble import open_model
from twostroke.config import Settings

TAKEN = {
    "0": {OFF: [4.0, 6.0], GOVERNED: [4.0, 6.6], **{constant(k): [5.0, 7.0] for k in never_worse.DEPTHS}},
    "0.9": {OFF: [4.0, 6.0], GOVERNED: [2.2, 2.0], **{constant(k): [4.0 / k, 4.0 / k] for k in never_worse.DEPTHS}},
}


def test_the_best_constant_depth_may_be_none() -> None:
    result = Result("small", TAKEN)
    assert result.best("0") == OFF
    assert result.best("0.9") == constant(max(never_worse.DEPTHS))


def test_the_page_compares_answer_by_answer() -> None:
    (line,) = [line for line in never_worse.markdown(Result("small", TAKEN)).splitlines() if line.startswith("| 0 |")]
    assert "1.05 (1.01–1.09)" in line
    assert line.endswith("| 1.20 |")


def test_every_mode_writes_the_recorded_answer_and_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(never_worse, "OUTPUT", 20)
    monkeypatch.setattr(never_worse, "DEPTHS", (1, 4))
    path = write_model(tmp_path / "tiny.gguf", Tiny())
    settings = Settings(model=str(path), context=256, kv_memory=2**20, calibrate=False)
    prompts = [Prompt(word, "chat", ({"role": "user", "content": word},)) for word in ("one", "two")]
    result = never_worse.run(open_model(settings), settings, prompts, {"1": (1.0,)})
    assert {mode: len(seconds) for mode, seconds in result.taken["1"].items()} == {
        OFF: 2,
        GOVERNED: 2,
        "k = 1": 2,
        "k = 4": 2,
    }
    assert all(seconds > 0 for taken in result.taken["1"].values() for seconds in taken)
