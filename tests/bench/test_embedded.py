"""An engine driven by hand: what an answer's times say."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.embedded import Session

from bench import embedded
from tests.tiny import Tiny, write_model
from twostroke.assemble import assemble, open_model
from twostroke.config import Settings


def takes(seconds: float, now: list[float], owner: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the call takes so long."""
    call = getattr(owner, name)

    def slow(*arguments: object) -> object:
        now[0] += seconds
        return call(*arguments)

    monkeypatch.setattr(owner, name, slow)


def test_a_token_counts_from_when_it_is_handed_out_not_from_the_end_of_the_guessing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_model(tmp_path / "tiny.gguf", Tiny())
    settings = Settings(model=str(path), context=64, kv_memory=2**20, calibrate=False)
    assembly = assemble(open_model(settings), settings)
    now = [0.0]
    monkeypatch.setattr(embedded.time, "perf_counter", lambda: now[0])
    takes(1.0, now, assembly.engine.runner, "execute", monkeypatch)
    takes(10.0, now, assembly.engine.drafter, "propose", monkeypatch)
    session = Session(assembly)
    outcome = session.run(session.request(range(5, 15), 4, speculate="off"))
    assert outcome.first_s == 1.0
    assert outcome.decode_s == 3 * 11.0
