"""The instruction set is the best there is, unless a person forces another; timings of the machine make sense."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.runtime import products
from tests.runtime.products import random_file
from twostroke import _kernels as kernels

PRINT_PATH = "from twostroke import _kernels; print(_kernels.kernel_path())"


def started_with(forced: str | None) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "TWOSTROKE_KERNELS"}
    if forced is not None:
        environment["TWOSTROKE_KERNELS"] = forced
    return subprocess.run([sys.executable, "-c", PRINT_PATH], env=environment, capture_output=True, text=True)


def test_the_fastest_path_is_the_default() -> None:
    assert started_with(None).stdout.strip() == kernels.kernel_paths()[-1]
    assert started_with("").stdout.strip() == kernels.kernel_paths()[-1]


@pytest.mark.parametrize("path", kernels.kernel_paths())
def test_the_environment_forces_a_path(path: str) -> None:
    assert started_with(path).stdout.strip() == path


def test_the_environment_may_not_name_a_path_that_is_not_there() -> None:
    answer = started_with("abacus")
    assert answer.returncode != 0
    assert "kernel path 'abacus' is not available here; choose one of: portable" in answer.stderr


def test_a_path_can_be_forced_and_put_back() -> None:
    before = kernels.kernel_path()
    for path in kernels.kernel_paths():
        kernels.set_kernel_path(path)
        assert kernels.kernel_path() == path
    kernels.set_kernel_path(before)
    with pytest.raises(ValueError, match="'abacus'"):
        kernels.set_kernel_path("abacus")
    assert kernels.kernel_path() == before


def test_portable_is_always_there() -> None:
    assert kernels.kernel_paths()[0] == "portable"


def test_bandwidth_is_measured_as_often_as_asked() -> None:
    rates = kernels.read_bandwidth(kernels.Pool(2), 16 << 20, 3)
    assert len(rates) == 3
    assert all(0.01 < rate < 100_000 for rate in rates)


def test_a_sweep_is_timed_as_often_as_asked() -> None:
    files = [random_file(name, 64, 512) for name in products.TYPES]
    weights = [kernels.Weight.pack(products.number(f.name), f.rows, f.cols, f.flat) for f in files]
    for rows in (1, 9):
        seconds = kernels.sweep_seconds(kernels.Pool(2), weights, rows, 4)
        assert len(seconds) == 4
        assert np.all(np.array(seconds) > 0)
