"""A model's runner over KV of its own, and what its steps cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from twostroke._kernels import KVStore, Pool, kernel_path
from twostroke.assemble.memory import BLOCK
from twostroke.assemble.model import Model
from twostroke.calibration import FAR, calibrate, draft_costs, file_of, keep, key_of, remembered
from twostroke.config import Settings
from twostroke.govern.cost import SEED, CostCurves
from twostroke.runtime.draft import PACE
from twostroke.runtime.machine import physical_cores
from twostroke.runtime.models.decoder import Decoder
from twostroke.runtime.runner import KernelRunner

MakeRunner = Callable[[Decoder, Pool], KernelRunner]


@dataclass(frozen=True, slots=True)
class ModelRunner:
    """One model's runner over KV of its own."""

    model: Model
    store: KVStore
    runner: KernelRunner


def model_runner(
    model: Model,
    settings: Settings,
    pool: Pool,
    blocks: int,
    rows: int,
    runner: MakeRunner = KernelRunner,
) -> ModelRunner:
    kv_type: Literal["q16", "q8"] = "q8" if settings.kv_type == "q8" else "q16"
    store = KVStore(model.config.layers, blocks, model.config.kv_heads, model.config.head_dim, kv_type)
    return ModelRunner(model, store, runner(Decoder(model.config, model.weights, store, pool, rows), pool))


def curves_of(target: ModelRunner, draft: ModelRunner | None, pool: Pool, settings: Settings) -> CostCurves:
    if not settings.calibrate:
        return SEED
    return remembered(_circumstances(target, draft, pool, settings), lambda: _measured(target, draft, pool))


def _measured(target: ModelRunner, draft: ModelRunner | None, pool: Pool) -> CostCurves:
    curves = calibrate(target.runner, target.store, pool, target.model.weights.bytes_per_step)
    return replace(curves, draft_ms=draft_costs(draft.runner, draft.store)) if draft else curves


def _circumstances(target: ModelRunner, draft: ModelRunner | None, pool: Pool, settings: Settings) -> str:
    return key_of(
        {
            "model": target.model.version,
            "draft": draft and draft.model.version,
            "threads": pool.threads,
            "kv_type": settings.kv_type,
            "kernels": kernel_path(),
        }
    )


def calibrated(model: Model, settings: Settings) -> CostCurves:
    """Measure anew what steps cost, and remember it for the next start."""
    pool = Pool(settings.threads or physical_cores())
    blocks = -(-2 * FAR // BLOCK)
    target = model_runner(model, settings, pool, blocks, settings.step_tokens)
    draft = model_runner(model.draft, settings, pool, blocks, PACE + 16) if model.draft else None
    curves = _measured(target, draft, pool)
    keep(file_of(_circumstances(target, draft, pool, settings)), curves)
    return curves
