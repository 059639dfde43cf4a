"""Block ids and who holds them.

A block is in exactly one of three states: *free* (nobody holds it, nothing worth keeping), *held* (by at least one
table), or *idle* (nobody holds it, but it is named: what it remembers may be of use again).  The pool counts; it knows
neither tokens nor keys, nor in which order idle blocks should go.
"""

from __future__ import annotations


class BlockPool:
    """`size` block ids, 0 … size - 1, with a count of holders each."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.holders = [0] * size
        self.named = [False] * size
        self.idle = 0
        self._free = list(range(size - 1, -1, -1))  # a stack: the block used last is the warmest in memory

    @property
    def free(self) -> int:
        """Blocks that can be taken without forgetting anything."""
        return len(self._free)

    def take(self) -> int:
        """A free block, now held once.  The caller has seen that `free` is not 0."""
        block = self._free.pop()
        self.holders[block] = 1
        return block

    def hold(self, block: int) -> None:
        """One more holder for a block that is held or idle."""
        if not self.holders[block]:
            assert self.named[block], f"block {block} is free: it can be taken, not held"
            self.idle -= 1
        self.holders[block] += 1

    def drop(self, block: int) -> bool:
        """One holder fewer; whether that was the last one."""
        assert self.holders[block] > 0, f"block {block} is dropped more often than held"
        self.holders[block] -= 1
        if self.holders[block]:
            return False
        self._settle(block)
        return True

    def name(self, block: int) -> None:
        """A held block now remembers something worth keeping."""
        assert self.holders[block] > 0, f"block {block} is named but nobody holds it"
        assert not self.named[block], f"block {block} is named twice"
        self.named[block] = True

    def clear_name(self, block: int) -> None:
        """The block remembers nothing any more; an idle one becomes free."""
        assert self.named[block], f"block {block} has no name to lose"
        self.named[block] = False
        if not self.holders[block]:
            self.idle -= 1
            self._settle(block)

    def _settle(self, block: int) -> None:
        if self.named[block]:
            self.idle += 1
        else:
            self._free.append(block)

    def check(self) -> None:
        """Recount every state; raises AssertionError where the books are wrong."""
        assert min(self.holders, default=0) >= 0, "a block has fewer than no holders"
        unheld = [block for block, holders in enumerate(self.holders) if not holders]
        free = [block for block in unheld if not self.named[block]]
        assert sorted(self._free) == free, f"free list {sorted(self._free)} is not {free}"
        assert self.idle == len(unheld) - len(free), f"idle count {self.idle} is not {len(unheld) - len(free)}"
