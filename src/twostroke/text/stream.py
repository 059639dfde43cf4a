"""Ids to text as they come: whole characters only, and nothing that may still turn out to be a stop string.

Invariant: whatever the token borders, the deltas add up to the decoded whole up to the first stop string in it.  First
means completed first, and of those completed by the same character the longest: the one rule that does not depend on
how the text was cut into tokens.  `StopStrings` decides inside the engine and `TextStream` delivers outside it; both
walk the same automaton over the same characters, so they agree.  The matcher is that of Aho and Corasick 1975: one
step per character, however many stop strings.  Knows nothing about vocabularies: bytes come from a function.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from twostroke.errors import InvalidParameter

BytesOf = Callable[[int], bytes]  # what a token adds to an answer


class StopSet:
    """Stop strings as an automaton.  Its states are the prefixes of the stop strings, 0 the empty one.

    The state after some text is the longest suffix of it that is such a prefix; `depth` is its length, `hit` the
    longest stop string that the text ends with.

    Raises:
        InvalidParameter: a stop string is empty or holds a lone surrogate, and so could never match.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self.stops = tuple(stops)
        self.depth = [0]
        self.hit: list[str | None] = [None]
        self._next: list[dict[str, int]] = [{}]
        self._fallback = [0]
        for index, stop in enumerate(self.stops):
            _judge(stop, index)
            self._add(stop)
        self._link()

    def step(self, state: int, char: str) -> int:
        """The state after one more character; amortised over a text, constant time."""
        while state and char not in self._next[state]:
            state = self._fallback[state]
        return self._next[state].get(char, 0)

    def _add(self, stop: str) -> None:
        state = 0
        for char in stop:
            known = self._next[state].get(char)
            state = self._grow(state, char) if known is None else known
        self.hit[state] = stop

    def _grow(self, state: int, char: str) -> int:
        new = self._next[state][char] = len(self.depth)
        self.depth.append(self.depth[state] + 1)
        self.hit.append(None)
        self._next.append({})
        self._fallback.append(0)
        return new

    def _link(self) -> None:
        """Point every state at the longest proper suffix of it that is a state, shallow ones first."""
        queue = deque(self._next[0].values())
        while queue:
            state = queue.popleft()
            for char, child in self._next[state].items():
                self._fallback[child] = self.step(self._fallback[state], char)
                queue.append(child)
            self.hit[state] = self.hit[state] or self.hit[self._fallback[state]]


class StopStrings:
    """The `types.StopCondition` of some stop strings: says at which committed token the answer is over.

    After a hit it stays over, and `hit` names the string.
    """

    def __init__(self, bytes_of: BytesOf, stops: StopSet) -> None:
        self.hit: str | None = None
        self._bytes_of = bytes_of
        self._stops = stops
        self._state = 0
        self._characters = _utf8()

    def __call__(self, token: int) -> bool:
        for char in self._characters.decode(self._bytes_of(token)) if self.hit is None else "":
            self._state = self._stops.step(self._state, char)
            self.hit = self._stops.hit[self._state]
            if self.hit is not None:
                break
        return self.hit is not None


class TextStream:
    """The text of one answer, token by token.  `hit` is the stop string that ended it, None while it goes on."""

    def __init__(self, bytes_of: BytesOf, stops: StopSet | None = None) -> None:
        self.hit: str | None = None
        self._bytes_of = bytes_of
        self._stops = stops or StopSet(())
        self._state = 0
        self._held: deque[str] = deque()
        self._characters = _utf8()

    def feed(self, tokens: Sequence[int]) -> str:
        """The text that is certain now and was not before; nothing once a stop string was met."""
        return self._settle("".join(self._characters.decode(self._bytes_of(token)) for token in tokens))

    def flush(self) -> str:
        """The rest, when no token follows: what was held back, and U+FFFD for an unfinished character."""
        settled = self._settle(self._characters.decode(b"", final=True))
        return settled + self._release(0)

    def _settle(self, text: str) -> str:
        if self.hit is not None or not self._stops.stops:
            return "" if self.hit is not None else text
        for char in text:
            self._held.append(char)
            self._state = self._stops.step(self._state, char)
            self.hit = self._stops.hit[self._state]
            if self.hit is not None:
                return self._end(len(self.hit))
        return self._release(self._stops.depth[self._state])

    def _end(self, stop_length: int) -> str:
        text = self._release(stop_length)
        self._held.clear()
        return text

    def _release(self, keep: int) -> str:
        return "".join(self._held.popleft() for _ in range(len(self._held) - keep))


def _utf8() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")(errors="replace")


def _judge(stop: str, index: int) -> None:
    if not stop:
        raise InvalidParameter(f"stop string {index} is empty; leave it out or give it a character", param="stop")
    try:
        stop.encode()
    except UnicodeEncodeError as error:
        raise InvalidParameter(
            f"stop string {index} holds a lone surrogate at character {error.start}; send well-formed Unicode",
            param="stop",
        ) from error
