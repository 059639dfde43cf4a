"""A record is the same after it was written and read; a line that is no record is named by its number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from twostroke.errors import ConfigError
from twostroke.study.records import Record, ServerAccount, read, whole, write

RECORD = Record(
    "q1", "s1", "both", 0, "1", 7, 1.5, 80.0, 480.0, (20.0, 20.5), 21, "line\nü", "stop", 100, 90, 8, 5, (3, 2)
)
ACCOUNT = ServerAccount(0.1, 70.0, 500.0, 400.0, 300.0, 4.0, 9)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    records = (RECORD, replace(RECORD, account=ACCOUNT), replace(RECORD, error="timed out", cached_tokens=None))
    for record in records:
        write(tmp_path / "requests.jsonl", record)
    assert read(tmp_path / "requests.jsonl") == records
    assert whole(records) == records[:2]


def test_time_per_token_leaves_the_first_out() -> None:
    assert RECORD.tpot_ms == 20.0
    assert replace(RECORD, output_tokens=1).tpot_ms is None


@pytest.mark.parametrize("line", ["{", "[]", "3", '{"call": "q"}', '{"account": null, "gaps_ms": 3}'])
def test_a_line_that_is_no_record_is_named_by_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "requests.jsonl"
    write(path, RECORD)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(ConfigError, match=r"line 2"):
        read(path)
