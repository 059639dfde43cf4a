"""Large products: multiply-adds per second of ours, beside one good int8 library where one was named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median

from bench import onednn, report
from bench.rounds import Measure, Samples, interleave
from twostroke._kernels import Pool, Weight, sweep_seconds
from twostroke.assemble import Model

SIZES = (256, 512)  # rows of activations
REPEATS = 7


@dataclass(frozen=True, slots=True)
class Result:
    """The products of one weight shape."""

    columns: int
    rows: int
    type: str
    samples: Samples  # "ours M" and "library M"


def measure(model: Model, pool: Pool, rounds: int) -> Result:
    """The first layer's gate matrix, the largest shape of a layer."""
    weight = model.weights.layers[0].gate.weight
    measures: dict[str, Measure] = {"ours": partial(_ours, pool, weight)}
    if python := onednn.interpreter():
        measures["library"] = partial(onednn.measure, python, pool.threads, weight.cols, weight.rows, SIZES)
    return Result(weight.cols, weight.rows, weight.type, interleave(measures, rounds))


def _ours(pool: Pool, weight: Weight) -> Mapping[str, float]:
    work = weight.cols * weight.rows
    return {str(size): size * work / median(sweep_seconds(pool, [weight], size, REPEATS)) for size in SIZES}


def table(result: Result) -> str:
    """One row per size."""
    shape = f"{result.type}, {result.rows} × {result.columns}"
    head = ["product of M rows", f"{shape}, G multiply-adds/s", "int8 library", "ours ÷ library"]
    return report.table(head, [_row(result.samples, size) for size in SIZES]) + _missing(result.samples)


def _row(samples: Samples, size: int) -> list[str]:
    ours, library = f"ours {size}", f"library {size}"
    cells = [f"M = {size}", report.spread(samples.spread(ours), 1e-9)]
    if library not in samples:
        return [*cells, "—", "—"]
    return [*cells, report.spread(samples.spread(library), 1e-9), report.spread(samples.ratio(ours, library))]


def _missing(samples: Samples) -> str:
    if "library 256" in samples:
        return ""
    why = samples.missing.get("library", f"name a Python that has torch in {onednn.VARIABLE}")
    return f"\nint8 library: not measured, {why}.\n"
