"""Calls as FunctionGemma and Gemma 4 write them: `call:name{key:value}` between two markers, strings in a quote token.

    <start_function_call>call:name{city:<escape>Paris<escape>,days:3}<end_function_call>
    <|tool_call>call:name{city:<|"|>Paris<|"|>,days:3}<tool_call|>

Keys are bare, lists and objects nest.  A call is told when it is complete, and what is no such object is words.
Gemma 3 itself knows no tools: it reads and writes Hermes' form as `generic` tells it.  Source: FunctionGemma's and
Gemma 4's formatting guides at ai.google.dev/gemma/docs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from twostroke.text.conversation import Tool
from twostroke.text.tools.family import Family
from twostroke.text.tools.scan import (
    Source,
    Steps,
    after_call,
    find,
    literal,
    run,
    say,
    spaced,
    whole_call,
    words_until,
)

_NAME = re.compile(r"[^\s{}<>]")


@dataclass(frozen=True, slots=True)
class Markers:
    """What a generation of models writes its calls with."""

    begin: str
    end: str
    quote: str

    def script(self, source: Source, tools: Mapping[str, Tool]) -> Steps[None]:
        """Reads an answer."""
        while (yield from words_until(source, self.begin)):
            call = yield from self._call(source, tools.keys())
            if call is None:
                yield from say(source)
            else:
                yield from whole_call(source, *call)
                yield from after_call(source)

    def _call(self, source: Source, names: Collection[str]) -> Steps[tuple[str, str] | None]:
        start = source.at
        name = (yield from run(source, _NAME)) if (yield from spaced(source, "call:")) else ""
        begin = source.at
        offered = name in names and (yield from literal(source, "{"))
        body = source.text[begin : source.at] if offered and (yield from self._end(source)) else ""
        arguments = as_json(body.removesuffix(self.end), self.quote)
        if arguments is None:
            source.at = start
            return None
        return name, arguments

    def _end(self, source: Source) -> Steps[bool]:
        """Look past the call's end, which may also stand inside a string."""
        while (found := (yield from find(source, self.end, self.quote))) == self.quote:
            yield from find(source, self.quote)
        return found is not None

    def opening(self, name: str) -> str:
        """What stands before the arguments of a call."""
        return f"{self.begin}call:{name}"

    def family(self, name: str) -> Family:
        """The family that writes so."""
        shown = frozenset({self.begin, self.end, self.quote})
        return Family(name, self.script, self.opening, self.end, self.begin, shown=shown, arguments=None)


def as_json(body: str, quote: str) -> str | None:
    """The JSON text of an object in this notation; None where it is none."""
    text = "".join(_tokens(body, re.escape(quote)))
    try:
        return text if isinstance(json.loads(text, parse_constant=_refuse), dict) else None
    except (ValueError, RecursionError):
        return None


def _tokens(body: str, quote: str) -> Iterator[str]:
    text, mark = rf"{quote}(?P<text>.*?){quote}", r"(?P<mark>[{}\[\],:])"
    bare = rf"(?P<bare>(?:(?!{quote})[^{{}}\[\],:])+)(?P<key>:?)"
    pattern = rf"{text}|{mark}|{bare}|(?P<other>.)"  # `other` is no sign of JSON's either
    for found in re.finditer(pattern, body, re.DOTALL):
        if found["mark"]:
            yield {",": ", ", ":": ": "}.get(found["mark"], found["mark"])
        elif found["text"] is not None:
            yield _quoted(found["text"])
        elif found["other"]:
            yield found["other"]
        elif found["key"]:
            yield _quoted(found["bare"].strip()) + ": "
        elif found["bare"].strip():
            yield _value(found["bare"].strip())


def _value(bare: str) -> str:
    try:
        json.loads(bare, parse_constant=_refuse)
    except ValueError:
        return _quoted(bare)
    return bare


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _refuse(name: str) -> None:
    raise ValueError(name)


GEMMA = Markers("<start_function_call>", "<end_function_call>", "<escape>").family("gemma")
GEMMA4 = Markers("<|tool_call>", "<tool_call|>", '<|"|>').family("gemma4")
