"""What a run was measured on."""

from __future__ import annotations

from pathlib import Path

from bench import machine


def test_the_processor_is_named_as_the_system_names_it(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("processor : 0\nmodel name\t: A Fast One\nmodel name\t: another\n")
    assert machine.cpu_name(path) == "A Fast One"


def test_without_a_name_the_architecture_stands(tmp_path: Path) -> None:
    assert machine.cpu_name(tmp_path / "none")
    assert machine.load(tmp_path / "none") == "?"


def test_the_load_is_that_of_the_last_minute(tmp_path: Path) -> None:
    path = tmp_path / "loadavg"
    path.write_text("0.25 1.50 2.00 1/100 4242\n")
    assert machine.load(path) == "0.25"


def test_one_line_says_what_matters() -> None:
    line = machine.describe(2).line
    assert "2 threads" in line
    assert "kernels" in line
