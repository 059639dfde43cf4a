"""Calls written as JSON objects: `{"name": ..., "arguments": {...}}`, arguments streamed as they are written.

Arguments are the very characters of the text.  Knows nothing of what a family writes around an object.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from twostroke.text.pieces import CallArguments, CallEnd
from twostroke.text.tools.scan import Source, Steps, begin_call, literal, one_of, space, spaced, whole_call


def _refuse(constant: str) -> None:
    raise ValueError(constant)


KEYS = ('"arguments"', '"parameters"')
_MOST_UNFINISHED = 8  # more of them in an answer are words unread: each is read to the answer's end
_FIRST = ('"name"', '"arguments"', '"parameters"', '"function"', '"type"', '"id"')
_BESIDE = frozenset({"id", "type"})  # say nothing here
_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse)


class Nesting:
    """Where a JSON value ends, found without judging it; `<` outside of a string is no JSON and ends it too."""

    def __init__(self, depth: int = 0) -> None:
        self._depth = depth
        self._quoted = self._escaped = False

    def end(self, text: str, at: int) -> int | None:
        """Where the value ends in `text`, read from `at` on; None where it goes on behind it."""
        for place in range(at, len(text)):
            if self._ends(text[place]):
                return place + (text[place] != "<")
        return None

    def _ends(self, char: str) -> bool:
        if self._quoted:
            self._quoted = self._escaped or char != '"'
            self._escaped = char == "\\" and not self._escaped
            return False
        self._quoted = char == '"'
        self._depth += (char in "{[") - (char in "}]")
        return char == "<" or (self._depth <= 0 and char in "}]")


def call_object(source: Source, names: Collection[str]) -> Steps[bool]:
    """A call of one of `names`, and the white space before it; False, and nothing looked past, where there is none."""
    start = source.at
    name = yield from _header(source, names)
    if name is not None:
        yield from _streamed(source, name)
        return True
    source.at = start
    call = yield from held_call(source, names)
    if call is not None:
        yield from whole_call(source, *call)
    return call is not None


def held_call(source: Source, names: Collection[str]) -> Steps[tuple[str, str] | None]:
    """The name and the arguments of a call that is looked past but not told yet; None where there is none."""
    start = source.at
    if source.unfinished >= _MOST_UNFINISHED or not (yield from _may_be_call(source, names)):
        source.at = start
        return None
    source.at = start
    yield from space(source)
    text = yield from _value(source)
    call = None if text is None else _call(text, names)
    if call is None:
        source.at = start
    return call


def string(source: Source, most: int = 256) -> Steps[str | None]:
    """A JSON string of at most `most` characters as written."""
    start = source.at
    if not (yield from literal(source, '"')):
        return None
    escaped = False
    while source.at - start <= most:
        if not source.rest:
            if source.ended:
                return None
            yield None
            continue
        char = source.text[source.at]
        source.at += 1
        if char == '"' and not escaped:
            return _text(source.text[start : source.at])
        escaped = char == "\\" and not escaped
    return None


def arguments(source: Source, index: int) -> Steps[None]:
    """An object that begins here is a call's arguments; it is told as it comes and ends the call."""
    nesting = Nesting()
    while True:
        end = nesting.end(source.text, 0)
        if text := source.take(len(source.text) if end is None else end):
            yield CallArguments(index, text)
        if end is not None or source.ended:
            break
        yield None
    yield CallEnd(index)


def _header(source: Source, names: Collection[str]) -> Steps[str | None]:
    """The name in `{"name": "f", "arguments": ` where an object follows."""
    if not (yield from spaced(source, "{")):
        return None
    yield from space(source)
    if (yield from literal(source, '"type"')) and not (yield from spaced(source, ":", '"function"', ",")):
        return None
    if not (yield from spaced(source, '"name"', ":")):
        return None
    yield from space(source)
    name = yield from string(source)
    if name not in names or not (yield from spaced(source, ",")):
        return None
    yield from space(source)
    if (yield from one_of(source, *KEYS)) is None or not (yield from spaced(source, ":")):
        return None
    yield from space(source)
    if not (yield from literal(source, "{")):
        return None
    source.at -= 1
    return name


