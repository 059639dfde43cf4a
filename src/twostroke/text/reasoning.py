"""What a model thinks before it answers, told apart from the answer.

Thinking stands between two markers at the beginning of an answer and nowhere else; the first marker may already have
been written by the prompt.  Line breaks at the inner and outer edges of the markers belong to the markers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from twostroke.text.pieces import Piece, Reader, Thought
from twostroke.text.tools.scan import Source, Steps, literal, space

_BREAKS = "\r\n"


@dataclass(frozen=True, slots=True)
class Thinking:
    """The markers that a model thinks between; special tokens among them must be shown to the reader as text."""

    begin: str
    end: str

    def opened_by(self, prompt: str) -> bool:
        """Whether a prompt's text ends inside the thinking, so that the answer begins there."""
        return prompt.rstrip().endswith(self.begin)


KNOWN = (Thinking("<think>", "</think>"), Thinking("[THINK]", "[/THINK]"))


def thinking_of(template_source: str | None, special_names: Collection[str]) -> Thinking | None:
    """The markers that a model's chat template writes, or else its vocabulary holds; None where it does not think."""
    source = template_source or ""
    written = (each for each in KNOWN if each.begin in source or each.end in source)
    held = (each for each in KNOWN if {each.begin, each.end} <= set(special_names))
    return next(written, None) or next(held, None)


class ThinkReader:
    """A `pieces.Reader` of an answer that may begin with thinking; `inner` reads what follows.

    `opened`: the prompt already wrote `begin`.
    """

    def __init__(self, inner: Reader, *, opened: bool, begin: str, end: str) -> None:
        self._inner = inner
        self._done = False
        self._source = Source()
        self._steps = self._script(opened, begin, end)

    def feed(self, text: str) -> Sequence[Piece]:
        if self._done:
            return self._inner.feed(text)
        self._source.text += text
        return self._advance()

    def flush(self) -> Sequence[Piece]:
        self._source.ended = True
        return (*self._advance(), *self._inner.flush())

    def _advance(self) -> Sequence[Piece]:
        return tuple(iter(lambda: next(self._steps, None), None))

    def _script(self, opened: bool, begin: str, end: str) -> Steps[None]:
        source = self._source
        yield from space(source)
        if (yield from literal(source, begin)) or opened:
            yield from _thoughts(source, end)
        self._done = True
        yield from self._inner.feed(source.take(len(source.text)))


def _thoughts(source: Source, end: str) -> Steps[None]:
    """Thoughts up to `end`, which is looked past with the line breaks behind it."""
    yield from _breaks(source)
    while True:
        at = source.text.find(end)
        last = source.ended and at < 0
        told = at if at >= 0 else len(source.text) - (0 if last else _held(source.text, end))
        told = told if last else len(source.text[:told].rstrip(_BREAKS))
        behind = at + len(end) - told
        if text := source.take(told):
            yield Thought(text)
        if at >= 0:
            source.at = behind
            yield from _breaks(source)
            return
        if source.ended:
            return
        yield None


def _breaks(source: Source) -> Steps[None]:
    """Line breaks that stand here say nothing, nor does what was looked past before."""
    while True:
        while source.rest and source.text[source.at] in _BREAKS:
            source.at += 1
        if source.rest or source.ended:
            source.take()
            return
        yield None


def _held(text: str, end: str) -> int:
    return next((n for n in range(min(len(end) - 1, len(text)), 0, -1) if end.startswith(text[-n:])), 0)
