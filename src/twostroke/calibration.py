"""Measures what steps cost on this machine, in a few seconds, and remembers it.

The result is a `govern.cost.CostCurves`, the one object that the governor, the accounts and `twostroke calibrate` read.
It seeds them; real steps refine it from then on.  Curves are kept per machine, model file, thread count, KV type and
kernel path.  Rounds are interleaved, so that a drift of the machine touches all points alike, and medians are kept.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from twostroke._kernels import KVStore, Pool, kernel_path, read_bandwidth
from twostroke.catalog import home
from twostroke.engine.protocols import Runner
from twostroke.errors import ConfigError
from twostroke.govern.cost import CostCurves
from twostroke.types import Row, Sampling

ROWS = (1, 2, 4, 8, 16, 32, 64)
DRAFT_ROWS = (1, 4, 16, 128)
NEAR, FAR = 64, 2048  # contexts, in positions
CHUNK = 256  # positions of the step that prefill's rate is read from
BANDWIDTH_BYTES = 256 * 2**20
MOST_S, LEAST_ROUNDS = 1.6, 3  # of measuring rows: as many rounds as fit, and no fewer
FORM = 1  # of the file; another form is measured again

Clock = Callable[[], float]


def calibrate(
    runner: Runner, store: KVStore, pool: Pool, bytes_per_step: int, clock: Clock = time.perf_counter
) -> CostCurves:
    """The curves of a runner whose blocks nobody uses yet; their cells are overwritten."""
    far = min(FAR, store.blocks * store.BLOCK_TOKENS - 1)
    commit(store, -(-(far + 1) // store.BLOCK_TOKENS))
    near = min(NEAR, far // 2)
    rows = [n for n in ROWS if near + n <= far] or [1]
    step_ms, far_ms = _rounds(runner, rows, near, far, clock)
    chunk = min(CHUNK, far)
    chunk_ms = median(_time_ms(runner, chunk, 0, clock) for _ in range(2))
    beyond_ms = max(chunk_ms - step_ms[rows[-1]], 1e-3)
    return CostCurves(
        step_ms=step_ms,
        step_ms_by_context={near: step_ms[1], far: max(far_ms, step_ms[1])},
        prefill_tokens_per_s=max(chunk - rows[-1], 1) / beyond_ms * 1000,
        read_bandwidth_gb_s=median(read_bandwidth(pool, BANDWIDTH_BYTES, 3)),
        bytes_per_step=bytes_per_step,
        kernels=kernel_path(),
    )


def draft_costs(runner: Runner, store: KVStore, clock: Clock = time.perf_counter) -> dict[int, float]:
    """Milliseconds of one pass of the draft model, by the number of sequences."""
    near = min(NEAR, store.blocks * store.BLOCK_TOKENS // 2)
    commit(store, -(-(near + max(DRAFT_ROWS)) // store.BLOCK_TOKENS))
    return {n: median(_time_ms(runner, n, near, clock) for _ in range(LEAST_ROUNDS + 1)) for n in DRAFT_ROWS}


def commit(store: KVStore, blocks: int) -> None:
    """Write real numbers into the first blocks: memory never touched would be read from one cached page of zeros."""
    shape = (store.kv_heads, store.BLOCK_TOKENS, store.head_dim)
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for layer in range(store.layers):
        for block in range(min(blocks, store.blocks)):
            store.write(layer, block, values, values)


def _rounds(runner: Runner, rows: Sequence[int], near: int, far: int, clock: Clock) -> tuple[dict[int, float], float]:
    """Median step times by rows, and that of one row at the end of a long context."""
    times: dict[int, list[float]] = {n: [] for n in rows}
    distant: list[float] = []
    _time_ms(runner, rows[-1], near, clock)  # the first step touches memory for the first time
    end_s = clock() + MOST_S
    while len(distant) < LEAST_ROUNDS or clock() < end_s:
        for n in rows:
            times[n].append(_time_ms(runner, n, near, clock))
        distant.append(_time_ms(runner, 1, far - 1, clock))
    return {n: median(taken) for n, taken in times.items()}, median(distant)


def _time_ms(runner: Runner, rows: int, start: int, clock: Clock) -> float:
    """One step of one sequence that computes `rows` positions from `start` and samples the last."""
    blocks = tuple(range(-(-(start + rows) // KVStore.BLOCK_TOKENS)))
    row = Row(0, start, tuple(range(1, rows + 1)), 0, min(rows, 16), blocks, Sampling())
    began = clock()
    runner.execute([row])
    return (clock() - began) * 1000


# -- remembered -------------------------------------------------------------------------------------------------------


def remembered(key: str, measure: Callable[[], CostCurves]) -> CostCurves:
    """The curves kept under `key`, or freshly measured ones, which are then kept.  A damaged file is measured anew."""
    path = file_of(key)
    try:
        return CostCurves.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ConfigError):
        pass
    curves = measure()
    keep(path, curves)
    return curves


def keep(path: Path, curves: CostCurves) -> None:
    """Write the curves; a folder that cannot be written costs a measurement at the next start, nothing else."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(replace(curves, scale=1.0).to_json(), encoding="utf-8")
        part.replace(path)
    except OSError:
        return


def file_of(key: str) -> Path:
    """Where the curves of `key` are kept."""
    return home() / "calibration" / f"{key}.json"


def key_of(parts: Mapping[str, object]) -> str:
    """A file name for these circumstances on this machine."""
    circumstances = {**parts, "form": FORM, "machine": platform.machine(), "processor": processor()}
    return hashlib.sha256(json.dumps(circumstances, sort_keys=True, default=str).encode()).hexdigest()[:24]


def processor() -> str:
    """The processor's name, as the kernel tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
