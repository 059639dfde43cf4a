"""Calls as Mistral's models write them, in either form.

`[TOOL_CALLS] [{"name": ..., "arguments": {...}}, ...]` is the older one, `[TOOL_CALLS]name[ARGS]{...}` the newer, which
repeats the marker for every call and may give an id after `[CALL_ID]`.  Source: mistral-common's tokenizers, versions 3
to 13.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from twostroke.text.conversation import Tool
from twostroke.text.tools.family import Family
from twostroke.text.tools.objects import arguments, call_object
from twostroke.text.tools.scan import (
    Source,
    Steps,
    after_call,
    begin_call,
    literal,
    run,
    say,
    space,
    spaced,
    words_until,
)

CALLS, ARGS, ID = "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"
_NAME = re.compile(r"[^\s\[\]{}<>\"',]")


def script(source: Source, tools: Mapping[str, Tool]) -> Steps[None]:
    """Reads an answer."""
    names = tools.keys()
    while (yield from words_until(source, CALLS)):
        if not (yield from _list(source, names)) and not (yield from _named(source, names)):
            yield from say(source)


def _list(source: Source, names: Collection[str]) -> Steps[bool]:
    start = source.at
    yield from spaced(source, "[")
    if not (yield from call_object(source, names)):
        source.at = start
        return False
    while (yield from spaced(source, ",")) and (yield from call_object(source, names)):
        pass
    yield from spaced(source, "]")
    yield from after_call(source)
    return True


def _named(source: Source, names: Collection[str]) -> Steps[bool]:
    start = source.at
    yield from space(source)
    name = yield from run(source, _NAME)
    if (yield from literal(source, ID)):
        yield from run(source, _NAME)
    yield from literal(source, ARGS)
    if name not in names or not (yield from spaced(source, "{")):
        source.at = start
        return False
    source.at -= 1
    index = yield from begin_call(source, name)
    yield from arguments(source, index)
    yield from after_call(source)
    return True


def opening(name: str) -> str:
    """What stands before the arguments of a call, in the older form."""
    return f'{CALLS}[{{"name": {json.dumps(name)}, "arguments": '


def named(name: str) -> str:
    """What stands before the arguments of a call, in the newer form."""
    return f"{CALLS}{name}{ARGS}"


_SHOWN = frozenset({CALLS, ARGS, ID})
MISTRAL = Family("mistral", script, opening, "}]", CALLS, shown=_SHOWN)
MISTRAL_NAMED = Family("mistral_named", script, named, "", CALLS, shown=_SHOWN)
