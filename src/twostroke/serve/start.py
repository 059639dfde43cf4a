"""From settings to a service: the model opened, the engine assembled, with accounts and metrics attached."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from twostroke.assemble import Assembly, assemble, open_model
from twostroke.assemble.engine import TARGET
from twostroke.assemble.memory import context_line
from twostroke.config import ANY_MODEL, Settings
from twostroke.observe.log import log_finished
from twostroke.observe.prometheus import Metrics
from twostroke.serve.host import Host
from twostroke.serve.service import Service
from twostroke.serve.tenants import Tenants


def start(settings: Settings, progress: Callable[[str, int, int], None], version: str) -> Service:
    """Open the model and build everything that serves it; nothing runs yet.  Raises `ModelError`, `ConfigError`."""
    model = open_model(settings, progress)
    metrics = Metrics(model.name)
    parts = assemble(model, settings, observers=(metrics,), sinks=(metrics.finished, log_finished))
    metrics.watch(parts.governor.explain, lambda: parts.engine.faults)
    metrics.kv_memory(parts.kv_bytes)
    return Service(
        host=Host(parts.engine, parts.delivery, max_queue=settings.max_queue, accept=parts.accounts.accept),
        text=model.codec,
        models=served(model.name, settings),
        context=parts.engine.context,
        context_reason=context_line(model, settings, parts.engine.context, parts.kv_bytes["target"]),
        settings=settings,
        tenants=Tenants(settings.api_key),
        kv_bytes=parts.kv_bytes,
        drafters=parts.drafters,
        metrics=metrics.exposition,
        rejected=metrics.rejected,
        clear_cache=partial(_cleared, parts),
        created=int(time.time()),
        weights=model.version,
        version=version,
    )


def served(own: str, settings: Settings) -> tuple[str, ...]:
    """The names clients may use: those that were chosen or the model's own, then `*` where any other is taken too."""
    names = dict.fromkeys(settings.model_names or (own,))
    return (*names, ANY_MODEL) if ANY_MODEL in settings.served_model_name else tuple(names)


def _cleared(parts: Assembly) -> bool:
    """Forget cached prefixes and remembered answers; whether nothing was in use and so nothing is left."""
    parts.clear_cache()
    parts.model.codec.forget()
    return parts.space[TARGET].used == 0
