"""The page that says what each format takes says what the formats take."""

from __future__ import annotations

from tests.serve.support import BEGIN, END, LEAST, PAGE, cell, table


def test_the_table_in_the_page_is_the_one_that_the_code_makes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"{BEGIN}\n{table()}\n{END}" in page, "run python -m tests.serve.support"


def test_the_bodies_that_features_are_added_to_are_taken_alone() -> None:
    assert {cell(path, {}) for path in LEAST} == {"yes"}
