"""Measured costs are printed whole, for people and for machines."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from twostroke.cli import calibrate
from twostroke.cli.calibrate import WIDTH, bandwidth_share, shown
from twostroke.cli.main import execute
from twostroke.config import Settings
from twostroke.govern.cost import CostCurves

CURVES = CostCurves(
    step_ms={1: 50.0, 4: 60.0, 64: 400.0},
    step_ms_by_context={0: 50.0, 4096: 75.0},
    prefill_tokens_per_s=123.4,
    read_bandwidth_gb_s=20.0,
    bytes_per_step=800_000_000,
    kernels="avx512",
)


def test_the_table_has_every_point_with_a_bar() -> None:
    lines = shown(CURVES, as_json=False).split("\n")
    found = {line.split()[0]: line for line in lines if "█" in line}
    assert set(found) == {"1", "4", "64", "0", "4096"}
    assert found["4"].split()[1:3] == ["60.00", "1.20"]
    assert found["64"].count("█") == WIDTH
    assert found["1"].count("█") == WIDTH / 8
    assert found["4096"].split()[1:3] == ["75.00", "1.50"]


def test_the_head_says_what_was_measured() -> None:
    text = shown(CURVES, as_json=False)
    for part in ("avx512", "20.0 GB/s", "800 MB", "123 tokens/s", "80% of the read bandwidth"):
        assert part in text


def test_what_was_not_measured_is_left_out() -> None:
    bare = replace(CURVES, step_ms_by_context={}, read_bandwidth_gb_s=0.0)
    assert bandwidth_share(bare) is None
    text = shown(bare, as_json=False)
    assert "context" not in text
    assert "% of" not in text


def test_the_share_is_of_a_step_of_one_row() -> None:
    assert bandwidth_share(CURVES) == pytest.approx(0.8)


def test_the_command_measures_the_model_it_was_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Settings] = []

    def measured(settings: Settings) -> CostCurves:
        asked.append(settings)
        return CURVES

    monkeypatch.setattr(calibrate, "measured", measured)
    assert execute(["calibrate", "m", "--threads", "2", "--json"]) == 0
    assert CostCurves.from_json(capsys.readouterr().out) == CURVES
    assert (asked[0].model, asked[0].threads) == ("m", 2)
    assert execute(["whatif", "--alpha", "0.8", "--measured", "m", "--draft", "d"]) == 0
    assert "0.000 of a plain step to make and 0.078 to verify" in capsys.readouterr().out
    assert (asked[1].model, asked[1].draft) == ("m", "d")


def test_json_is_the_document_that_the_engine_reads() -> None:
    found = json.loads(shown(CURVES, as_json=True))
    assert {
        "read_bandwidth_gb_s", "bytes_per_step", "step_ms", "step_ms_by_context", "prefill_tokens_per_s", "kernels"
    } <= set(found)  # fmt: skip
    assert CostCurves.from_json(shown(CURVES, as_json=True)) == CURVES
