"""An engine over a model, and what stands around it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from twostroke._kernels import Pool
from twostroke.assemble.drafters import model_drafter, per_request
from twostroke.assemble.memory import BLOCK, draft_blocks, target_blocks
from twostroke.assemble.model import Model
from twostroke.assemble.runners import MakeRunner, curves_of, model_runner
from twostroke.cache.keys import Group
from twostroke.cache.space import KVSpace
from twostroke.cache.table import Store
from twostroke.config import Settings
from twostroke.engine.engine import Engine
from twostroke.engine.protocols import Observer
from twostroke.engine.scheduler import Scheduler
from twostroke.govern.cost import CostCurves
from twostroke.govern.governor import CostGovernor
from twostroke.govern.governor import Settings as Steps
from twostroke.observe.delivery import Delivery
from twostroke.observe.phases import Accounts, Finished
from twostroke.runtime.draft import DRAFT, PACE
from twostroke.runtime.machine import physical_cores
from twostroke.runtime.runner import KernelRunner
from twostroke.speculate.grammar import GrammarDrafts
from twostroke.speculate.per_request import PerRequest

TARGET = Group("target")


@dataclass(frozen=True, slots=True)
class Assembly:
    """An engine and what stands around it."""

    model: Model
    settings: Settings
    engine: Engine
    space: KVSpace
    delivery: Delivery
    accounts: Accounts
    governor: CostGovernor
    drafter: PerRequest
    kv_bytes: Mapping[str, int]  # by group: the draft's come on top of the target's

    @property
    def drafters(self) -> frozenset[str]:
        """Names a request may ask for, "off" included."""
        return frozenset(self.drafter.drafters)

    def clear_cache(self) -> None:
        """Forget every cached prefix, of all namespaces.

        To be called where the engine is stepped.  Sequences that run finish, and leave nothing.
        """
        self.space.clear()

    def purge(self, namespace: str) -> None:
        """Forget all that a namespace has left: cached prefixes, and the text and records that drafts are made from.

        To be called where the engine is stepped.  Sequences that run finish, and leave nothing.
        """
        self.space.purge(namespace)
        self.drafter.purge(namespace)

    def check(self) -> None:
        """Recount every resource; raises AssertionError where the books are wrong."""
        self.engine.scheduler.check()
        self.space.check()


class CurveRates:
    """What the accounts price with: the governor's curves, as refined so far."""

    def __init__(self, curves: Callable[[], CostCurves]) -> None:
        self._curves = curves

    def prefill_s(self, tokens: int) -> float:
        """Seconds to compute `tokens` prompt positions here, now."""
        curves = self._curves()
        return tokens / curves.prefill_tokens_per_s * curves.scale

    def step_s(self, positions: int) -> float | None:
        """Seconds of a step that computes `positions`."""
        return self._curves().step(positions)


def assemble(
    model: Model,
    settings: Settings,
    *,
    observers: Iterable[Observer] = (),
    sinks: Iterable[Callable[[Finished], None]] = (),
    runner: MakeRunner = KernelRunner,
    clock: Callable[[], float] = time.monotonic,
) -> Assembly:
    """An engine over `model`.  Raises `ConfigError` for settings that cannot work together."""
    blocks, spare = target_blocks(model, settings)
    pool = Pool(settings.threads or physical_cores())
    drafts = settings.max_sequences * max(settings.draft_tokens, 1)  # in a step, on top of its budget
    target = model_runner(model, settings, pool, blocks + spare, settings.step_tokens + drafts, runner)
    stores = [Store(TARGET, blocks, spare, model.version)]
    draft = None
    if model.draft is not None:
        own = draft_blocks(model.draft, settings, blocks)
        draft = model_runner(model.draft, settings, pool, own, PACE + settings.max_sequences)
        stores.append(Store(DRAFT, own, 0, model.draft.version))
    space = KVSpace(stores, BLOCK, caching=settings.prefix_cache)
    steps = Steps(settings.step_ms, settings.step_tokens, settings.max_sequences, drafts)
    governor = CostGovernor(curves_of(target, draft, pool, settings), steps)
    guesser = model_drafter(draft, space[DRAFT], settings, governor) if draft else None
    drafter = per_request(settings, governor, guesser)
    accounts = Accounts(CurveRates(lambda: governor.curves), tuple(sinks))
    delivery = Delivery(accounts.phases)
    engine = Engine(
        Scheduler(space[TARGET]),
        target.runner,
        GrammarDrafts(drafter, settings.draft_tokens),
        governor,
        (accounts, delivery, *observers),
        clock,
        model.config.vocab,
        model.context,
    )
    kv_bytes = {TARGET.name: target.store.bytes} | ({DRAFT.name: draft.store.bytes} if draft else {})
    return Assembly(model, settings, engine, space, delivery, accounts, governor, drafter, kv_bytes)
