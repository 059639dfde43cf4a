"""Which idle block goes first.

A policy is an object with one method: it gives a block a sortable key, and the smallest goes first among the leaves
(leaves before parents is not a policy's choice: a child without its parent can never be found).  The queue keeps the
order in O(log n) by a heap whose outdated items are recognised when they surface.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Protocol

from twostroke.cache.index import Entry


class Policy(Protocol):
    """Orders idle leaves.  Called once each time a block becomes one; reads `used`, `used_s`,
    `until_s`, `uses`, `depth` and `size`."""

    def key(self, entry: Entry) -> Any:
        """A sortable value; the smallest is evicted first."""
        ...


class LeastRecentlyUsed:
    """The block that was matched or released longest ago goes first.

    One that somebody wishes to stay counts as used at the end of that time: a wish orders, and reserves nothing.
    """

    def key(self, entry: Entry) -> tuple[float, int]:
        return max(entry.used_s, entry.until_s), entry.used


class EvictionQueue:
    """Idle leaves in the order of a policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._heap: list[tuple[Any, int, Entry]] = []
        self._serial = 0
        self._live: dict[Entry, int] = {}

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, entry: Entry) -> bool:
        return entry in self._live

    def add(self, entry: Entry) -> None:
        """`entry` is an idle leaf from now on."""
        self._serial += 1
        self._live[entry] = self._serial
        heappush(self._heap, (self._policy.key(entry), self._serial, entry))
        if len(self._heap) > 2 * len(self._live) + 64:
            self._sweep()

    def discard(self, entry: Entry) -> None:
        """`entry` is held again, has a child, or is gone."""
        self._live.pop(entry, None)

    def pop(self) -> Entry:
        """Take out the entry that goes first; raises IndexError when there is none."""
        while True:
            _, serial, entry = heappop(self._heap)
            if self._live.get(entry) == serial:
                del self._live[entry]
                return entry

    def _sweep(self) -> None:
        self._heap = [item for item in self._heap if self._live.get(item[2]) == item[1]]
        heapify(self._heap)
