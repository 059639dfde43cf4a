"""What one sequence holds of one group, and what one group is given.

A table is made by `GroupSpace.match` and given back by `close` or `release`; only the space changes it.  Its leading
`published` blocks are entries of the index, which other tables may hold as well; the rest are its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from twostroke.cache.index import Entry
from twostroke.cache.keys import Group
from twostroke.types import Copy

Lifetimes = tuple[tuple[int, float], ...]
"""So many leading positions are wished to stay until that time, in seconds of the space's clock."""


@dataclass(frozen=True, slots=True)
class Store:
    """`blocks` blocks for known tokens, `spare` ones that only guesses use, the version of the weights and adapter."""

    group: Group
    blocks: int
    spare: int = 0
    weights: str = ""
    adapter: str = ""


@dataclass(eq=False, slots=True)
class Table:
    """The blocks of a sequence, in order of position.

    `cached` positions were reused; the last `copy.tokens` of them exist once `copy` has been made (then call `copied`).
    `miss_reason` says why `cached` is not more: "disabled", "cold" (nothing known starts like this), "diverged" (known
    texts go on differently at position `cached`), "new" (the known text ends at `cached`), "evicted" (it was known),
    "no_room" (no block to copy the beginning of a known one to), "fault" (the cache failed), "unread" (the request
    computes all of its prompt, and only publishes), or None (it is all there).
    """

    namespace: str
    caching: bool = True  # may publish; turned off for good when the cache fails this table
    blocks: list[int] = field(default_factory=list)
    cached: int = 0
    copy: Copy | None = None
    miss_reason: str | None = None
    published: int = 0  # leading blocks that are entries of the index
    tail: Entry | None = None  # the last of them
    retain: Lifetimes = ()  # how long its leading positions are wished to stay
    _ids: tuple[int, ...] | None = field(default=None, repr=False)

    def until_s(self, position: int) -> float:
        """How long the block that begins at `position` is wished to stay; 0 where nobody said."""
        return max((until_s for positions, until_s in self.retain if position < positions), default=0.0)

    @property
    def ids(self) -> tuple[int, ...]:
        """The blocks, as a value to hand on; the same object until the table changes."""
        if self._ids is None:
            self._ids = tuple(self.blocks)
        return self._ids

    def changed(self) -> None:
        """The blocks are no longer those of `ids`."""
        self._ids = None
