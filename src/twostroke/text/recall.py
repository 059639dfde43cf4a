"""Answers that may come back: a client sends the text of an answer with its next turn, and gets the ids it was made of.

The same text can be cut into other tokens than the model wrote, and the template may write a call with other spaces;
either would end a cache hit at the first answer.  Answers are found by what clients return of them: words, thoughts and
calls, without the white space around them.  One namespace never finds another's.  Bounded; safe to share between
threads.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence

from twostroke.text.conversation import ToolCall

MOST = 4096  # answers
MOST_TOKENS = 4_000_000  # of all answers together: some 150 MB
Key = tuple[str, str, str, tuple[tuple[str, str], ...]]


class Recall:
    """Ids by answer, the least recently used forgotten first."""

    def __init__(self, most: int = MOST, most_tokens: int = MOST_TOKENS) -> None:
        self._most, self._most_tokens = most, most_tokens
        self._known: OrderedDict[Key, tuple[int, ...]] = OrderedDict()
        self._tokens = 0
        self._lock = threading.Lock()

    def add(
        self, namespace: str, words: str, thoughts: str, calls: Sequence[ToolCall], tokens: tuple[int, ...]
    ) -> None:
        """Keep the ids of an answer; one that says nothing, or alone exceeds the bound, is not kept."""
        if not tokens or not (words.strip() or thoughts.strip() or calls) or len(tokens) > self._most_tokens:
            return
        key = _key(namespace, words, thoughts, calls)
        with self._lock:
            self._tokens += len(tokens) - len(self._known.pop(key, ()))
            self._known[key] = tokens
            while len(self._known) > self._most or self._tokens > self._most_tokens:
                self._tokens -= len(self._known.popitem(last=False)[1])

    def find(self, namespace: str, words: str, thoughts: str, calls: Sequence[ToolCall]) -> tuple[int, ...] | None:
        """The ids of that answer, None where it is not known."""
        key = _key(namespace, words, thoughts, calls)
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._known.clear()
            self._tokens = 0

    def check(self) -> None:
        """Recount; raises AssertionError where the bounds or the count are wrong."""
        with self._lock:
            assert self._tokens == sum(map(len, self._known.values())), "the tokens are miscounted"
            assert len(self._known) <= self._most, "more answers than the bound"
            assert self._tokens <= self._most_tokens, "more tokens than the bound"


def _key(namespace: str, words: str, thoughts: str, calls: Sequence[ToolCall]) -> Key:
    return namespace, words.strip(), thoughts.strip(), tuple((call.name, _canonical(call.arguments)) for call in calls)


def _canonical(arguments: str) -> str:
    """Arguments as every client sends them back: some keep the text, some parse it and write it again."""
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False, sort_keys=True)
    except ValueError:
        return arguments.strip()
