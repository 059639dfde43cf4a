"""How fast one good int8 library multiplies: oneDNN, through torch, run by an interpreter that has it.

A script of its own, so that torch stays out of our environment:

    PYTHON bench/onednn.py THREADS COLUMNS ROWS M [M …]

prints one JSON object, {M: multiply-adds per second}.  The product is 8-bit activations [M, COLUMNS] times signed
weights [ROWS, COLUMNS] with a scale per row, as a quantised linear layer, which is the fastest of torch's int8
products here.  `measure` runs it.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

VARIABLE = "TWOSTROKE_TORCH_PYTHON"
REPEATS = 7
TIMEOUT_S = 300


def measure(python: str, threads: int, columns: int, rows: int, sizes: Sequence[int]) -> Mapping[str, float]:
    """Multiply-adds per second by M, measured in another process.  Raises `Unmeasured` where that fails."""
    from bench.rounds import Unmeasured

    command = [python, "-W", "ignore", __file__, *map(str, (threads, columns, rows, *sizes))]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
        return {str(size): float(rate) for size, rate in json.loads(answer.stdout).items()}
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise Unmeasured(f"torch in {python}: {error}") from None


def interpreter() -> str | None:
    """The Python that has torch, where one was named."""
    return os.environ.get(VARIABLE)


def main(threads: int, columns: int, rows: int, *sizes: int) -> None:
    """Measure here, and print."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(threads)
    torch.backends.quantized.engine = "onednn"
    scales, zeros = torch.full((rows,), 0.05), torch.zeros(rows, dtype=torch.int64)
    weights = torch.quantize_per_channel(torch.randn(rows, columns), scales, zeros, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(weights, None)
    rates = {}
    for size in sizes:
        x = torch.quantize_per_tensor(torch.randn(size, columns), 0.05, 128, torch.quint8)
        seconds = [_timed(torch, x, packed) for _ in range(REPEATS)]
        rates[size] = size * columns * rows / median(seconds[1:])
    print(json.dumps(rates))


def _timed(torch: Any, x: Any, packed: Any) -> float:
    began = time.perf_counter()
    torch.ops.quantized.linear(x, packed, 1.0, 128)
    return time.perf_counter() - began


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
