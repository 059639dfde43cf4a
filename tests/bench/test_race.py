"""Answers written by turns."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from bench.embedded import Session
from bench.race import Writer

from bench import race
from tests.tiny import Tiny, write_model
from twostroke.assemble import Model, assemble, open_model
from twostroke.config import Settings
from twostroke.runtime.draft import ModelDrafter
from twostroke.speculate.auto import Auto
from twostroke.types import Sampling


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path: Path = write_model(tmp_path_factory.mktemp("tiny") / "tiny.gguf", Tiny())
    return open_model(settings(str(path)))


def settings(path: str) -> Settings:
    return Settings(model=path, context=256, kv_memory=2**20, calibrate=False)


def writer(model: Model, **fields: object) -> Writer:
    return Writer(Session(assemble(model, settings(str(model.path)))), fields)


def test_all_write_the_same_answer_in_strides(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "STRIDE", 4)
    turns: list[tuple[int, int]] = []
    writers = [writer(model, speculate="off"), writer(model, speculate="ngram")]
    for number, one in enumerate(writers):
        step = one.session.step

        def counted(step=step, number=number, one=one) -> None:  # type: ignore[no-untyped-def]
            step()
            turns.append((number, len(one.written)))

        monkeypatch.setattr(one.session, "step", counted)
    race.race(writers, range(5, 30), 24)
    assert writers[0].written == writers[1].written
    assert len(writers[0].written) == 24
    assert all(one.first_s > 0 and one.decode_s > 0 for one in writers)
    changes = sum(a[0] != b[0] for a, b in pairwise(turns))
    assert changes >= 2, "one wrote all of its answer before the other began"


def test_a_text_read_beforehand_is_cached_and_its_answer_given_up(model: Model) -> None:
    one = writer(model, speculate="ngram")
    one.read(range(5, 55))
    assert one.session.assembly.engine.idle
    race.race([one], range(5, 60), 8)
    assert one.phases is not None
    assert one.phases.prefill.cached_tokens >= 48


def test_a_draft_model_has_read_it_too_and_goes_on_as_before(model: Model) -> None:
    with_draft = replace(settings(str(model.path)), draft=str(model.path))
    one = Writer(Session(assemble(open_model(with_draft), with_draft)), {"speculate": "draft"})
    drafter = one.session.assembly.drafter.drafters["draft"]
    assert isinstance(drafter, Auto)
    assert isinstance(drafter.model, ModelDrafter)
    repays = drafter.model.repays
    one.read(range(5, 155))
    assert drafter.model.repays is repays
    found = drafter.model._space.match(range(5, 160), "", True)
    assert found.cached >= 144
    drafter.model._space.release(found)


def test_an_answer_that_differs_ends_the_race(model: Model) -> None:
    warm = Sampling(temperature=1.0, seed=3)
    with pytest.raises(AssertionError, match="2 different answers"):
        race.race([writer(model, speculate="off"), writer(model, sampling=warm)], range(5, 30), 24)
