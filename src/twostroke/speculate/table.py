"""The drafters by name: one row each, and those that other packages add.

A package adds one with an entry point in the group `twostroke.drafters` whose object is a factory
`(Settings) -> Drafter`.  The names here win over entry points, so an installed package cannot replace a drafter
silently.  A drafter that needs more than token ids (a second model) is made by whoever has what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from twostroke.errors import InvalidParameter
from twostroke.speculate.lookup import MOST_DRAFTS, LookupDrafter
from twostroke.speculate.ngram import LONGEST, SHORTEST, Ngram
from twostroke.speculate.none import NoDraft

if TYPE_CHECKING:
    from twostroke.engine.protocols import Drafter

ENTRY_POINTS = "twostroke.drafters"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person may choose about drafters."""

    draft_tokens: int = 8  # at most so many drafts for a sequence in a step, 1…64, where the request names no number
    ngram_longest: int = LONGEST
    ngram_shortest: int = SHORTEST


Factory = Callable[[Settings], "Drafter"]


def ngram(settings: Settings) -> Drafter:
    return LookupDrafter(Ngram(settings.ngram_longest, settings.ngram_shortest), settings.draft_tokens)


DRAFTERS: Mapping[str, Factory] = {
    "off": lambda settings: NoDraft(),
    "ngram": ngram,
}


def known(extra: Iterable[str] = ()) -> tuple[str, ...]:
    """The names a person may choose from: the table's, those of installed packages, and `extra`."""
    installed = (point.name for point in entry_points(group=ENTRY_POINTS))
    return tuple(dict.fromkeys([*DRAFTERS, *sorted(installed), *extra]))


def check_drafter(name: str, extra: Iterable[str] = ()) -> str:
    """`name`, if a drafter is called that.  Raises `InvalidParameter` that lists the known ones."""
    names = known(extra)
    if name not in names:
        raise InvalidParameter(f"unknown drafter {name!r}; choose one of {', '.join(names)}", param="speculate")
    return name


def check_draft_tokens(value: object) -> int:
    """`value`, if it may be a number of drafts per step.  Raises `InvalidParameter` otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_DRAFTS:
        asked = f"draft_tokens is {value!r}, must be a whole number from 1 to {MOST_DRAFTS}"
        raise InvalidParameter(f'{asked}; to draft nothing, speculate "off"', param="draft_tokens")
    return value


def build(name: str, settings: Settings = Settings()) -> Drafter:
    """The drafter called `name`.  Raises `InvalidParameter` for an unknown name or a depth out of range."""
    check_drafter(name)
    check_draft_tokens(settings.draft_tokens)
    if name in DRAFTERS:
        return DRAFTERS[name](settings)
    (point,) = list(entry_points(group=ENTRY_POINTS, name=name))[:1]
    factory: Factory = point.load()
    return factory(settings)
