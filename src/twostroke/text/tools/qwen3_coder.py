"""Calls as Qwen3-Coder writes them: XML with one element per parameter, values typed by the tool's schema.

    <tool_call>
    <function=name>
    <parameter=key>
    value
    </parameter>
    </function>
    </tool_call>

The outer tag may be missing.  Arguments become JSON, one parameter at a time.  A value ends at the `</parameter>` that
another element or the call's end follows, so that it may hold such tags itself.  Source: Qwen3-Coder's chat template.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from twostroke.text.conversation import Tool
from twostroke.text.pieces import CallArguments, CallEnd
from twostroke.text.tools.family import Family
from twostroke.text.tools.parameters import kinds_of, properties_of, schema_of
from twostroke.text.tools.scan import (
    Source,
    Steps,
    after_call,
    begin_call,
    find,
    literal,
    one_of,
    run,
    say,
    space,
    words_until,
)

OPEN, CLOSE = "<tool_call>", "</tool_call>"
FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"
_NAME = re.compile(r"[^<>\r\n]")
_LITERALS = {"True": "true", "False": "false", "None": "null"}  # as Python writes them


def script(source: Source, tools: Mapping[str, Tool]) -> Steps[None]:
    """Reads an answer."""
    while marker := (yield from words_until(source, OPEN, FUNCTION)):
        if not (yield from _call(source, tools, marker == OPEN)):
            yield from say(source)


def _call(source: Source, tools: Mapping[str, Tool], tagged: bool) -> Steps[bool]:
    start = source.at
    if tagged:
        yield from space(source)
    name = yield from _name(source, FUNCTION if tagged else "")
    if name not in tools:
        source.at = start
        return False
    index = yield from begin_call(source, name)
    yield from _arguments(source, index, properties_of(tools[name]))
    yield from space(source)
    yield from literal(source, CLOSE)
    yield from after_call(source)
    return True


def _name(source: Source, before: str) -> Steps[str]:
    """The name in an element that begins with `before`; "" where there is none."""
    if before and not (yield from literal(source, before)):
        return ""
    name = yield from run(source, _NAME)
    return name.strip() if (yield from literal(source, ">")) else ""


def _arguments(source: Source, index: int, properties: Mapping[str, Any]) -> Steps[None]:
    """A JSON object of the parameters.  Where the text goes on otherwise the call ends as it stands."""
    before = "{"
    while True:
        yield from space(source)
        source.take()
        key = yield from _name(source, PARAMETER)
        value = (yield from _value(source)) if key else None
        if key == "" or value is None:
            break
        source.take()
        yield CallArguments(index, f"{before}{_json(key)}: {typed(value, properties.get(key))}")
        before = ", "
    source.at = 0
    if (yield from _ended(source)):
        yield CallArguments(index, "{}" if before == "{" else "}")
    yield CallEnd(index)


def _ended(source: Source) -> Steps[bool]:
    """Whether the call ends here; `</tool_call>` alone ends it too."""
    if (yield from literal(source, FUNCTION_END)):
        source.take()
        return True
    closed = yield from literal(source, CLOSE)
    source.at = 0
    return closed


def _value(source: Source) -> Steps[str | None]:
    """The text of a parameter, without the line breaks that its tags stand on; None where it does not end."""
    start = source.at
    while (yield from find(source, PARAMETER_END)):
        end = source.at - len(PARAMETER_END)
        yield from space(source)
        behind = source.at
        if (yield from one_of(source, PARAMETER, FUNCTION_END, CLOSE)):
            source.at = behind
            return _trimmed(source.text[start:end])
        source.at = end + len(PARAMETER_END)
    return None


def _trimmed(text: str) -> str:
    first = 2 if text.startswith("\r\n") else int(text.startswith("\n"))
    text = text[first:]
    last = 2 if text.endswith("\r\n") else int(text.endswith("\n"))
    return text[: len(text) - last]


def typed(value: str, schema: Any) -> str:
    """A parameter's text as JSON: a string where the schema takes one, else what the text says if it is JSON."""
    kinds = kinds_of(schema)
    plain = _LITERALS.get(value.strip(), value.strip())
    if "string" in kinds and not (plain == "null" and "null" in kinds):
        return _json(value)
    try:
        json.loads(plain, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _json(value)
    return plain


def _refuse(name: str) -> None:
    raise ValueError(name)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def opening(name: str) -> str:
    """What stands before the parameters of a call."""
    return f"{OPEN}\n{FUNCTION}{name}>\n"


def elements(tool: Tool) -> str:
    """A Lark grammar of a call's parameters in the order of the schema, those that are not required left out or not.

    Raises `InvalidParameter` where the tool has no schema.
    """
    schema = schema_of(tool)
    properties, required = properties_of(tool), schema.get("required", ())
    definitions = {word: schema[word] for word in ("$defs", "definitions") if word in schema}
    order = " ".join(f"p{i}" + ("" if key in required else "?") for i, key in enumerate(properties))
    rules = [_element(i, key, each, definitions) for i, (key, each) in enumerate(properties.items())]
    text = f'text[suffix="\\n{PARAMETER_END}\\n"]: /(?s:.*)/'
    return "\n".join((f"start: {order}" if order else 'start: ""', *rules, text))


def _element(index: int, key: str, schema: Any, definitions: Mapping[str, Any]) -> str:
    """One parameter; a text is anything up to its end, a choice of texts is one of them, all else is JSON."""
    begin, end = _json(f"{PARAMETER}{key}>\n"), _json(f"\n{PARAMETER_END}\n")
    values = schema.get("enum", ()) if isinstance(schema, Mapping) else ()
    if values and all(isinstance(value, str) for value in values):
        return f"p{index}: {begin} ({' | '.join(map(_json, values))}) {end}"
    if "string" in kinds_of(schema):
        return f"p{index}: {begin} text"
    return f"p{index}: {begin} v{index} {end}\nv{index}: %json {_json({**definitions, **schema})}"


QWEN3_CODER = Family("qwen3_coder", script, opening, f"{FUNCTION_END}\n{CLOSE}", OPEN, "\n", arguments=elements)
