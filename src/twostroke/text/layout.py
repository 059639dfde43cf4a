"""A rendered prompt becomes ids, with the ids of known answers put where they belong and the end of every part found.

A known answer stands in the rendered text as one reserved character (a *slot*).  Each stretch of text between slots is
tokenised by itself: a template puts a special token or a line break of its own around an answer, so stretches meet
where tokens meet.  Ends of parts are found by searching the text for them, in order, and by counting bytes of tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from twostroke.text.prompt import PartEnd, Prompt
from twostroke.text.template import Rendered
from twostroke.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Wanted:
    """A part to be found: `text` as the template was given it, marks included.  `slot`: it is a known answer."""

    path: str
    text: str
    ttl_s: float | None = None
    slot: bool = False


class Layout:
    """Tokenises prompts of one vocabulary.  Immutable, safe to share between threads."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        """Bytes of every token, by id."""
        return np.array([len(self._tokenizer.token_bytes(i)) for i in range(self._tokenizer.vocab_size)], np.int64)

    def prompt(
        self,
        rendered: Rendered,
        slot: str,
        answers: Sequence[tuple[int, ...]],
        *wanted: Sequence[Wanted],
    ) -> Prompt:
        """The ids of a rendered template and the ends of the `wanted` parts, those that were found.

        `rendered` holds `slot` once for each of `answers`, in their order.  Each of the `wanted` lists is in the order
        of the prompt; how they interleave is the template's business.
        """
        ids: list[int] = []
        stretches: list[_Stretch] = []
        at = 0
        for index, text in enumerate(rendered.marked.split(slot) if slot else [rendered.marked]):
            own = self._tokenizer.encode_marked(text, rendered.mark, bos=index == 0)
            lead = self._lead(own) if index == 0 else 0
            covered = np.cumsum(self._lengths[np.array(own, np.int64)]) - lead
            stretches.append(_Stretch(at, text, rendered.mark, len(ids), covered))
            ids += own
            if index < len(answers):
                ids += answers[index]
            at += len(text) + 1
        parts = [
            PartEnd(_token(stretches, end), part.path, part.ttl_s)
            for some in wanted
            for end, part in _ends(rendered.marked, some, slot)
        ]
        return Prompt(tuple(ids), tuple(sorted(parts, key=lambda part: part.end)))

    def _lead(self, ids: Sequence[int]) -> int:
        """Bytes of a BOS token that the tokenizer, not the template, put first."""
        begun = bool(ids) and self._tokenizer.adds_bos and ids[0] == self._tokenizer.bos_id
        return int(self._lengths[ids[0]]) if begun else 0


@dataclass(frozen=True, slots=True, eq=False)
class _Stretch:
    """Text between slots: where it begins in the marked text, its first token, the bytes that so many tokens cover."""

    at: int
    text: str
    mark: str
    first: int
    covered: NDArray[np.int64]

    def token(self, end: int) -> int:
        """How many tokens of the prompt it takes to cover the stretch's first `end` characters."""
        marks = self.text.count(self.mark, 0, end) if self.mark else 0
        plain = len(self.text[:end].encode()) - marks * len(self.mark.encode())
        return self.first + min(int(np.searchsorted(self.covered, plain)) + 1, len(self.covered))


def _token(stretches: Sequence[_Stretch], end: int) -> int:
    """How many tokens it takes to cover the first `end` characters of the marked text."""
    stretch = next(each for each in reversed(stretches) if each.at <= end)
    return stretch.token(end - stretch.at) if end > stretch.at else stretch.first


def _ends(text: str, wanted: Sequence[Wanted], slot: str) -> Iterator[tuple[int, Wanted]]:
    """Where each part that is found ends in the marked text; the search for one begins where the last one ended."""
    at = 0
    for part in wanted:
        needle = slot if part.slot else part.text
        found = text.find(needle, at) if needle else -1
        if found < 0 and needle:
            found = text.find(needle.strip(), at)
            needle = needle.strip()
        if found < 0 or not needle:
            continue
        at = found + len(needle)
        yield at, part
