"""What a namespace has read and written lately, as a few suffix automata.

The invariant: text goes in under one namespace and is found under that one alone, and no more than `tokens` tokens are
kept in all.  Automata cannot forget single texts, so each namespace has a row of *chapters*: the newest takes in text,
and the oldest goes whole (first in, first out).  When memory is short the namespace that holds the most gives way, so
a flood of text costs its own author.  Knows nothing of requests or time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from twostroke.speculate.automaton import Automaton

CHAPTERS = 4


class History:
    """Bounded text by namespace.

    `tokens` bounds the total over all namespaces, `share` what one of them may hold (about 450 bytes a token).
    """

    def __init__(self, tokens: int = 131_072, share: int = 32_768) -> None:
        self.tokens = tokens
        self.chapter = max(1, min(share, tokens) // CHAPTERS)  # tokens in one automaton
        self._chapters: dict[str, deque[Automaton]] = {}
        self._waiting: deque[tuple[str, Sequence[int]]] = deque()
        self._at = 0  # how much of the first waiting text is taken in
        self._size = 0  # tokens in all chapters

    def add(self, namespace: str, text: Sequence[int]) -> None:
        """Text to take in, piece by piece as `digest` is called."""
        if len(text):
            self._waiting.append((namespace, text))

    def digest(self, tokens: int) -> None:
        """Take in at most `tokens` tokens of what waits, oldest text first."""
        while tokens > 0 and self._waiting:
            namespace, text = self._waiting[0]
            chapter = self._open(namespace)
            stop = min(len(text), self._at + tokens, self._at + self.chapter - chapter.size)
            for i in range(self._at, stop):
                chapter.extend(text[i])
            tokens -= stop - self._at
            self._size += stop - self._at
            self._at = stop
            if stop == len(text):
                chapter.start()
                self._waiting.popleft()
                self._at = 0
            self._trim()

    def chapters(self, namespace: str) -> Sequence[Automaton]:
        """The automata of one namespace, oldest first."""
        return self._chapters.get(namespace, ())

    def purge(self, namespace: str) -> None:
        """Forget all text of a namespace, taken in or waiting."""
        if self._waiting and self._waiting[0][0] == namespace:
            self._at = 0
        self._waiting = deque(entry for entry in self._waiting if entry[0] != namespace)
        self._size -= self.size(namespace)
        self._chapters.pop(namespace, None)

    def size(self, namespace: str) -> int:
        """Tokens kept for a namespace."""
        return sum(chapter.size for chapter in self._chapters.get(namespace, ()))

    def check(self) -> None:
        """Recount; raises AssertionError where a bound is broken."""
        assert self._size == sum(map(self.size, self._chapters)), "history lost count of its tokens"
        assert self._size <= self.tokens, f"history holds {self._size} tokens, allowed are {self.tokens}"
        for namespace, chapters in self._chapters.items():
            assert chapters, f"namespace {namespace!r} is kept without text"
            assert len(chapters) <= CHAPTERS, f"namespace {namespace!r} holds {len(chapters)} chapters"

    def _open(self, namespace: str) -> Automaton:
        """The chapter that takes in text now; the oldest goes when there would be too many."""
        chapters = self._chapters.setdefault(namespace, deque())
        if not chapters or chapters[-1].size >= self.chapter:
            chapters.append(Automaton())
            if len(chapters) > CHAPTERS:
                self._size -= chapters.popleft().size
        return chapters[-1]

    def _trim(self) -> None:
        while self._size > self.tokens:
            largest = max(self._chapters, key=self.size)
            self._size -= self._chapters[largest].popleft().size
            if not self._chapters[largest]:
                del self._chapters[largest]
