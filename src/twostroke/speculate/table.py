"""The drafters by name: one row each, and those that other packages add.

A package adds one with an entry point in the group `twostroke.drafters` whose object is a factory
`(Settings) -> Drafter`.  The names here win over entry points, so an installed package cannot replace a drafter
silently.  A drafter that needs more than token ids (a second model) is made by whoever has what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from twostroke.engine.protocols import Drafter
from twostroke.errors import InvalidParameter
from twostroke.speculate.auto import Auto
from twostroke.speculate.history import History
from twostroke.speculate.lookup import MOST_DRAFTS, Lookup, LookupDrafter
from twostroke.speculate.ngram import LONGEST, SHORTEST, Ngram
from twostroke.speculate.none import NoDraft
from twostroke.speculate.prediction import Prediction
from twostroke.speculate.suffix import Suffix
from twostroke.speculate.synthetic import Oracle, Rates, Synthetic

ENTRY_POINTS = "twostroke.drafters"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person may choose about drafters."""

    draft_tokens: int = 8  # at most so many drafts for a sequence in a step, 1…64, where the request names no number
    ngram_longest: int = LONGEST
    ngram_shortest: int = SHORTEST
    history_tokens: int = 131_072  # what `suffix` keeps of finished text over all namespaces, about 450 bytes a token
    oracle: Oracle | None = None  # what `synthetic` knows
    rates: Rates | None = None  # how often `synthetic` is right


Factory = Callable[[Settings], "Drafter"]


def drafter(lookup: Callable[[Settings], Lookup]) -> Factory:
    return lambda settings: LookupDrafter(lookup(settings), settings.draft_tokens)


def ngram(settings: Settings) -> Lookup:
    return Ngram(settings.ngram_longest, settings.ngram_shortest)


def suffix(settings: Settings) -> Lookup:
    return Suffix(History(settings.history_tokens))


def synthetic(settings: Settings) -> Lookup:
    if settings.oracle is None or settings.rates is None:
        raise InvalidParameter(
            "the synthetic drafter needs an oracle and rates: it is for tests alone", param="speculate"
        )
    return Synthetic(settings.oracle, settings.rates)


FREE = ("prediction", "suffix", "ngram")  # what `auto` asks; of equal proposals the first is taken

DRAFTERS: Mapping[str, Factory] = {
    "off": lambda settings: NoDraft(),
    "ngram": drafter(ngram),
    "suffix": drafter(suffix),
    "prediction": drafter(lambda settings: Prediction()),
    "synthetic": drafter(synthetic),
    "auto": lambda settings: Auto([DRAFTERS[name](settings) for name in FREE]),
}


def known(extra: Iterable[str] = ()) -> tuple[str, ...]:
    """The names a person may choose from: the table's, those of installed packages, and `extra`."""
    installed = (point.name for point in entry_points(group=ENTRY_POINTS))
    return tuple(dict.fromkeys([*DRAFTERS, *sorted(installed), *extra]))


def usable(settings: Settings = Settings(), extra: Iterable[str] = ()) -> tuple[str, ...]:
    """The known names that these settings suffice for: `synthetic` is one only where they hold its oracle."""
    return tuple(name for name in known(extra) if name != "synthetic" or settings.oracle)


def check_drafter(name: str, names: Iterable[str]) -> str:
    """`name`, if it is one of `names`.  Raises `InvalidParameter` that lists them."""
    names = tuple(names)
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
    check_drafter(name, known())
    check_draft_tokens(settings.draft_tokens)
    if name in DRAFTERS:
        return DRAFTERS[name](settings)
    (point,) = list(entry_points(group=ENTRY_POINTS, name=name))[:1]
    factory: Factory = point.load()
    return factory(settings)


def build_all(settings: Settings = Settings()) -> dict[str, Drafter]:
    """Every drafter that a request may name, by name; `auto` chooses among these very ones, so they share one history.

    `synthetic` is there only if the settings hold its oracle.
    """
    drafters = {name: build(name, settings) for name in usable(settings) if name != "auto"}
    return drafters | {"auto": Auto([drafters[name] for name in FREE])}
