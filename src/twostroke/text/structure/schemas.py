"""JSON schemas as `llguidance` takes them: judged by size, freed of words that constrain nothing.

Invariant: the text means what the schema means.  Left out are only `format` names that the JSON Schema specification
treats as remarks, keywords that every value satisfies, and options of the parser, which are ours to choose.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any
from urllib.parse import unquote

from twostroke.errors import InvalidParameter

# One space after a comma and a colon, as models write JSON in one line; a model cannot fill an answer with white space.
OPTIONS: Mapping[str, Any] = {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False}
LENIENT: Mapping[str, Any] = {**OPTIONS, "lenient": True, "coerce_one_of": True}

# The parser walks schemas by recursion, builds an automaton of as many states as a divisor, compares every pattern of
# names with every other: what is bounded here keeps it from overflowing its stack, and from taking seconds.
MOST_BYTES = 262_144
MOST_DEPTH = 64
MOST_LEVELS = 600  # depths of the root and of everything that is referred to, added up
MOST_DIVISOR = 10_000
MOST_PATTERN = 4_000  # characters
MOST_MEMBERS = {"properties": 2_000, "patternProperties": 64}  # in all; work grows with their square

_ENFORCED = frozenset(
    ["date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri", "unknown"]
)  # the formats that llguidance knows
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_VALUES = frozenset(("enum", "const", "default", "examples", "required", "x-guidance"))
_EVERY_NAME: tuple[Any, ...] = ({}, True, {"type": "string"})
_IDLE = (("uniqueItems", False), ("unevaluatedProperties", True))


def schema_text(schema: Mapping[str, Any] | bool, path: str, *, lenient: bool = False) -> str:
    """The schema as text for the parser.  `lenient`: what no grammar expresses is left out, not refused.

    Raises:
        InvalidParameter: it is no schema, too large, or nothing fits it; `param` is `path`.
    """
    if schema is False:
        raise InvalidParameter("nothing fits the schema false; send another", param=path)
    given: object = {} if schema is True else schema
    if not isinstance(given, Mapping):
        raise InvalidParameter(f"the schema is {given!r:.60}; send a JSON object", param=path)
    _judge(given, path)
    return json.dumps({**_plain(given), "x-guidance": LENIENT if lenient else OPTIONS})


def _plain(schema: Any) -> Any:
    """Without what constrains nothing."""
    if not isinstance(schema, Mapping):
        return schema
    return {key: _value(key, value) for key, value in schema.items() if not _idle(key, value)}


def _value(key: str, value: Any) -> Any:
    if key in _VALUES:
        return value
    if key in _MAPS and isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else _plain(value)


def _idle(key: str, value: Any) -> bool:
    if key == "format":
        return isinstance(value, str) and value not in _ENFORCED
    return key == "x-guidance" or (key == "propertyNames" and value in _EVERY_NAME) or (key, value) in _IDLE


def _judge(schema: Mapping[str, Any], path: str) -> None:
    depth = _depth(schema, MOST_DEPTH)
    if depth > MOST_DEPTH:
        raise _too_large(f"is nested more than {MOST_DEPTH} deep", path)
    size = len(_dumped(schema, path))
    if size > MOST_BYTES:
        raise _too_large(f"has {size} bytes of at most {MOST_BYTES}", path)
    levels = depth + sum(_depth(_target(schema, ref), MOST_DEPTH) for ref in set(_named(schema, "$ref", str)))
    if levels > MOST_LEVELS:
        raise _too_large(f'is {levels} levels deep along its "$ref", of at most {MOST_LEVELS}', path)
    for word, most in MOST_MEMBERS.items():
        if (count := sum(map(len, _named(schema, word, Mapping)))) > most:
            raise _too_large(f'has {count} "{word}", of at most {most}', path)
    _judge_divisors(schema, path)
    if long := next((text for text in _named(schema, "pattern", str) if len(text) > MOST_PATTERN), None):
        raise _too_large(f'has a "pattern" of {len(long)} characters, of at most {MOST_PATTERN}', path)


def _judge_divisors(schema: Mapping[str, Any], path: str) -> None:
    divisors = [Fraction(str(each)) for each in _named(schema, "multipleOf", (int, float)) if math.isfinite(each)]
    scale = math.lcm(*(each.denominator for each in divisors))
    together = math.lcm(*(abs(int(each * scale)) for each in divisors))
    if together > MOST_DIVISOR * max(scale, 1) or together > 10 * MOST_DIVISOR:
        raise _too_large(f'has values of "multipleOf" that meet only at {together / scale:g}', path)


def _dumped(schema: Mapping[str, Any], path: str) -> str:
    try:
        return json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(f"the schema is no JSON: {error}", param=path) from error


def _too_large(reason: str, path: str) -> InvalidParameter:
    return InvalidParameter(f"the schema {reason}; make it smaller", param=path)


def _depth(value: Any, most: int) -> int:
    """How deep JSON is nested, counted no further than one beyond `most`."""
    level, depth = [value], 0
    while depth <= most and (level := [inner for each in level for inner in _inside(each)]):
        depth += 1
    return depth


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value


def _named(schema: Any, key: str, kind: Any) -> list[Any]:
    """The values that stand under `key` anywhere, of this kind."""
    found, waiting = [], [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping) and isinstance(each.get(key), kind):
            found.append(each[key])
        waiting += _inside(each)
    return found


def _target(schema: Any, ref: str) -> Any:
    """What a reference names; the whole schema where that is not to be seen from its text alone."""
    at = schema
    for step in unquote(ref).removeprefix("#").strip("/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        at = at.get(name) if isinstance(at, Mapping) else None
    return schema if at is None else at
