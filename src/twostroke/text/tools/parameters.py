"""A tool's parameters as a JSON schema that was judged: what its arguments must fit, in the order sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twostroke.errors import InvalidParameter
from twostroke.text.conversation import Tool

NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


def schema_of(tool: Tool) -> Mapping[str, Any]:
    """The schema of a tool's arguments; without parameters, that of an empty object.

    Raises:
        InvalidParameter: the parameters are no schema of an object; `param` is the tool's path.
    """
    given: object = tool.parameters
    if given is None:
        return NO_PARAMETERS
    if not isinstance(given, Mapping):
        raise _wrong(tool, f"are {given!r:.60}", "send a JSON schema")
    if given.get("type", "object") != "object":
        raise _wrong(tool, f"have the type {json.dumps(given['type'])}", 'the type must be "object"')
    if not isinstance(given.get("properties", {}), Mapping):
        raise _wrong(tool, f"have properties {given['properties']!r:.60}", "properties must be an object")
    if not isinstance(given.get("required", []), list | tuple):
        raise _wrong(tool, f"have required {given['required']!r:.60}", "required must be an array of names")
    return given if "type" in given else {"type": "object", **given}


def properties_of(tool: Tool) -> Mapping[str, Any]:
    """The schemas of the parameters by name; none where the tool does not say."""
    found = (tool.parameters or {}).get("properties")
    return found if isinstance(found, Mapping) else {}


def kinds_of(schema: Any) -> frozenset[str]:
    """The types that a schema takes; "string" alone where it says nothing."""
    if not isinstance(schema, Mapping):
        return frozenset({"string"})
    if "enum" in schema or "const" in schema:
        values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]
        return frozenset("string" if isinstance(value, str) else "other" for value in values)
    choices = [each for word in ("anyOf", "oneOf") for each in schema.get(word) or ()]
    if choices:
        return frozenset[str]().union(*map(kinds_of, choices))
    kind = schema.get("type", "object" if "properties" in schema else "other" if "$ref" in schema else "string")
    return frozenset(kind) if isinstance(kind, list) else frozenset({str(kind)})


def _wrong(tool: Tool, found: str, remedy: str) -> InvalidParameter:
    return InvalidParameter(f"the parameters of {tool.path or tool.name} {found}; {remedy}", param=tool.path or None)
