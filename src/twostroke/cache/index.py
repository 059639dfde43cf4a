"""Which texts have KV, as a tree of blocks.

One root per namespace; a node's children are the blocks that continue it.  Whole blocks are found by key, parts of
blocks by the order of their texts: the longest common prefix of a text with a sorted list is with a neighbour of the
place where it would be inserted, so siblings are never scanned.  Every find compares the tokens *and* the parent's
identity, hence by induction the whole prefix and the namespace: a colliding key finds nothing.  The index knows no
holders and decides nothing about eviction.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from operator import attrgetter

from twostroke.cache.keys import Keys

Text = tuple[int, ...]
_text = attrgetter("text")


class Node:
    """A place where a text may go on."""

    __slots__ = ("children", "key")

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.children: list[Entry] = []  # sorted by text


class Root(Node):
    """The start of a namespace's texts."""

    __slots__ = ("namespace",)

    def __init__(self, key: bytes, namespace: str) -> None:
        super().__init__(key)
        self.namespace = namespace


class Entry(Node):
    """One named block: `text` is its `size` own tokens and the lookahead tokens after them."""

    __slots__ = ("block", "depth", "parent", "size", "text", "until_s", "used", "used_s", "uses")

    def __init__(self, key: bytes, parent: Node, text: Text, size: int, block: int) -> None:
        super().__init__(key)
        self.parent = parent
        self.text = text
        self.size = size
        self.block = block
        self.depth: int = parent.depth + 1 if isinstance(parent, Entry) else 0
        self.used = 0  # when it was last matched or released, in ticks of its space
        self.used_s = 0.0  # the same, by the clock of whoever uses the space
        self.until_s = 0.0  # how long somebody wishes it to stay, by that clock
        self.uses = 0  # how often it was matched


def common(left: Text, right: Text) -> int:
    """How many leading tokens two texts share."""
    limit = min(len(left), len(right))
    if left[:limit] == right[:limit]:
        return limit
    return next(i for i in range(limit) if left[i] != right[i])


class PrefixIndex:
    """The named blocks of one group."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self._roots: dict[str, Root] = {}
        self._by_key: dict[bytes, Entry] = {}
        self._by_block: dict[int, Entry] = {}

    def __len__(self) -> int:
        return len(self._by_block)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._by_block.values())

    def of_block(self, block: int) -> Entry | None:
        """The entry that names `block`."""
        return self._by_block.get(block)

    def root(self, namespace: str) -> Root:
        """The namespace's root; a detached one while the namespace has no entries."""
        return self._roots.get(namespace) or Root(self.keys.root(namespace), namespace)

    def child(self, parent: Node, text: Text) -> tuple[bytes, Entry | None]:
        """The key of `text` after `parent`, and the entry that is exactly that text, if there is one."""
        key = self.keys.child(parent.key, text)
        entry = self._by_key.get(key)
        if entry is None or entry.parent is not parent or entry.text != text:
            return key, None
        return key, entry

    def longest(self, parent: Node, text: Text) -> tuple[int, Entry | None]:
        """How many leading tokens of `text` the best child of `parent` shares, and that child (0 and None: none)."""
        siblings = parent.children
        place = bisect_left(siblings, text, key=_text)
        best: tuple[int, Entry | None] = (0, None)
        for entry in siblings[max(0, place - 1) : place + 1]:
            shared = common(entry.text, text)
            if shared > best[0]:
                best = shared, entry
        return best

    def insert(self, entry: Entry) -> bool:
        """Add an entry; False, and nothing changes, when its key is taken (by the same text or by a collision)."""
        if entry.key in self._by_key:
            return False
        if isinstance(entry.parent, Root):
            self._roots[entry.parent.namespace] = entry.parent
        insort(entry.parent.children, entry, key=_text)
        self._by_key[entry.key] = entry
        self._by_block[entry.block] = entry
        return True

    def remove(self, entry: Entry) -> None:
        """Take out a leaf.  A namespace whose last entry goes leaves nothing behind."""
        assert not entry.children, f"block {entry.block} still has children"
        parent = entry.parent
        siblings = parent.children
        del siblings[bisect_left(siblings, entry.text, key=_text)]
        del self._by_key[entry.key]
        del self._by_block[entry.block]
        if isinstance(parent, Root) and not siblings:
            del self._roots[parent.namespace]

    def namespaces(self) -> tuple[str, ...]:
        """Every namespace with at least one entry."""
        return tuple(self._roots)

    def leaves_first(self, namespace: str) -> list[Entry]:
        """Every entry of a namespace, each after its children."""
        found: list[Entry] = []
        todo = list(self.root(namespace).children)
        while todo:
            entry = todo.pop()
            found.append(entry)
            todo.extend(entry.children)
        return found[::-1]

    def check(self) -> None:
        """Recount the tree against the two dictionaries and every key against its fields."""
        reached = [entry for namespace in self._roots for entry in self.leaves_first(namespace)]
        assert {id(e) for e in reached} == {id(e) for e in self._by_key.values()}, "the tree and the keys differ"
        assert len(reached) == len(self._by_key) == len(self._by_block), "an entry is listed twice"
        for entry in reached:
            assert self._by_key[entry.key] is entry, f"block {entry.block} is filed under another key"
            assert self._by_block[entry.block] is entry, f"block {entry.block} has two names"
            assert entry.key == self.keys.child(entry.parent.key, entry.text), f"block {entry.block}: stale key"
            assert len(entry.text) == entry.size + self.keys.group.lookahead, f"block {entry.block}: wrong size"
            assert entry in entry.parent.children, f"block {entry.block} is unknown to its parent"
            texts = [child.text for child in entry.children]
            assert texts == sorted(texts), f"the children of block {entry.block} are out of order"
