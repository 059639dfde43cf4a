"""What this machine has: cores to compute on and memory to spare.

Read from the kernel's own files, with portable answers where they are missing.  Knows nothing about models.
"""

from __future__ import annotations

import os
from pathlib import Path

CPU = Path("/sys/devices/system/cpu")
MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def physical_cores() -> int:
    """Cores this process may run on, hyperthreads of one core counted once: they share its vector units."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    siblings = {_text(CPU / f"cpu{cpu}" / "topology" / "thread_siblings_list") or str(cpu) for cpu in allowed}
    return max(1, len(siblings))


def available_bytes() -> int:
    """Memory that can be taken without swapping, by the kernel's estimate and the control group's limit."""
    return min(_available(), _left_in_group())


def _available() -> int:
    for line in _text(MEMINFO).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 4 * 2**30


def _left_in_group() -> int:
    limit, used = _text(CGROUP / "memory.max"), _text(CGROUP / "memory.current")
    return max(0, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else 2**62


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
