"""The ledger: which blocks hold which positions of which text, for every group.

`KVSpace` keeps one `GroupSpace` per group, each with blocks of its own: what one group reuses, holds or evicts is
decided by that group alone.  The leading `published` blocks of a table are entries of the index, the rest are its own;
so an entry that is held has held ancestors, and an idle one has only idle descendants.  Integers only: the cells
themselves, and the copying of them, are the runner's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from twostroke.cache.index import Entry, Node, PrefixIndex
from twostroke.cache.keys import Group, Keys
from twostroke.cache.lookup import Found, find, resume
from twostroke.cache.policy import EvictionQueue, LeastRecentlyUsed, Policy
from twostroke.cache.pool import BlockPool
from twostroke.cache.table import Lifetimes, Store, Table
from twostroke.types import Copy

__all__ = ["GroupSpace", "KVSpace", "Store", "Table"]


class GroupSpace:
    """Match, grow, publish and release the blocks of one group."""

    def __init__(self, store: Store, block_size: int, policy: Policy, caching: bool = True) -> None:
        self.group = store.group
        self.block_size = block_size
        self.blocks = store.blocks
        self.spare = store.spare
        self.pool = BlockPool(store.blocks + store.spare)
        self.index = PrefixIndex(Keys(store.group, store.weights, store.adapter))
        self.caching = caching
        self.evicted = 0  # positions, ever
        self.faults = 0  # failures of the cache itself: each one a recompute
        self.collisions = 0  # keys that were taken by another text
        self._policy = policy
        self._queue = EvictionQueue(policy)
        self._tables: dict[int, Table] = {}
        self._gone: dict[bytes, None] = {}  # keys of evicted blocks, oldest first, boundedly many
        self._tick = 0
        self.now_s = 0.0  # the time of what happens next, by the clock of whoever uses the space

    # -- sizes, in positions unless the name says blocks ------------------------------------------------------------

    @property
    def capacity(self) -> int:
        """Positions for known tokens."""
        return self.blocks * self.block_size

    @property
    def used(self) -> int:
        """Positions in blocks that are held or remembered."""
        return (self.pool.size - self.pool.free) * self.block_size

    @property
    def obtainable(self) -> int:
        """Blocks that known tokens can still get, evicting what nobody holds."""
        return self.pool.free + self.pool.idle - self.spare

    def missing(self, table: Table, end: int) -> int:
        """Blocks that `table` lacks to cover positions 0 … end - 1."""
        return max(0, -(-end // self.block_size) - len(table.blocks))

    # -- match ----------------------------------------------------------------------------------------------------

    def match(
        self,
        tokens: Sequence[int],
        namespace: str,
        caching: bool = True,
        reading: bool = True,
        retain: Lifetimes = (),
    ) -> Table:
        """A table that holds the longest known prefix of `tokens`, exact to the token.

        Without `reading` it holds nothing yet, but publishes.  `retain` is how long its leading positions are wished
        to stay, which the eviction policy may heed.
        A failure inside the cache is counted and is a miss: `miss_reason` "fault", and the table publishes nothing.
        """
        if not (caching and self.caching):
            table = Table(namespace, caching=False, miss_reason="disabled")
        elif not reading:
            table = Table(namespace, miss_reason="unread", retain=retain)
        else:
            table = self._matched(tokens, namespace, retain)
        self._tables[id(table)] = table
        return table

    def _matched(self, tokens: Sequence[int], namespace: str, retain: Lifetimes) -> Table:
        try:
            found = find(self.index, tokens, namespace, self.block_size, self._gone)
        except Exception:  # whatever it was, recomputing is right and failing the request is not
            self.faults += 1
            return Table(namespace, caching=False, miss_reason="fault")
        table = Table(namespace, miss_reason=found.reason, retain=retain)
        self._tick += 1
        for entry in found.entries:
            self._hold(entry)
            self._retain(table, entry, len(table.blocks))
            table.blocks.append(entry.block)
        table.published = len(found.entries)
        table.tail = found.entries[-1] if found.entries else None
        table.cached = table.published * self.block_size
        self._copy_part(table, found)
        return table

    def _copy_part(self, table: Table, found: Found) -> None:
        """Hold the source of a partial hit and take the block it is copied to, if there is one to take."""
        if found.source is None:
            return
        self._hold(found.source)
        if self.obtainable < 1:
            self._drop(found.source.block)
            table.miss_reason = "no_room"
            return
        table.copy = Copy(found.source.block, self._take(), found.part)
        table.blocks.append(table.copy.target)
        table.cached += found.part

    def forgo(self, table: Table) -> None:
        """Give up the partial hit of a table whose copy has not been made."""
        if table.copy is None:
            return
        source, target, part = table.copy.source, table.blocks.pop(), table.copy.tokens
        table.copy = None
        table.cached -= part
        table.miss_reason = "no_room"
        table.changed()
        self._drop(source)
        self._drop(target)

    def copied(self, table: Table) -> None:
        """The copy has been made: its source may go."""
        if table.copy is not None:
            source, table.copy = table.copy.source, None
            self._drop(source)

    # -- grow -----------------------------------------------------------------------------------------------------

    def grow(self, table: Table, end: int) -> bool:
        """Cover positions 0 … end - 1, evicting as needed; False, and nothing changes, when that cannot be."""
        missing = self.missing(table, end)
        if missing > self.obtainable:
            return False
        for _ in range(missing):
            table.blocks.append(self._take())
        if missing:
            table.changed()
        return True

    def stretch(self, table: Table, end: int) -> int:
        """Cover as much of positions 0 … end - 1 as free blocks allow, evicting nothing; the positions covered.

        For guesses: `trim` gives the blocks back before known tokens grow again.
        """
        missing = min(self.missing(table, end), self.pool.free)
        for _ in range(missing):
            table.blocks.append(self.pool.take())
        if missing:
            table.changed()
        return min(end, len(table.blocks) * self.block_size)

    def trim(self, table: Table, end: int) -> None:
        """Give back the blocks that positions 0 … end - 1 do not need."""
        keep = -(-end // self.block_size)
        if len(table.blocks) <= keep:
            return
        while len(table.blocks) > keep:
            self._drop(table.blocks.pop())
        table.changed()

    # -- publish and release --------------------------------------------------------------------------------------

    def publish(self, table: Table, tokens: Sequence[int], computed: int) -> None:
        """Let others find the whole blocks among the first `computed` positions of `tokens`, all of them final.

        A block that is already known under the same name replaces the table's own: equal texts share one block.
        """
        end = self._final(table, tokens, computed)
        while table.caching and (table.published + 1) * self.block_size <= end:
            self._attempt(table, tokens, self.block_size)

    def close(self, table: Table, tokens: Sequence[int], computed: int) -> None:
        """The sequence is over: publish what is final, the part-filled last block included, and release the table."""
        self.publish(table, tokens, computed)
        rest = self._final(table, tokens, computed) - table.published * self.block_size
        if table.caching and 0 < rest < self.block_size:
            self._attempt(table, tokens, rest)
        self.release(table)

    def release(self, table: Table) -> None:
        """Give back every block of the table.  What was published stays known until it is evicted."""
        self._tick += 1
        self.copied(table)
        for block in reversed(table.blocks):
            self._drop(block)
        table.blocks.clear()
        table.changed()
        table.caching = False
        table.published = table.cached = 0
        table.tail = None
        self._tables.pop(id(table), None)

    def _final(self, table: Table, tokens: Sequence[int], computed: int) -> int:
        end = min(computed, resume(len(tokens), self.group.lookahead))
        if table.copy is not None:  # its cells do not hold anything yet
            end = min(end, table.cached - table.copy.tokens)
        return end

    def _attempt(self, table: Table, tokens: Sequence[int], size: int) -> None:
        try:
            self._publish_block(table, tokens, size)
        except Exception:  # not published: others recompute
            self.faults += 1
            table.caching = False

    def _publish_block(self, table: Table, tokens: Sequence[int], size: int) -> None:
        """Name the first unpublished block of the table, which holds `size` final positions."""
        start = table.published * self.block_size
        text = tuple(tokens[start : start + size + self.group.lookahead])
        parent = table.tail or self.index.root(table.namespace)
        if size < self.block_size:
            shared, known = self.index.longest(parent, text)
            if known is not None and shared == len(text):  # a longer or equal block is known
                self._retain(table, known, table.published)
                return
        key, entry = self.index.child(parent, text)
        if entry is None:
            entry = Entry(key, parent, text, size, table.blocks[table.published])
            if not self.index.insert(entry):
                self.collisions += 1
                table.caching = False
                return
            self.pool.name(entry.block)
        else:
            self._share(table, entry)
        self._retain(table, entry, table.published)
        if size == self.block_size:
            table.tail = entry
            table.published += 1

    def _share(self, table: Table, entry: Entry) -> None:
        """Use the known block in the place of the table's own."""
        own, table.blocks[table.published] = table.blocks[table.published], entry.block
        self._hold(entry)
        self._drop(own)
        table.changed()

    # -- holding and evicting ---------------------------------------------------------------------------------------

    def _hold(self, entry: Entry) -> None:
        self.pool.hold(entry.block)
        self._queue.discard(entry)
        self._touch(entry)
        entry.uses += 1

    def _drop(self, block: int) -> None:
        if not self.pool.drop(block):
            return
        entry = self.index.of_block(block)
        if entry is not None:
            self._touch(entry)
            self._enqueue(entry)

    def _touch(self, entry: Entry) -> None:
        entry.used, entry.used_s = self._tick, self.now_s

    def _retain(self, table: Table, entry: Entry, place: int) -> None:
        """The table's wish for `entry`, which is its block number `place`; of several wishes the longest holds."""
        until_s = table.until_s(place * self.block_size) if table.retain else 0.0
        if until_s > entry.until_s:
            entry.until_s = until_s
            if entry in self._queue:  # its place among the idle ones is another now
                self._queue.discard(entry)
                self._queue.add(entry)

    def _enqueue(self, entry: Entry) -> None:
        if not entry.children:
            self._queue.add(entry)

    def _take(self) -> int:
        """A block for known tokens; the caller has seen that one is obtainable."""
        while self.pool.free <= self.spare:
            self._evict()
        return self.pool.take()

    def _evict(self) -> None:
        if not self._queue:  # idle blocks but no leaf among them: the index is broken, and memory is still ours
            self.faults += 1
            self.clear()
            return
        entry = self._queue.pop()
        self._forget(entry)
        self.evicted += entry.size
        self._gone.pop(entry.key, None)
        self._gone[entry.key] = None
        if len(self._gone) > 4 * self.pool.size:
            del self._gone[next(iter(self._gone))]

    def _forget(self, entry: Entry) -> None:
        self._queue.discard(entry)
        self.index.remove(entry)
        self.pool.clear_name(entry.block)
        parent = entry.parent
        if isinstance(parent, Entry) and not self.pool.holders[parent.block]:
            self._enqueue(parent)

    def purge(self, namespace: str) -> None:
        """Forget everything of a namespace.  Running sequences keep their blocks and publish nothing more."""
        for table in self._tables.values():
            if table.namespace == namespace:
                table.caching, table.published, table.tail = False, 0, None
        for entry in self.index.leaves_first(namespace):
            self._forget(entry)

    def clear(self) -> None:
        """Forget everything of every namespace."""
        for namespace in self.index.namespaces():
            self.purge(namespace)

    # -- check ----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Recount everything from the open tables; raises AssertionError where the books are wrong."""
        self.pool.check()
        self.index.check()
        held = [0] * self.pool.size
        for table in self._tables.values():
            for block in table.blocks:
                held[block] += 1
            if table.copy is not None:
                held[table.copy.source] += 1
            self._check_table(table)
        assert held == self.pool.holders, f"holders {self.pool.holders} are not {held}"
        named = {block for block, name in enumerate(self.pool.named) if name}
        assert {entry.block for entry in self.index} == named, "the index and the pool name different blocks"
        leaves = {entry for entry in self.index if not entry.children and not held[entry.block]}
        assert len(leaves) == len(self._queue), "not every idle leaf can be evicted"
        assert all(entry in self._queue for entry in leaves), "an entry that is not an idle leaf can be evicted"

    def _check_table(self, table: Table) -> None:
        assert table.ids == tuple(table.blocks), "a table's value is outdated"
        assert len(set(table.blocks)) == len(table.blocks), f"table {table.blocks} holds a block twice"
        node: Node | None = table.tail
        for block in reversed(table.blocks[: table.published]):
            assert isinstance(node, Entry), f"block {block} is published but has no entry"
            assert node.block == block, f"block {block} is filed as {node.block}"
            assert self.pool.named[block], f"block {block} is published but not named"
            node = node.parent
        assert not table.published or node is self.index.root(table.namespace), "a table holds another namespace's text"
        for block in table.blocks[table.published :] if table.caching else ():
            assert self.pool.holders[block] == 1, f"block {block} is unpublished but shared"


class KVSpace:
    """Every group's ledger, by group."""

    def __init__(
        self, stores: Iterable[Store], block_size: int = 16, policy: Policy | None = None, caching: bool = True
    ) -> None:
        self.block_size = block_size
        self._spaces = {
            store.group: GroupSpace(store, block_size, policy or LeastRecentlyUsed(), caching) for store in stores
        }

    def __getitem__(self, group: Group) -> GroupSpace:
        return self._spaces[group]

    def __iter__(self) -> Iterator[GroupSpace]:
        return iter(self._spaces.values())

    def purge(self, namespace: str) -> None:
        """Forget everything of a namespace, in every group."""
        for space in self:
            space.purge(namespace)

    def clear(self) -> None:
        """Forget everything, in every group."""
        for space in self:
            space.clear()

    def check(self) -> None:
        """Recount every group."""
        for space in self:
            space.check()
