"""What a shorter output head covers, counted by hand and over a tiny model's own vocabulary."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.tiny import write_model
from twostroke.cli.main import execute
from twostroke.cli.shortlist import Shortlist, count, shown, standard_library, texts_of
from twostroke.errors import ConfigError


def test_first_ids_are_judged_on_everything_and_frequent_ones_on_what_they_were_not_chosen_from() -> None:
    one, two = Counter({0: 1, 8: 6, 9: 3}), Counter({0: 2, 8: 1, 9: 1})
    (row,) = count("m", 10, [one, two], [2]).coverage
    assert row.first_ids == 3 / 14
    assert row.most_frequent == 2 / 4  # 8 and 9 were the most frequent
    (row,) = count("m", 10, [one, two], [4]).coverage
    assert row.most_frequent == 4 / 4  # and two more: 0, and the first that nobody saw


def test_one_text_alone_says_nothing_of_frequent_tokens() -> None:
    (row,) = count("m", 10, [Counter({3: 5})], [4]).coverage
    assert (row.first_ids, row.most_frequent) == (1.0, None)


def test_no_text_is_refused() -> None:
    with pytest.raises(ConfigError, match="no tokens"):
        count("m", 10, [Counter()], [4])


def test_lines_of_json_are_texts_made_of_their_strings(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 3, "turns": ["one", "two"]}\n"three"\n')
    (tmp_path / "b.txt").write_text("four\nfive\n")
    assert list(texts_of([tmp_path / "a.jsonl", tmp_path / "b.txt"])) == ["one\ntwo", "three", "four\nfive\n"]
    (tmp_path / "c.jsonl").write_text("{")
    for name in ("c.jsonl", "none.txt"):
        with pytest.raises(ConfigError, match=f"cannot read .*{name}"):
            list(texts_of([tmp_path / name]))


def test_whoever_has_python_has_texts() -> None:
    files = standard_library()
    assert len(files) > 100
    assert any(path.name == "textwrap.py" for path in files)
    assert not any("site-packages" in path.parts or "test" in path.parts for path in files)


def test_the_command_prints_a_table_or_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(write_model(tmp_path / "tiny.gguf"))
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("the cat and the dog")
    texts = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    assert execute(["shortlist", model, *texts, "--size", "280", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["vocabulary"], found["texts"]) == (300, 2)
    (row,) = found["coverage"]
    assert (row["size"], row["most_frequent"]) == (280, 1.0)
    assert 0 < row["first_ids"] <= 1
    assert execute(["shortlist", model, *texts, "--size", "280"]) == 0
    assert f"{row['first_ids']:.2%}" in capsys.readouterr().out


def test_a_size_of_nothing_and_a_missing_text_are_usage_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(write_model(tmp_path / "tiny.gguf"))
    assert execute(["shortlist", model, "--size", "0"]) == 2
    assert execute(["shortlist", model, str(tmp_path / "none.txt")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_a_table_leaves_out_what_was_not_measured() -> None:
    found = count("m", 10, [Counter({3: 1, 8: 3})], [4])
    assert isinstance(found, Shortlist)
    assert shown(found, as_json=False).splitlines()[-1].split() == ["4", "25.00%"]
