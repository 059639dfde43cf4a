"""Responses kept in memory so that a later request can go on from them; nothing is written to disk.

A response is found only under the namespace it was made in, and an id of another namespace looks like one that never
was.  Both the number of responses and their bytes are bounded; the least recently used goes first.  Safe to share
between threads.
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from twostroke.serve.format import encoded
from twostroke.serve.submission import Json

MOST = 1024  # responses
MOST_BYTES = 64 * 2**20
Key = tuple[str, str]  # namespace, id


@dataclass(frozen=True, slots=True)
class Stored:
    """One finished response, and what it answered."""

    namespace: str
    body: Json  # the `Response` object as it was sent
    items: tuple[Json, ...]  # its whole input, that of the responses before included
    prompt: array[int] = field(default_factory=lambda: array("i"))  # the ids of its prompt
    size: int = field(init=False)  # bytes it is counted with

    def __post_init__(self) -> None:
        texts = len(encoded(self.body)) + sum(len(encoded(item)) for item in self.items)
        object.__setattr__(self, "size", texts + len(self.prompt) * self.prompt.itemsize)

    @property
    def id(self) -> str:
        return str(self.body["id"])

    @property
    def output(self) -> Sequence[Json]:
        return list(self.body["output"])


class ResponseStore:
    """Responses by namespace and id."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[Key, Stored] = OrderedDict()
        self._owners: dict[Key, str] = {}  # the response that wrote an output item
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, stored: Stored) -> None:
        """Keep a response; one that alone exceeds the bound is not kept."""
        if stored.size > self._most_bytes:
            return
        with self._lock:
            self._drop((stored.namespace, stored.id))
            self._kept[stored.namespace, stored.id] = stored
            self._owners |= {(stored.namespace, item["id"]): stored.id for item in stored.output}
            self._bytes += stored.size
            while len(self._kept) > self._most or self._bytes > self._most_bytes:
                self._drop(next(iter(self._kept)))

    def get(self, id: str, namespace: str) -> Stored | None:
        """The response, None where there is none."""
        with self._lock:
            return self._used((namespace, id))

    def item(self, id: str, namespace: str) -> Json | None:
        """An output item of a stored response."""
        with self._lock:
            owner = self._owners.get((namespace, id))
            stored = None if owner is None else self._used((namespace, owner))
        return next((item for item in stored.output if item["id"] == id), None) if stored else None

    def delete(self, id: str, namespace: str) -> bool:
        """Forget a response; whether there was one."""
        with self._lock:
            return self._drop((namespace, id))

    def _used(self, key: Key) -> Stored | None:
        stored = self._kept.get(key)
        if stored is not None:
            self._kept.move_to_end(key)
        return stored

    def _drop(self, key: Key) -> bool:
        stored = self._kept.pop(key, None)
        if stored is None:
            return False
        self._bytes -= stored.size
        for item in stored.output:
            self._owners.pop((stored.namespace, item["id"]), None)
        return True

    def check(self) -> None:
        """Recount; raises AssertionError where a bound or a count is wrong."""
        with self._lock:
            assert self._bytes == sum(stored.size for stored in self._kept.values()), "the bytes are miscounted"
            assert self._bytes <= self._most_bytes, "more bytes than the bound"
            assert len(self._kept) <= self._most, "more responses than the bound"
            owned = {(s.namespace, item["id"]): s.id for s in self._kept.values() for item in s.output}
            assert owned == self._owners, "the items' owners are wrong"
