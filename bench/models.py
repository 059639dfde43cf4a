"""Which models a run measures, and how they are opened."""

from __future__ import annotations

from twostroke import catalog
from twostroke.assemble import Model, open_model
from twostroke.config import Settings

USUAL = ("smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")


def fetched() -> tuple[str, ...]:
    """Those of the usual models whose files are here already; a benchmark downloads nothing."""
    return tuple(name for name in USUAL if (catalog.home() / f"{name}.gguf").is_file())


def load(settings: Settings) -> Model:
    """The model that `settings` name, ready to run."""
    return open_model(settings)
