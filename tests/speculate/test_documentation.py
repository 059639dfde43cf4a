"""What docs/speculation.md says is so: its drafter works, its numbers are those of the formulas."""

import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from tests.speculate.texts import Text, run
from twostroke.govern.formulas import whatif
from twostroke.speculate import table

PAGE = (Path(__file__).parents[2] / "docs" / "speculation.md").read_text(encoding="utf-8")


@pytest.fixture
def installed(monkeypatch):
    """The example, as if a package had brought it."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (declared,) = re.findall(r'^(\w+) = "(\w+:\w+)"$', PAGE, re.MULTILINE)
    module = ModuleType(declared[1].split(":")[0])
    exec(compile(code, "docs/speculation.md", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    points = [EntryPoint(*declared, table.ENTRY_POINTS)]
    monkeypatch.setattr(table, "entry_points", lambda group, name=None: [p for p in points if name in (None, p.name)])
    return declared[0], code


def test_the_drafter_of_the_page_is_found_by_name_and_drafts(installed):
    name, _ = installed
    drafter = table.build(name, table.Settings(draft_tokens=4))
    answer = [5, 6, 7, 8] * 10
    history = run(drafter, Text(tokens=[1, 2], prompt_length=2), answer)
    assert drafter.name == name
    assert sum(kept for _, kept in history) > len(answer) / 2
    drafter.forget(1)
    assert not drafter.lookup.seen


def test_it_is_as_short_as_it_is_said_to_be(installed):
    _, code = installed
    assert len([line for line in code.splitlines() if line.strip()]) <= 30


def test_the_table_shows_what_the_formulas_give():
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| (\d+) \| ([\d.]+) \| ([\d.]+) \|", PAGE, re.MULTILINE)
    assert len(rows) == 6
    for alpha, cost, verify, *shown in rows:
        found = whatif(float(alpha), float(cost), float(verify))
        assert shown == [str(found.best_k), f"{found.expected_tokens:.2f}", f"{found.speedup:.2f}"]


def test_the_depths_named_in_the_text_give_the_gains_named_there():
    start = PAGE.index("(alpha 0.8, cost 0.1, verify 0.05")
    sentences = " ".join(PAGE[start : PAGE.index("\n\n", start)].split())
    gains = re.findall(r"k = (\d+) (?:gives )?(\d\.\d\d)", sentences)
    assert len(gains) == 4
    for k, gain in gains:
        assert f"{whatif(0.8, 0.1, 0.05, int(k)).speedup:.2f}" == gain


def test_every_drafter_of_the_table_is_in_the_page():
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert set(table.DRAFTERS) - {"synthetic"} <= named
