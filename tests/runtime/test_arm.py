"""The Arm path computes the portable path's bits: cross-compiled here and run by an emulator, where both are installed.

`make test-arm` also compares these bits with those of the machine it runs on.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NATIVE, BUILD = ROOT / "tests/native", ROOT / "build/arm"
TOOLS = ("cmake", "aarch64-linux-gnu-g++", "qemu-aarch64")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


def output(*command: str | Path) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def program() -> Path:
    """Kept in build/arm, so only the first run compiles everything."""
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={NATIVE / 'aarch64.cmake'}"
    output("cmake", "-S", NATIVE, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release", toolchain)
    output("cmake", "--build", BUILD, "--target", "compare_paths", "--parallel", "2")
    return BUILD / "compare_paths"


def paths(lines: list[str]) -> set[str]:
    return {line.split()[0] for line in lines}


def test_neon_computes_the_portable_bits(program: Path) -> None:
    *lines, verdict = output("qemu-aarch64", "-cpu", "max", program).splitlines()
    assert verdict == "all paths agree"
    assert paths(lines) == {"portable", "neon"}


def test_a_processor_without_dot_products_takes_the_portable_path(program: Path) -> None:
    *lines, verdict = output("qemu-aarch64", "-cpu", "cortex-a57", program).splitlines()
    assert verdict == "all paths agree"
    assert paths(lines) == {"portable"}
