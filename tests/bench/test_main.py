"""The command line: what it takes, where tables go, and what it refuses before measuring."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import __main__ as command
from bench import report


@pytest.mark.parametrize(
    "typed",
    [
        "--models a b --kernels avx2 --rounds 3",
        "--rounds 5",
        "concurrency --models a --rounds 2",
        "two-by-two --questions 1",
        "speculation --models a --questions 2",
        "speculation --questions 2 --warm",
        "never-worse --models a",
        "first-token --rounds 2",
    ],
)
def test_a_table_carries_the_command_that_made_it(typed: str) -> None:
    assert command._typed(command._parser().parse_args(typed.split())) == typed


def test_settings_that_do_not_change_the_measurement_are_left_out() -> None:
    assert command._typed(command._parser().parse_args(["--json", "x", "--write"])) == "--rounds 5"


@pytest.mark.parametrize(
    ("typed", "page", "block"),
    [
        ("", report.PERFORMANCE, "speed"),
        ("--kernels avx2", report.PERFORMANCE, "speed-avx2"),
        ("speculation", report.PERFORMANCE, "speculation"),
        ("concurrency", report.PERFORMANCE, "concurrency"),
        ("speculation --warm", report.PERFORMANCE, "speculation-warm"),
        ("never-worse", report.PERFORMANCE, "never-worse"),
        ("first-token", report.PERFORMANCE, "first-token"),
        ("two-by-two", command.README, "two-by-two"),
    ],
)
def test_every_command_has_a_page_that_can_take_its_tables(typed: str, page: Path, block: str) -> None:
    assert command._page(command._parser().parse_args(typed.split())) == (page, block)
    report.find_block(page, block)


def test_a_page_without_room_is_refused_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "PERFORMANCE", tmp_path / "none.md")
    assert command.main(["--models", "no-such-model", "--write"]) == 1
    assert "add the two lines" in capsys.readouterr().err


def test_an_unknown_model_ends_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--models", "no-such-model", "--no-peers"]) == 1
    assert "no-such-model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("first-token --rounds 0", "'0' is not a number from 1 up"),
        ("--sizes two", "'two' is not a number from 1 up"),
        ("--json /no/such/folder/x.json", "no file in a folder that is there"),
        ("--json .", "no file in a folder that is there"),
        ("speculation --spec-bench /no/such.jsonl", "there is no file '/no/such.jsonl'"),
        ("never-worse --warm", "--warm is for `speculation` alone"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_measured(
    typed: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        command.main(typed.split())
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err
