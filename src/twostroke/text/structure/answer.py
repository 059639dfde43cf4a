"""The grammar of one answer: a `types.Grammar` over a matcher of `llguidance`.

Invariant: only `advance` moves the matcher.  Drafts are tried on a copy, which takes microseconds, so that nothing a
draft does (a limit that it exceeds included) is ever seen by the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from llguidance import LLMatcher


class AnswerGrammar:
    """`ends`: the tokens that end an answer.  `closed`: the mask that allows them alone."""

    def __init__(self, matcher: LLMatcher, ends: frozenset[int], closed: bytes) -> None:
        self._matcher = matcher
        self._ends = ends
        self._closed = closed

    @property
    def finished(self) -> bool:
        """Whether nothing but an end of text may follow."""
        return self._matcher.is_stopped()

    def advance(self, token: int) -> None:
        """Moves on.  Raises ValueError where the grammar does not allow `token`, and stays as it was."""
        if not self.valid((token,)):
            raise ValueError(f"token {token} is not allowed here; sample under the mask")
        if not self._matcher.consume_token(token):
            raise ValueError(_first_line(self._matcher))

    def allowed(self, drafts: Sequence[int]) -> bytes:
        """`1 + len(drafts)` masks; behind drafts that leave the grammar or end the answer only ends are allowed.

        Raises ValueError where nothing at all may follow, or a limit of the parser is reached.
        """
        size = len(self._closed)
        masks = [_mask(self._matcher)[:size]]  # the matcher's own may be a word longer
        copy = self._matcher.deep_copy()
        for draft in drafts:
            mask = None if draft in self._ends else _behind(copy, draft)
            if mask is None:
                break
            masks.append(mask[:size])
        return b"".join(masks) + self._closed * (1 + len(drafts) - len(masks))

    def valid(self, drafts: Sequence[int]) -> int:
        """How many leading drafts the grammar allows; none behind an end of text."""
        copy = self._matcher.deep_copy()
        for index, draft in enumerate(drafts):
            if draft in self._ends:
                return index + (copy.is_accepting() and not copy.is_error())
            if not _takes(copy, draft):
                return index
        return len(drafts)

    def forced(self) -> tuple[int, ...]:
        """The text that must come next, in the tokens that encoding it gives."""
        return tuple(self._matcher.deep_copy().compute_ff_tokens())


def _mask(matcher: LLMatcher) -> bytes:
    mask = matcher.compute_bitmask()
    if matcher.is_error():
        raise ValueError(_first_line(matcher))
    return mask


def _takes(matcher: LLMatcher, draft: int) -> bool:
    """Moves on by a draft that the mask allows: where text is forced, only in the tokens that encoding it gives."""
    forced = matcher.compute_ff_tokens()
    return forced[:1] in ([], [draft]) and matcher.try_consume_tokens([draft]) == 1


def _behind(matcher: LLMatcher, draft: int) -> bytes | None:
    """The mask after `draft`; None where the grammar does not take it, or cannot go on."""
    if not _takes(matcher, draft):
        return None
    mask = matcher.compute_bitmask()
    return None if matcher.is_error() else mask


def _first_line(matcher: LLMatcher) -> str:
    return f"the grammar cannot go on: {matcher.get_error().splitlines()[0]}"
