"""Reads typed values out of a JSON body; whatever is wrong is named by its path, its value and the remedy.

An absent field and a null are the same.  A number is never a bool, never NaN, never infinite.  Text always survives
UTF-8.  Knows no wire format.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

from twostroke.errors import InvalidParameter

SHOWN = 60  # characters of a wrong value that a message repeats
MAX_DEPTH = 128  # of containers in each other
MOST_VALUES = 2**22  # commas and brackets of a body: they bound the memory its values take
HALVES = re.compile(rb"\\u[dD][89a-fA-F]")  # how a surrogate is written: UTF-8 itself has none
LONE = re.compile("[\ud800-\udfff]")
Path = tuple[Any, str] | None  # the path before, and a step: joined only when it is shown


def body(raw: bytes) -> Fields:
    """The JSON object in a request body.  Raises `InvalidParameter` for anything else."""
    value = _json(raw)
    if not isinstance(value, dict):
        raise InvalidParameter(f"the body must be a JSON object, not {kind(value)}")
    _check_depth(value)
    if HALVES.search(raw):
        _check_texts(value, None)
    return Fields(value)


def _json(raw: bytes) -> Any:
    if sum(raw.count(mark) for mark in (b",", b"[", b"{")) > MOST_VALUES:
        raise InvalidParameter(f"the body has more than {MOST_VALUES} commas and brackets; shorten it")
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise InvalidParameter(f"the body is not UTF-8: byte {error.start} cannot be decoded") from None
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        raise InvalidParameter(f"the body is not valid JSON: {error}") from None
    except ValueError:  # Python reads no whole number this long
        raise InvalidParameter("the body holds a number of thousands of digits; write it with an exponent") from None


def _no_constant(name: str) -> NoReturn:
    raise InvalidParameter(f"the body is not valid JSON: {name} is not a JSON number")


def _check_depth(value: Any) -> None:
    """Raises `InvalidParameter` where containers stand in each other deeper than what reads them may recurse."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for box in level for item in _items(box) if isinstance(item, (dict, list))]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> InvalidParameter:
    return InvalidParameter(f"the body is nested too deeply: more than {MAX_DEPTH} levels; flatten it")


def _items(box: Any) -> Collection[Any]:
    return box.values() if isinstance(box, dict) else box


def _check_texts(value: Any, path: Path) -> None:
    """`check_text` for every string below `value`, keys included."""
    if isinstance(value, str):
        if LONE.search(value):
            check_text(value, _written(path))
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_texts(key, path)
            _check_texts(item, (path, f".{key}"))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_texts(item, (path, f"[{index}]"))


def _written(path: Path) -> str:
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(step if len(step) <= SHOWN else step[:SHOWN] + "…")
    return "".join(reversed(steps)).removeprefix(".")


def check_text(text: str, path: str) -> str:
    """The text itself; raises `InvalidParameter` when it holds half of a surrogate pair, which no encoding has."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        where = path.encode("ascii", "backslashreplace").decode() or "the body"
        raise InvalidParameter(
            f"{where} holds the lone surrogate {half} at character {error.start}; send whole characters", param=where
        ) from None
    return text


def kind(value: Any) -> str:
    """What JSON calls the value."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def shown(value: Any) -> str:
    """The value for a message, cut to a readable length."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


class Fields:
    """One JSON object under a path, read field by field."""

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self.values = values
        self.path = path

    def at(self, name: str) -> str:
        """The path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def get(self, name: str) -> Any:
        """The raw value, None where absent."""
        return self.values.get(name)

    def wrong(self, name: str, wanted: str) -> InvalidParameter:
        """The error for a field that is not what it should be."""
        path = self.at(name)
        return InvalidParameter(f"{path} must be {wanted}, not {shown(self.get(name))}", param=path)

    def flag(self, name: str, default: bool) -> bool:
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def text(self, name: str) -> str | None:
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise self.wrong(name, "a string")
        return value

    def integer(self, name: str, low: int, high: int | None = None) -> int | None:
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not _is_integer(value) or value < low or (high is not None and value > high):
            raise self.wrong(name, f"an integer of {low} to {high}" if high is not None else f"an integer ≥ {low}")
        return int(value)

    def number(self, name: str, low: float, high: float, *, above: bool = False) -> float | None:
        """A finite number of `low` to `high`; `above` excludes `low` itself."""
        value = self.get(name)
        if value is None:
            return None
        if not _is_number(value) or not low <= value <= high or (above and value == low):
            raise self.wrong(name, f"a number {'above' if above else 'from'} {low:g} up to {high:g}")
        return float(value)

    def object(self, name: str) -> Fields | None:
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(name, "an object")
        return Fields(value, self.at(name))

    def array(self, name: str) -> Sequence[Any] | None:
        value = self.get(name)
        if value is not None and not isinstance(value, list):
            raise self.wrong(name, "an array")
        return value


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def ids(value: Any) -> bool:
    """Whether a JSON value is a list of integers."""
    return isinstance(value, list) and all(_is_integer(item) for item in value)
