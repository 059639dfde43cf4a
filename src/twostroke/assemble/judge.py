"""What settings can be refused for before a model is looked for: nobody should wait for a load to learn of a typo."""

from __future__ import annotations

from collections.abc import Iterable

from twostroke.config import Settings
from twostroke.errors import ConfigError
from twostroke.runtime.draft import DRAFT
from twostroke.speculate.table import usable


def judge(settings: Settings) -> None:
    """Raises `ConfigError` for settings that no model could serve."""
    judge_drafter(settings.speculate, usable(extra=(DRAFT.name,) if settings.draft else ()))


def judge_drafter(name: str, names: Iterable[str]) -> None:
    """Raises `ConfigError` that lists `names` where `name` is none of them."""
    names = tuple(names)
    if name not in names:
        hint = "; a draft model is given with --draft" if name == DRAFT.name else ""
        raise ConfigError(f"unknown drafter {name!r}; choose one of {', '.join(names)}{hint}", param="speculate")