def _streamed(source: Source, name: str) -> Steps[None]:
    index = yield from begin_call(source, name)
    yield from arguments(source, index)
    yield from _close(source)


def _close(source: Source) -> Steps[None]:
    """Look past the end of an object after its arguments, other members included; nothing where it does not end."""
    yield from space(source)
    end = source.at
    if (yield from literal(source, ",")):
        yield from space(source)
        closed = (yield from literal(source, '"')) and (yield from _members(source, end))
        source.at = source.at if closed else end
    else:
        yield from literal(source, "}")
    source.take()


def _members(source: Source, start: int) -> Steps[bool]:
    source.at = start
    return (yield from _nested(source, Nesting(depth=1)))


def _may_be_call(source: Source, names: Collection[str]) -> Steps[bool]:
    """Whether an object begins as a call does, so that other objects need not wait for their ends."""
    if not (yield from spaced(source, "{")):
        return False
    yield from space(source)
    key = yield from one_of(source, *_FIRST)
    if key is None or not (yield from spaced(source, ":")):
        return False
    if key != '"name"':
        return True
    yield from space(source)
    return (yield from string(source)) in names


def _value(source: Source) -> Steps[str | None]:
    """The text of an object that begins here; None where it does not end."""
    start = source.at
    closed = yield from _nested(source, Nesting())
    source.unfinished += not closed and not source.rest
    return source.text[start : source.at] if closed else None


def _nested(source: Source, nesting: Nesting) -> Steps[bool]:
    while True:
        end = nesting.end(source.text, source.at)
        source.at = len(source.text) if end is None else end
        if end is not None or source.ended:
            return end is not None and source.text[end - 1] in "}]"
        yield None


def _call(text: str, names: Collection[str]) -> tuple[str, str] | None:
    """The name and the arguments of an object that is a call of one of `names` and nothing else."""
    members = _parts(text)
    if members is None:
        return None
    if "function" in members and members.keys() <= {"function", *_BESIDE}:
        inner = _parts(members["function"])
        return None if inner is None or not inner.keys() <= {"name", "arguments"} else _named(inner, names)
    return _named(members, names) if members.keys() <= {"name", "arguments", "parameters", *_BESIDE} else None


def _named(members: dict[str, str], names: Collection[str]) -> tuple[str, str] | None:
    name = _text(members.get("name", ""))
    given = members.get("arguments", members.get("parameters", "{}"))
    text = _text(given) if given.startswith('"') else given  # arguments as a string of JSON
    if (
        name is None
        or name not in names
        or text is None
        or _parts(text) is None
        or ("arguments" not in members and _is_schema(text))
    ):
        return None
    return name, text


def _is_schema(text: str) -> bool:
    """Whether a tool's own definition is repeated here."""
    parsed = _DECODER.decode(text)
    return parsed.get("type") == "object" and isinstance(parsed.get("properties"), dict)


def _text(raw: str) -> str | None:
    """The text of a JSON string."""
    try:
        value = _DECODER.decode(raw)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _parts(text: str) -> dict[str, str] | None:
    """The members of a JSON object, values as they are written; None for anything else."""
    try:
        value, members = _DECODER.decode(text), dict(_walk(text))
    except (ValueError, RecursionError):
        return None
    return members if isinstance(value, dict) else None


def _walk(text: str) -> Iterator[tuple[str, str]]:
    """Keys and the text of their values in the text of a valid object."""
    at = _skip(text, text.find("{") + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        at = _end(text, start)
        yield str(key), text[start:at]
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at] == "," else at


def _end(text: str, start: int) -> int:
    decoded: tuple[Any, int] = _DECODER.raw_decode(text, start)
    return decoded[1]


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
