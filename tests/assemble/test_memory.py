"""How long a context is when nobody chose it, and what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny import Tiny, write_model
from twostroke.assemble import Assembly, assemble, memory, open_model
from twostroke.assemble.memory import BLOCK, context_line
from twostroke.config import Settings, size
from twostroke.runtime.weights.load import kv_bytes_per_token
from twostroke.serve.start import served

LONG = 20_000  # positions the model allows


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny.gguf", Tiny(context=LONG))


def assembled(path: Path, **settings: object) -> Assembly:
    chosen = Settings(**{"model": str(path), "calibrate": False, "threads": 1, "max_sequences": 2, **settings})  # type: ignore[arg-type]
    return assemble(open_model(chosen), chosen)


def said(parts: Assembly) -> str:
    return context_line(parts.model, parts.settings, parts.engine.context, parts.kv_bytes["target"])


def token_bytes(parts: Assembly) -> int:
    return kv_bytes_per_token(parts.model.config, parts.settings.kv_type)


def test_the_context_is_the_models_own(path: Path) -> None:
    parts = assembled(path)
    assert parts.engine.context == LONG
    assert said(parts) == "20000 tokens (the model's own)"


def test_memory_bounds_the_context_and_the_line_says_how_much_would_do(path: Path) -> None:
    parts = assembled(path, kv_memory=2**23)
    assert parts.engine.context < LONG
    line = said(parts)
    assert line.startswith(f"{parts.engine.context} tokens (what 8 MiB of KV memory hold; the model allows 20000: give")
    remedy = line.rpartition("--kv-memory ")[2].rstrip(")")
    enough = assembled(path, kv_memory=size(remedy))
    assert said(enough) == "20000 tokens (the model's own)"


def test_one_sequence_at_full_context_fits_the_kv_memory(path: Path) -> None:
    parts = assembled(path, kv_memory=2**23)
    assert parts.engine.context * token_bytes(parts) <= parts.kv_bytes["target"] <= 2**23


def test_a_share_of_free_memory_bounds_the_context_where_nothing_was_chosen(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bytes_each = token_bytes(assembled(path))
    monkeypatch.setattr(memory, "available_bytes", lambda: 4 * 8192 * bytes_each)
    parts = assembled(path, draft_tokens=0)
    assert parts.engine.context == 8192
    assert "KV memory hold; the model allows 20000" in said(parts)


@pytest.mark.parametrize("context", [0, 12_000])
def test_a_chosen_context_makes_the_kv_memory_grow_to_hold_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, context: int
) -> None:
    bytes_each = token_bytes(assembled(path))
    monkeypatch.setattr(memory, "available_bytes", lambda: 2 * LONG * bytes_each)
    parts = assembled(path, context=context)
    assert parts.engine.context == (context or LONG)
    assert said(parts).startswith(f"{context or LONG} tokens (" + ("as chosen" if context else "the model's own"))


def test_a_chosen_context_that_chosen_memory_cannot_hold_is_said(path: Path) -> None:
    parts = assembled(path, context=16_000, kv_memory=2**23)
    assert "16000 were chosen: give --kv-memory" in said(parts)
    assert parts.engine.context % BLOCK == 0


def test_served_names_are_the_chosen_ones_the_first_preferred_and_the_star_last() -> None:
    def names(*chosen: str) -> tuple[str, ...]:
        return served("own", Settings(served_model_name=chosen))

    assert names() == ("own",)
    assert names("a", "b", "a") == ("a", "b")
    assert names("*", "a") == ("a", "*")
    assert names("*") == ("own", "*")


def test_a_model_is_called_by_the_first_name_that_is_one(path: Path) -> None:
    assert assembled(path, served_model_name=("*", "a")).model.name == "a"
    assert assembled(path, served_model_name="*").model.name == "tiny"
