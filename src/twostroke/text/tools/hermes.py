"""Calls as Hermes and Qwen2.5 write them: `<tool_call>` around a JSON object of `name` and `arguments`.

Small models write the object in other clothes.  These are calls too, if the object has a name among the offered tools,
arguments that are an object, and nothing beside:

* between `<tools>` and `</tools>`;
* in a code fence that ends the answer (more such fences may follow, nothing else);
* bare, where the whole answer is such objects.

Everything else is words, exactly as written.  Source: the Hermes function-calling format, as Qwen2.5's chat template
writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from twostroke.text.conversation import Tool
from twostroke.text.tools.family import Family
from twostroke.text.tools.objects import call_object, held_call
from twostroke.text.tools.scan import (
    Source,
    Steps,
    after_call,
    literal,
    run,
    say,
    space,
    spaced,
    whole_call,
    words_until,
)

OPEN, CLOSE = "<tool_call>", "</tool_call>"
_TOOLS, _TOOLS_END = "<tools>", "</tools>"
_FENCE = "```"
_LANGUAGES = frozenset({"", "json", "tool_call", "tool_code"})
_LETTER = re.compile(r"[a-zA-Z_]")


def script(source: Source, tools: Mapping[str, Tool]) -> Steps[None]:
    """Reads an answer."""
    names = tools.keys()
    yield from _unmarked(source, names, bare=True)
    yield from say(source)
    while marker := (yield from words_until(source, OPEN, _TOOLS, _FENCE)):
        if marker == OPEN:
            found = yield from _tagged(source, names)
        elif marker == _TOOLS:
            found = yield from _listed(source, names)
        else:
            source.at -= len(_FENCE)
            found = yield from _unmarked(source, names, bare=False)
        if not found:
            yield from say(source)


def _tagged(source: Source, names: Collection[str]) -> Steps[bool]:
    if not (yield from call_object(source, names)):
        return False
    while (yield from call_object(source, names)):
        pass
    yield from space(source)
    yield from literal(source, CLOSE)
    yield from after_call(source)
    return True


def _listed(source: Source, names: Collection[str]) -> Steps[bool]:
    start = source.at
    call = yield from held_call(source, names)
    if call is None or not (yield from spaced(source, _TOOLS_END)):
        source.at = start
        return False
    yield from whole_call(source, *call)
    yield from after_call(source)
    return True


def _unmarked(source: Source, names: Collection[str], *, bare: bool) -> Steps[bool]:
    """Calls to the end of the answer; where it goes on otherwise nothing is told, and what was seen looked past."""
    calls: list[tuple[str, str]] = []
    end = source.at + (0 if bare else len(_FENCE))
    while call := (yield from _object(source, names, bare=bare)):
        calls.append(call)
        end = source.at
        yield from space(source)
        if not source.rest:
            for each in calls:
                yield from whole_call(source, *each)
            return True
    source.at = end
    return False


def _object(source: Source, names: Collection[str], *, bare: bool) -> Steps[tuple[str, str] | None]:
    yield from space(source)
    fenced = yield from literal(source, _FENCE)
    if fenced and (yield from run(source, _LETTER)).lower() not in _LANGUAGES:
        return None
    if not fenced and not bare:
        return None
    call = yield from held_call(source, names)
    if call is None or not fenced:
        return call
    closed = yield from spaced(source, _FENCE)
    return call if closed or not source.rest else None


def opening(name: str) -> str:
    """What stands before the arguments of a call."""
    return f'{OPEN}\n{{"name": {json.dumps(name)}, "arguments": '


HERMES = Family("hermes", script, opening, f"}}\n{CLOSE}", OPEN, "\n")
