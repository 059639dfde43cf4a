"""The only place that names concrete classes: from what a person chose to an engine that runs.

`open_model` reads a file and packs its weights, once; `assemble` builds an engine over them, which is cheap, so several
engines can stand on one model.  Everything made here is handed on through protocols.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from twostroke._kernels import KVStore, Pool
from twostroke.cache.keys import Group
from twostroke.cache.space import KVSpace, Store
from twostroke.catalog import resolve
from twostroke.config import Settings
from twostroke.engine.engine import Engine
from twostroke.engine.protocols import Governor, Observer
from twostroke.engine.scheduler import Scheduler
from twostroke.errors import ConfigError
from twostroke.govern.fixed import FixedDepth
from twostroke.observe.delivery import Delivery
from twostroke.observe.phases import Accounts, Finished
from twostroke.observe.rates import MeasuredRates
from twostroke.runtime.machine import available_bytes, physical_cores
from twostroke.runtime.models.config import ModelConfig, from_file
from twostroke.runtime.models.decoder import Decoder, Weights
from twostroke.runtime.runner import KernelRunner
from twostroke.runtime.weights.gguf import read
from twostroke.runtime.weights.load import content_version, kv_bytes_per_token, load_weights
from twostroke.speculate import table
from twostroke.speculate.per_request import PerRequest
from twostroke.text.codec import Codec
from twostroke.text.template import ChatTemplate
from twostroke.text.tokenizer import Tokenizer

TARGET = Group("target")
BLOCK = KVStore.BLOCK_TOKENS
DEFAULT_CONTEXT = 8192  # positions, where nothing was chosen and the model allows them
ORACULAR = frozenset({"synthetic"})  # drafters that know the answer: tests make them themselves
KV_SHARE = 0.25  # of available memory, where nothing was chosen
Progress = Callable[[str, int, int], None]  # what is going on, bytes done, bytes in all


def _quiet(what: str, done: int, total: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Model:
    """A model file, ready: its weights packed, its text understood."""

    name: str
    path: Path
    version: str  # names the weights in cache keys
    config: ModelConfig
    weights: Weights
    codec: Codec
    context: int  # positions a sequence may span here


@dataclass(frozen=True, slots=True)
class Assembly:
    """An engine and what stands around it."""

    model: Model
    settings: Settings
    engine: Engine
    space: KVSpace
    delivery: Delivery
    accounts: Accounts
    drafters: frozenset[str]  # names a request may ask for, "off" included

    def clear_cache(self) -> None:
        """Forget every cached prefix that nobody is using."""
        self.space.clear()

    def check(self) -> None:
        """Recount every resource; raises AssertionError where the books are wrong."""
        self.engine.scheduler.check()
        self.space.check()


def open_model(settings: Settings, progress: Progress = _quiet) -> Model:
    """Find (or fetch), read and pack the model that `settings` name.  Raises `ModelError`, `UnknownModel`."""
    path = resolve(
        settings.model, progress=lambda done, total: progress("fetching", done, total), mirrors=settings.mirrors
    )
    file = read(path)
    config = from_file(file)
    codec = _codec(file.metadata)
    context = _context(settings, config)
    weights = load_weights(file, config, context, lambda done, total: progress("loading", done, total))
    name = settings.served_model_name or _name(settings.model, path)
    return Model(name, path, content_version(path, config), config, weights, codec, context)


def assemble(
    model: Model,
    settings: Settings,
    *,
    observers: Iterable[Observer] = (),
    sinks: Iterable[Callable[[Finished], None]] = (),
    runner: Callable[[Decoder, Pool], KernelRunner] = KernelRunner,
    clock: Callable[[], float] = time.monotonic,
) -> Assembly:
    """An engine over `model`.  Raises `ConfigError` for settings that cannot work together."""
    blocks, spare = _blocks(model, settings)
    pool = Pool(settings.threads or physical_cores())
    store = KVStore(model.config.layers, blocks + spare, model.config.kv_heads, model.config.head_dim, settings.kv_type)
    decoder = Decoder(model.config, model.weights, store, pool, settings.step_tokens + _drafts_in_a_step(settings))
    space = KVSpace([Store(TARGET, blocks, spare, model.version)], BLOCK, caching=settings.prefix_cache)
    rates = MeasuredRates()
    accounts = Accounts(rates, tuple(sinks))
    delivery = Delivery(accounts.phases)
    drafter = _drafter(settings)
    engine = Engine(
        Scheduler(space[TARGET]),
        runner(decoder, pool),
        drafter,
        _governor(settings),
        (rates, accounts, delivery, *observers),
        clock,
        model.config.vocab,
        model.context,
    )
    return Assembly(model, settings, engine, space, delivery, accounts, frozenset(drafter.drafters))


def _codec(metadata: Mapping[str, object]) -> Codec:
    tokenizer = Tokenizer.from_metadata(metadata)
    return Codec(tokenizer, ChatTemplate.from_metadata(metadata, tokenizer.vocabulary))


def _name(spec: str, path: Path) -> str:
    """What clients call the model: the catalog's name, or the file's."""
    return path.stem if spec.endswith(".gguf") else spec


def _context(settings: Settings, config: ModelConfig) -> int:
    if settings.context == 0:
        return config.context
    if settings.context is None:
        return min(config.context, DEFAULT_CONTEXT)
    if settings.context > config.context:
        raise ConfigError(
            f"context is {settings.context}, and the model was trained for {config.context} positions; "
            f"give at most that, or 0 for all of it",
            param="context",
        )
    return settings.context


def _drafts_in_a_step(settings: Settings) -> int:
    """Drafts come on top of the step's budget: a full depth for every sequence."""
    return settings.max_sequences * max(settings.draft_tokens, 1)


def _blocks(model: Model, settings: Settings) -> tuple[int, int]:
    """Blocks for known tokens, and spare ones that only drafts use: k + 1 slots reach into one block more."""
    block_bytes = kv_bytes_per_token(model.config, settings.kv_type) * BLOCK
    budget = settings.kv_memory or _default_kv_bytes(model, settings, block_bytes)
    spare = settings.max_sequences * (-(-settings.draft_tokens // BLOCK))
    blocks = budget // block_bytes - spare
    if blocks < 2:
        need = (2 + spare) * block_bytes
        raise ConfigError(
            f"kv_memory is {budget} bytes, and {settings.max_sequences} sequences of this model need at least {need}; "
            f"give more, or fewer max_sequences",
            param="kv_memory",
        )
    return blocks, spare


def _default_kv_bytes(model: Model, settings: Settings, block_bytes: int) -> int:
    """A share of what is free, and no more than all sequences at full length could fill twice over."""
    most = 2 * settings.max_sequences * -(-model.context // BLOCK) * block_bytes
    least = (2 + settings.max_sequences * (1 + settings.draft_tokens // BLOCK)) * block_bytes
    return max(least, min(most, int(available_bytes() * KV_SHARE)))


def _drafter(settings: Settings) -> PerRequest:
    options = table.Settings(draft_tokens=max(settings.draft_tokens, 1))
    drafters = {name: table.build(name, options) for name in table.known() if name not in ORACULAR}
    if settings.speculate not in drafters:
        raise ConfigError(
            f"unknown drafter {settings.speculate!r}; choose one of {', '.join(drafters)}", param="speculate"
        )
    return PerRequest(drafters, settings.speculate)


def _governor(settings: Settings) -> Governor:
    return FixedDepth(
        settings.draft_tokens,
        step_ms=settings.step_ms,
        tokens=settings.step_tokens,
        sequences=settings.max_sequences,
    )
