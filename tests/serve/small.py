"""A real engine on a tiny model behind a service, with its books at hand: what floods and fuzzers are let loose on."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.tiny import Tiny, write_model
from twostroke.assemble import Assembly, assemble
from twostroke.assemble.engine import TARGET
from twostroke.config import Settings
from twostroke.serve import start
from twostroke.serve.service import Service


@dataclass(frozen=True)
class Small:
    """A service and the assembly behind it."""

    service: Service
    parts: Assembly

    def settle(self, limit_s: float = 10.0) -> None:
        """Wait until nothing runs; then every book must be right, and no sequence hold a block."""
        end_s = time.monotonic() + limit_s
        while not (self.parts.engine.idle and self.service.host.open == 0) and time.monotonic() < end_s:
            time.sleep(0.005)
        assert self.parts.engine.idle, "the engine still runs something"
        assert (self.service.host.open, self.service.host.waiting) == (0, 0)
        scheduler = self.parts.engine.scheduler
        assert not scheduler.running
        assert not scheduler.waiting
        assert not any(self.parts.space[TARGET].pool.holders), "a block is held by nobody"
        self.parts.check()


def small(folder: Path, *, context: int = 512, **settings: Any) -> Small:
    """As `twostroke serve` would start it on a tiny model."""
    path = write_model(folder / "tiny.gguf", Tiny(context=context))
    chosen = Settings(**{"model": str(path), "kv_memory": 8 * 2**20, "threads": 1, "calibrate": False, **settings})
    kept: list[Assembly] = []

    def keep(*arguments: Any, **extra: Any) -> Assembly:
        kept.append(assemble(*arguments, **extra))
        return kept[0]

    with patch.object(start, "assemble", keep):
        service = start.start(chosen, lambda what, done, total: None, "test")
    return Small(service, kept[0])
