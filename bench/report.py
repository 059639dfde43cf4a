"""How measurements are written down: markdown tables, blocks in pages, one JSON document.

A page keeps a generated block between two comment lines; only what stands between them is ever replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from bench.rounds import Spread

ROOT = Path(__file__).parent.parent
PERFORMANCE = ROOT / "docs" / "performance.md"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A markdown table; columns but the first are aligned to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(_line(cells) for cells in [head, rule, *rows]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def number(value: float) -> str:
    """Three significant digits, no exponent."""
    if value == 0:
        return "0"
    digits = max(0, 2 - _magnitude(abs(value)))
    return f"{value:.{digits}f}"


def _magnitude(value: float) -> int:
    return int(f"{value:.2e}".split("e")[1])


def spread(value: Spread, scale: float = 1.0, unit: str = "") -> str:
    """`median unit (p10–p90)`, every number times `scale`."""
    low, high = sorted((value.p10 * scale, value.p90 * scale))
    return f"{number(value.median * scale)}{unit} ({number(low)}–{number(high)})"


def percent(value: Spread) -> str:
    """A share as `median % (p10–p90)`."""
    return spread(value, 100, " %")


def block(name: str, body: str) -> str:
    """A generated block as it stands in a page."""
    return f"{_begin(name)}\n{body.strip()}\n{_end(name)}"


def find_block(page: Path, name: str) -> tuple[int, int]:
    """Where the block `name` begins and ends in a page.  Raises ValueError where the page has no such block."""
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    begin, end = text.find(_begin(name)), text.find(_end(name))
    if begin < 0 or end < begin:
        raise ValueError(f"{page} has no block between {_begin(name)!r} and {_end(name)!r}; add the two lines")
    return begin, end + len(_end(name))


def write_block(page: Path, name: str, body: str) -> None:
    """Replace the block `name` of a page.  Raises ValueError where the page has no such block."""
    begin, end = find_block(page, name)
    text = page.read_text(encoding="utf-8")
    page.write_text(text[:begin] + block(name, body) + text[end:], encoding="utf-8")


def _begin(name: str) -> str:
    return f"<!-- measured: {name} -->"


def _end(name: str) -> str:
    return f"<!-- end of {name} -->"


def plain(value: Any) -> Any:
    """Dataclasses, mappings and tuples as JSON values."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def write_json(path: Path, document: Any) -> None:
    """One document, indented."""
    path.write_text(json.dumps(plain(document), indent=1) + "\n", encoding="utf-8")
