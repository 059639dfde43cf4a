"""Calls as Llama 3.1 and later write them: an answer that is a JSON object of `name` and `parameters`.

`<|python_tag|>` may stand before it; several objects are separated by semicolons.  Without that tag only the beginning
of an answer is a call.  Source: the model card's prompt format and the chat template of Llama 3.1.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from twostroke.text.conversation import Tool
from twostroke.text.tools.family import Family
from twostroke.text.tools.objects import call_object
from twostroke.text.tools.scan import Source, Steps, after_call, literal, say, space, words_until

PYTHON = "<|python_tag|>"


def script(source: Source, tools: Mapping[str, Tool]) -> Steps[None]:
    """Reads an answer."""
    names = tools.keys()
    yield from _calls(source, names)
    while (yield from words_until(source, PYTHON)):
        if not (yield from _calls(source, names)):
            yield from say(source)


def _calls(source: Source, names: Collection[str]) -> Steps[bool]:
    if not (yield from call_object(source, names)):
        return False
    yield from _separator(source)
    while (yield from call_object(source, names)):
        yield from _separator(source)
    yield from after_call(source)
    return True


def _separator(source: Source) -> Steps[None]:
    yield from space(source)
    yield from literal(source, ";")
    yield from after_call(source)


def opening(name: str) -> str:
    """What stands before the arguments of a call."""
    return f'{{"name": {json.dumps(name)}, "parameters": '


LLAMA3 = Family("llama3", script, opening, "}", "", "; ", frozenset({PYTHON}))
