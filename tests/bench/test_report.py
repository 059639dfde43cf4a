"""Tables, blocks in pages, and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.rounds import Samples, Spread
from hypothesis import given
from hypothesis import strategies as st

from bench import report


def test_a_table_has_a_head_a_rule_and_its_rows() -> None:
    assert report.table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |\n"


def test_a_bar_inside_a_cell_does_not_open_another() -> None:
    assert report.table(["a|b"], []).startswith("| a\\|b |")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.012345, "0.0123"),
        (1.0, "1.00"),
        (9.996, "10.0"),
        (12.34, "12.3"),
        (123.4, "123"),
        (9876.0, "9876"),
    ],
)
def test_numbers_have_three_significant_digits(value: float, text: str) -> None:
    assert report.number(value) == text


@given(st.floats(1e-4, 1e5))
def test_a_written_number_is_within_half_a_percent(value: float) -> None:
    assert float(report.number(value)) == pytest.approx(value, rel=0.0051)


def test_a_spread_is_written_with_its_unit_and_scale() -> None:
    assert report.spread(Spread(0.0512, 0.05, 0.06, 5), 1000, " ms") == "51.2 ms (50.0–60.0)"
    assert report.percent(Spread(0.9, 0.8, 0.95, 5)) == "90.0 % (80.0–95.0)"


PAGE = "before\n\n<!-- measured: speed -->\nold\n<!-- end of speed -->\n\nafter\n"


def test_only_what_stands_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    report.write_block(page, "speed", "new\nlines\n")
    assert page.read_text() == PAGE.replace("old", "new\nlines")


def test_writing_twice_changes_nothing_more(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    report.write_block(page, "speed", "new")
    once = page.read_text()
    report.write_block(page, "speed", "new")
    assert page.read_text() == once


@pytest.mark.parametrize("text", ["no marks", "<!-- measured: speed -->\nbut no end"])
def test_a_page_without_the_block_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match="add the two lines"):
        report.write_block(page, "speed", "new")
    assert page.read_text() == text


def test_values_become_plain_json(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    report.write_json(path, {"s": Samples({"a": [1.0]}, {"b": "why"}), 4: (Spread(1, 1, 1, 1), None)})
    assert json.loads(path.read_text()) == {
        "s": {"taken": {"a": [1.0]}, "missing": {"b": "why"}},
        "4": [{"median": 1, "p10": 1, "p90": 1, "samples": 1}, None],
    }
