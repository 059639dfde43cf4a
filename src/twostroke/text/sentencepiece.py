"""Split text as SentencePiece's BPE does: join the neighbours whose joint piece has the best score, until none has.

Source: Sennrich et al. 2016 (byte-pair encoding), with the priority of sentencepiece's `bpe_model.cc`: the highest
score first, the leftmost on a tie.  What stays outside the vocabulary falls back to one token per UTF-8 byte.
Invariant: an exact result whatever the length; words are remembered only where no piece can reach across them.
A `▁` in the text itself is read as the space it stands for.  Knows nothing about special tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush

SPACE = "▁"  # U+2581 stands for a space inside pieces
_WORDS_REMEMBERED = 1 << 14
_WORD = re.compile(f"{SPACE}*[^{SPACE}]*")
_ACROSS = re.compile(f"[^{SPACE}]{SPACE}")


class SentencePiece:
    """`ids` by piece, `scores` by id, and 256 `byte_ids` for what no piece covers."""

    def __init__(self, ids: Mapping[str, int], scores: Sequence[float], byte_ids: Sequence[int]) -> None:
        self._ids = ids
        self._scores = scores
        self._byte_ids = byte_ids
        self._separable = not any(_ACROSS.search(piece) for piece in ids)
        self._remembered = lru_cache(_WORDS_REMEMBERED)(self._split)

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, in which spaces are kept as they are (escaped on the way)."""
        escaped = text.replace(" ", SPACE)
        words = _WORD.findall(escaped) if self._separable else [escaped]
        return [i for word in words for i in self._remembered(word)]

    def piece(self, token: str) -> bytes:
        """The bytes that a normal token stands for."""
        return token.replace(SPACE, " ").encode()

    def _split(self, word: str) -> tuple[int, ...]:
        return tuple(i for piece in self._join(list(word)) for i in self._ids_of(piece))

    def _ids_of(self, piece: str) -> list[int]:
        known = self._ids.get(piece)
        return [known] if known is not None else [self._byte_ids[byte] for byte in piece.encode()]

    def _join(self, pieces: list[str]) -> list[str]:
        """`pieces` after all joins; a piece joined to its left neighbour is left empty until the end."""
        following = [*range(1, len(pieces)), -1]
        preceding = [*range(-1, len(pieces) - 1)]
        heap = [bid for left in range(len(pieces) - 1) if (bid := self._bid(pieces, left, left + 1))]
        heapify(heap)
        while heap:
            _, left, right, joint = heappop(heap)
            if not pieces[right] or pieces[left] + pieces[right] != joint:
                continue  # one of the two has grown or gone since
            pieces[left], pieces[right] = joint, ""
            after, before = following[right], preceding[left]
            following[left] = after
            if after >= 0:
                preceding[after] = left
                self._offer(heap, pieces, left, after)
            if before >= 0:
                self._offer(heap, pieces, before, left)
        return [piece for piece in pieces if piece]

    def _offer(self, heap: list[tuple[float, int, int, str]], pieces: list[str], left: int, right: int) -> None:
        if bid := self._bid(pieces, left, right):
            heappush(heap, bid)

    def _bid(self, pieces: list[str], left: int, right: int) -> tuple[float, int, int, str] | None:
        joint = pieces[left] + pieces[right]
        known = self._ids.get(joint)
        return None if known is None else (-self._scores[known], left, right, joint)
