"""JSON schemas by name: those that agents send, shapes that people write, and families that vary one thing.

A schema that should be refused is not among them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

Schema = dict[str, Any] | bool
_HERE = Path(__file__).parent
_LEAVES: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number", "minimum": -1, "maximum": 1},
    "flag": {"type": "boolean"},
    "enum": {"enum": ["alpha", "beta", "gamma delta", "é"]},
    "const": {"const": "fixed"},
    "uuid": {"type": "string", "format": "uuid"},
    "pattern": {"type": "string", "pattern": "^[a-c]{2,4}[0-9]$"},
    "nullable": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
}


def schemas() -> dict[str, Schema]:
    """All of them."""
    return {**_stored("agents"), **_stored("shapes"), **dict(_families())}


def _stored(name: str) -> dict[str, Schema]:
    found: dict[str, Schema] = json.loads((_HERE / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _families() -> Iterator[tuple[str, Schema]]:
    for (name, leaf), least in product(_LEAVES.items(), (0, 1, 3)):
        yield f"list/{name}/{least}", {"type": "array", "items": leaf, "minItems": least, "maxItems": least + 2}
    for (name, leaf), required in product(_LEAVES.items(), ((), ("a",), ("a", "b"))):
        yield f"record/{name}/{len(required)}", _record({"a": leaf, "b": leaf, "c": {"type": "boolean"}}, required)
    for name, leaf in _LEAVES.items():
        yield f"tree/{name}", _tree(leaf)
        yield f"map/{name}", {"type": "object", "additionalProperties": leaf, "maxProperties": 3}
        yield f"tagged/{name}", _tagged(leaf)
    for depth in range(1, 9):
        yield f"deep/{depth}", _deep(depth)
    for low, high in ((0, 0), (0, 9), (-9, 9), (7, 123), (-1000, -7), (99, 100001)):
        yield f"between/{low}/{high}", {"type": "integer", "minimum": low, "maximum": high}


def _record(properties: dict[str, Any], required: tuple[str, ...]) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _tree(leaf: dict[str, Any]) -> Schema:
    node = _record({"value": leaf, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}, ("value",))
    return {"$defs": {"node": node}, "$ref": "#/$defs/node"}


def _tagged(leaf: dict[str, Any]) -> Schema:
    """A union told apart by a constant, as model classes with a discriminator are written."""
    options = [_record({"kind": {"const": kind}, kind: leaf}, ("kind", kind)) for kind in ("left", "right")]
    return _record({"options": {"type": "array", "items": {"oneOf": options}, "minItems": 1}}, ("options",))


def _deep(depth: int) -> Schema:
    return {"type": "string"} if depth == 0 else _record({f"level{depth}": _deep(depth - 1)}, (f"level{depth}",))
