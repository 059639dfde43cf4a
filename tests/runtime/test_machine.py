"""The machine is read as its kernel describes it, with sane answers where it says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from twostroke.runtime import machine


def test_there_is_at_least_one_core_and_some_memory() -> None:
    assert machine.physical_cores() >= 1
    assert machine.available_bytes() > 2**20


def test_hyperthreads_of_one_core_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cpu, siblings in {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}.items():
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(siblings + "\n")
    monkeypatch.setattr(machine, "CPU", tmp_path)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    assert machine.physical_cores() == 2


def test_cores_without_a_topology_count_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "CPU", tmp_path)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: {4, 5, 6}, raising=False)
    assert machine.physical_cores() == 3


def test_a_control_group_limits_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    assert machine.available_bytes() == 600_000


def test_an_unlimited_group_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:       5 kB\n")
    monkeypatch.setattr(machine, "MEMINFO", meminfo)
    assert machine.available_bytes() == 5 * 1024
