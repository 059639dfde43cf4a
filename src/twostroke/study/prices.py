"""Money: what the tokens of a study would cost at a provider's prices, with caching and without.

A provider bills four kinds of tokens.  A prompt token is *cached* (read from the cache), *written* (computed, and kept
for the next call; some providers charge extra for it) or plain *input* (computed, with caching off).  The fourth kind
is *output*.  Drafts are not billed, so speculation changes the time of an answer and never its price.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from twostroke.errors import ConfigError
from twostroke.study.records import Record

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars per million tokens."""

    input: float  # computed, with caching off
    cached: float  # read from the cache
    write: float  # computed, with caching on
    output: float


@dataclass(frozen=True, slots=True)
class Bill:
    """What the calls of one arm cost, in dollars."""

    calls: int
    computed: float  # prompt tokens that were not in the cache
    cached: float
    output: float
    without: float  # the same calls, had nothing been cached

    @property
    def total(self) -> float:
        return self.computed + self.cached + self.output

    @property
    def saved(self) -> float:
        """The share of the price that caching saves; below 0 its writes cost more than its reads saved."""
        return 1 - self.total / self.without if self.without else 0.0


PRESETS: Mapping[str, Prices] = {
    "gpt-5.6-luna": Prices(input=0.20, cached=0.02, write=0.25, output=1.20),
    "deepseek-flash": Prices(input=0.15, cached=0.003, write=0.15, output=0.60),
    "deepseek-flash-peak": Prices(input=0.30, cached=0.006, write=0.30, output=1.20),
    "deepseek-v4-pro": Prices(input=0.66, cached=0.022, write=0.66, output=1.98),
    "deepseek-v4-pro-peak": Prices(input=1.32, cached=0.044, write=1.32, output=3.96),
}

# Providers that price the cache as multiples of their input price: (cached, write).
MULTIPLES: Mapping[str, tuple[float, float]] = {"anthropic-5m": (0.1, 1.25), "anthropic-1h": (0.1, 2.0)}

FIELDS = ("input", "cached", "write", "output")
FORM = "input=3,cached=0.3,write=3.75,output=15"


def parse(text: str) -> Prices:
    """Prices from `input=3,cached=0.3,write=3.75,output=15`, a preset, or both: `anthropic-5m,input=3,output=15`.

    What is given replaces the preset's.  Without `write` a token that is kept costs what any computed token costs.
    Raises `ConfigError` for an unknown preset or field, a price that is no number, or a missing one.
    """
    first, *others = [part.strip() for part in text.split(",")]
    named = "=" not in first
    given = _given(others if named else [first, *others])
    return _prices({**_preset(first, given), **given} if named else given, text)


def _given(parts: Iterable[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in parts:
        name, _, price = (side.strip() for side in part.partition("="))
        if name not in FIELDS:
            raise ConfigError(f"--prices: {name!r} is no price; write it as {FORM} (dollars per million tokens)")
        if name in found:
            raise ConfigError(f"--prices: {name} is given twice; give it once")
        found[name] = _price(name, price)
    return found


def _price(name: str, text: str) -> float:
    try:
        price = float(text.removeprefix("$"))
    except ValueError:
        price = math.nan
    if not (math.isfinite(price) and price >= 0):
        raise ConfigError(f"--prices: {name} is {text!r}; give dollars per million tokens, 0 or more")
    return price


def _preset(name: str, given: Mapping[str, float]) -> Mapping[str, float]:
    if name in PRESETS:
        return asdict(PRESETS[name])
    if name not in MULTIPLES:
        known = ", ".join([*PRESETS, *MULTIPLES])
        raise ConfigError(f"--prices: no preset is called {name!r}; choose one of {known}, or write {FORM}")
    if "input" not in given:
        raise ConfigError(f"--prices: {name} needs the model's own prices; write {name},input=3,output=15")
    cached, write = MULTIPLES[name]
    return {"cached": cached * given["input"], "write": write * given["input"]}


def _prices(found: Mapping[str, float], text: str) -> Prices:
    missing = [name for name in FIELDS if name not in found and name != "write"]
    if missing:
        raise ConfigError(f"--prices {text}: {' and '.join(missing)} missing; write it as {FORM}")
    return Prices(found["input"], found["cached"], found.get("write", found["input"]), found["output"])


def bill(prices: Prices, records: Iterable[Record], *, caching: bool, context_tokens: int = 0) -> Bill | None:
    """What these calls cost; None where the server did not count the tokens.

    With `caching`, every prompt token that was not read from the cache is written to it, and so are the
    `context_tokens` of the contexts that were read before the calls.  Without it, nobody reads contexts ahead.
    """
    counted = [_tokens(record, caching) for record in records if record.error is None]
    tokens = [count for count in counted if count is not None]
    if not tokens or len(tokens) < len(counted):
        return None
    prompt, cached, output = (sum(column) for column in zip(*tokens, strict=True))
    computed = prompt - cached + (context_tokens if caching else 0)
    return Bill(
        calls=len(tokens),
        computed=computed * (prices.write if caching else prices.input) / MILLION,
        cached=cached * prices.cached / MILLION,
        output=output * prices.output / MILLION,
        without=(prompt * prices.input + output * prices.output) / MILLION,
    )


def _tokens(record: Record, caching: bool) -> tuple[int, int, int] | None:
    """Prompt, cached and output tokens."""
    cached = record.cached_tokens if caching else 0
    if record.prompt_tokens is None or cached is None:
        return None
    return record.prompt_tokens, cached, record.output_tokens


def break_even_reuses(prices: Prices) -> int | None:
    """How often a prefix must be read again before caching it is cheaper than computing it each time; None: never.

    n uses cost write + (n - 1) × cached with caching and n × input without.  The answer is n - 1 for the smallest n at
    which caching costs less.
    """
    if prices.cached >= prices.input:
        return 0 if prices.write < prices.input else None
    # Prices such as 0.1 are not exact in binary; a tie must stay a tie, and a tie is not yet cheaper.
    ratio = round((prices.write - prices.input) / (prices.input - prices.cached), 9)
    return max(0, math.floor(ratio) + 1)
