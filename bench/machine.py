"""What a run was measured on, so that its figures can be read later."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

import twostroke._kernels as kernels

CPUINFO = Path("/proc/cpuinfo")
LOAD = Path("/proc/loadavg")


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine and the settings that hold for a whole run."""

    cpu: str
    threads: int
    kernels: str  # the path in use
    python: str
    load: str  # other work when the run began: the average of the last minute

    @property
    def line(self) -> str:
        """One line for the top of a table."""
        return (
            f"{self.cpu}, {self.threads} threads, `{self.kernels}` kernels, Python {self.python}, "
            f"load before the run {self.load}"
        )


def describe(threads: int) -> Machine:
    """This machine, now."""
    return Machine(cpu_name(), threads, kernels.kernel_path(), platform.python_version(), load())


def cpu_name(path: Path = CPUINFO) -> str:
    """The processor's name as the system gives it, else its architecture."""
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def load(path: Path = LOAD) -> str:
    """The load average of the last minute, "?" where the system does not say."""
    return path.read_text(encoding="utf-8").split()[0] if path.is_file() else "?"
