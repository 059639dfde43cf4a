"""Reading text that comes in pieces, written as if it were all there.

A *script* is a generator that looks at a `Source`, yields the pieces that are certain, and yields None where it needs
more text.  Invariant: a script decides by the text alone, never by where it was cut, so neither does what it yields.
Knows no model family.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from twostroke.text.pieces import CallArguments, CallEnd, CallStart, Piece, Words

T = TypeVar("T")
Steps = Generator[Piece | None, None, T]
SPACE = " \t\r\n"


class Source:
    """The text that nothing was decided about yet; `at` is how far a script has looked into it."""

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.ended = False
        self.calls = 0  # begun so far
        self.unfinished = 0  # objects that were looked for the end of in vain

    def take(self, end: int | None = None) -> str:
        """The text up to `end` (where the script looks, if not given), which is decided now."""
        end = self.at if end is None else end
        taken, self.text, self.at = self.text[:end], self.text[end:], 0
        return taken

    @property
    def rest(self) -> int:
        """Characters from `at` on."""
        return len(self.text) - self.at


Script = Callable[[Source], Steps[None]]


class ScriptReader:
    """A `pieces.Reader` that follows a script."""

    def __init__(self, script: Script) -> None:
        self._source = Source()
        self._steps = script(self._source)

    def feed(self, text: str) -> Sequence[Piece]:
        self._source.text += text
        return self._advance()

    def flush(self) -> Sequence[Piece]:
        self._source.ended = True
        return self._advance()

    def _advance(self) -> Sequence[Piece]:
        return tuple(iter(lambda: next(self._steps, None), None))


def space(source: Source) -> Steps[None]:
    """Look past white space."""
    while True:
        while source.rest and source.text[source.at] in SPACE:
            source.at += 1
        if source.rest or source.ended:
            return
        yield None


def literal(source: Source, wanted: str) -> Steps[bool]:
    """Look past `wanted`; False, and nowhere further, where the text is another."""
    while not source.ended and source.rest < len(wanted) and wanted.startswith(source.text[source.at :]):
        yield None
    found = source.text.startswith(wanted, source.at)
    source.at += len(wanted) if found else 0
    return found


def spaced(source: Source, *wanted: str) -> Steps[bool]:
    """Look past each of `wanted` and the white space before it."""
    for each in wanted:
        yield from space(source)
        if not (yield from literal(source, each)):
            return False
    return True


def one_of(source: Source, *wanted: str) -> Steps[str | None]:
    """Look past the first of `wanted` that is there, and say which."""
    for each in wanted:
        if (yield from literal(source, each)):
            return each
    return None


def run(source: Source, pattern: re.Pattern[str]) -> Steps[str]:
    """Look past characters, each of which `pattern` matches."""
    start = source.at
    while True:
        while source.rest and pattern.match(source.text[source.at]):
            source.at += 1
        if source.rest or source.ended:
            return source.text[start : source.at]
        yield None


def find(source: Source, *wanted: str) -> Steps[str | None]:
    """Look past the first occurrence of any of `wanted` and say which; None, at the end, where there is none."""
    pattern, longest = _any_of(wanted), max(map(len, wanted))
    while True:
        if found := pattern.search(source.text, source.at):
            source.at = found.end()
            return found.group()
        if source.ended:
            source.at = len(source.text)
            return None
        source.at = max(source.at, len(source.text) - longest + 1)
        yield None


def words_until(source: Source, *markers: str) -> Steps[str | None]:
    """Words up to one of `markers`, which the source has then looked past; None at the end of the text.

    The white space before a marker stays undecided with it: it belongs to a call if the marker begins one.
    """
    pattern = _any_of(markers)
    while True:
        found = pattern.search(source.text)
        end = found.start() if found else len(source.text) - (0 if source.ended else _held(source.text, markers))
        if found or not source.ended:
            end = len(source.text[:end].rstrip(SPACE))
        shift = end if found else 0
        yield from say(source, end)
        if found:
            source.at = found.end() - shift
            return found.group()
        if source.ended:
            return None
        yield None


def say(source: Source, end: int | None = None) -> Steps[None]:
    """What is decided now, up to `end`, is words."""
    if text := source.take(end):
        yield Words(text)


def begin_call(source: Source, name: str) -> Steps[int]:
    """A call begins: what the source has looked past is its clothes.  Returns its index."""
    source.take()
    source.calls += 1
    yield CallStart(source.calls - 1, name)
    return source.calls - 1


def whole_call(source: Source, name: str, arguments: str) -> Steps[None]:
    """A call that is complete."""
    index = yield from begin_call(source, name)
    yield CallArguments(index, arguments)
    yield CallEnd(index)


def after_call(source: Source) -> Steps[None]:
    """White space behind a call says nothing."""
    yield from space(source)
    source.take()


def _any_of(wanted: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, wanted)))


def _held(text: str, markers: Sequence[str]) -> int:
    """How many characters at the end may become a marker."""
    longest = min(max(map(len, markers)) - 1, len(text))
    return next((n for n in range(longest, 0, -1) if any(m.startswith(text[-n:]) for m in markers)), 0)
