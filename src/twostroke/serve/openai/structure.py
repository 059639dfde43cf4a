"""Reads what shape an answer must have, from the fields of OpenAI, vLLM and llama.cpp that say so."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from twostroke.errors import InvalidParameter
from twostroke.serve.fields import Fields, shown
from twostroke.text.formats import AnyJson, Choices, Format, JsonSchema, Lark, Regex

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
IGNORED = frozenset({"disable_fallback", "backend"})  # how another engine would go about it


def structure(fields: Fields) -> Format | None:
    """The one shape asked for, None for free text.  Raises `InvalidParameter`."""
    asked = {name: read(fields, name) for name, read in READERS.items() if fields.get(name) is not None}
    found = {name: shape for name, shape in asked.items() if shape is not None}
    if len(found) > 1:
        first, second = list(found)[:2]
        raise InvalidParameter(f"{first} and {second} both ask for a shape; send one of them", param=second)
    return next(iter(found.values()), None)


def _response_format(fields: Fields, name: str) -> Format | None:
    given = fields.object(name)
    assert given is not None
    kind = given.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return AnyJson()
    if kind != "json_schema":
        raise given.wrong("type", "one of text, json_object, json_schema")
    holder = given.object("json_schema")
    if holder is None:
        raise given.wrong("json_schema", "an object with a name and a schema")
    label = holder.text("name")
    if label is None or not NAME.fullmatch(label):
        raise holder.wrong("name", "1 to 64 letters, digits, _ or -")
    holder.flag("strict", False)  # a schema is kept either way
    return _schema(holder, "schema") if holder.get("schema") is not None else AnyJson()


def _structured_outputs(fields: Fields, name: str) -> Format:
    given = fields.object(name)
    assert given is not None
    for other, value in given.values.items():
        if other not in SHAPES and other not in IGNORED and value not in (None, False):
            raise InvalidParameter(
                f"{given.at(other)} is not supported here; send one of {', '.join(SHAPES)}", param=given.at(other)
            )
    asked = [other for other in SHAPES if given.get(other) not in (None, False)]
    if len(asked) != 1:
        raise fields.wrong(name, "an object with exactly one of " + ", ".join(SHAPES))
    return SHAPES[asked[0]](given, asked[0])


def _schema(holder: Fields, name: str) -> Format:
    value = holder.get(name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise InvalidParameter(f"{holder.at(name)} is not valid JSON: {error}", param=holder.at(name)) from None
    if not isinstance(value, dict | bool):
        raise holder.wrong(name, "a JSON schema")
    return JsonSchema(value, holder.at(name))


def _any_json(holder: Fields, name: str) -> Format:
    holder.flag(name, True)
    return AnyJson()


def _regex(holder: Fields, name: str) -> Format:
    return Regex(_text(holder, name), holder.at(name))


def _grammar(holder: Fields, name: str) -> Format:
    return Lark(_text(holder, name), holder.at(name))


def _choice(holder: Fields, name: str) -> Format:
    values = holder.array(name)
    if not values or not all(isinstance(value, str) and value for value in values):
        raise holder.wrong(name, "an array of strings, none of them empty")
    return Choices(tuple(values), holder.at(name))


def _text(holder: Fields, name: str) -> str:
    value = holder.text(name)
    if not value:
        raise InvalidParameter(f"{holder.at(name)} must not be empty, it is {shown(value)}", param=holder.at(name))
    return value


SHAPES: Mapping[str, Callable[[Fields, str], Format]] = {
    "json": _schema,
    "regex": _regex,
    "choice": _choice,
    "grammar": _grammar,
    "json_object": _any_json,
}
READERS: Mapping[str, Callable[[Fields, str], Format | None]] = {
    "response_format": _response_format,
    "structured_outputs": _structured_outputs,
    "guided_json": _schema,
    "guided_regex": _regex,
    "guided_choice": _choice,
    "guided_grammar": _grammar,
    "grammar": _grammar,
    "json_schema": _schema,
}
