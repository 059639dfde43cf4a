"""How much of a text is known, exact to the token, and why not more.

Whole blocks are followed by key from the namespace's root; where that ends, the child that shares the most leading
tokens gives the part of one more block.  The boundary of what may be reused is decided here, and nowhere else.  Reads
the index and changes nothing: a failure on the way has nothing to undo.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from twostroke.cache.index import Entry, Node, PrefixIndex


@dataclass(frozen=True, slots=True)
class Found:
    """Whole blocks, the beginning of one more (`part` positions of `source`), and the reason of `Table.miss_reason`."""

    entries: tuple[Entry, ...]
    source: Entry | None
    part: int
    reason: str | None


def resume(known: int, lookahead: int) -> int:
    """How many positions of `known` tokens may at most be reused or published.

    The last known token is always computed (its output is what comes next), and a position whose KV depends on tokens
    after the last known one does not exist yet.
    """
    return max(0, min(known - 1, known - lookahead))


def find(
    index: PrefixIndex, tokens: Sequence[int], namespace: str, block_size: int, gone: Container[bytes] = ()
) -> Found:
    """What the index knows of `tokens`; `gone` holds keys that it once knew.

    Raises LookupError when an entry on the way is corrupted.
    """
    lookahead = index.keys.group.lookahead
    limit = resume(len(tokens), lookahead)
    entries, missing = _whole(index, tokens, namespace, block_size, limit)
    node: Node = entries[-1] if entries else index.root(namespace)
    start = len(entries) * block_size
    text = tuple(tokens[start : min(start + block_size, limit) + lookahead])
    shared, source = index.longest(node, text)
    part = max(0, shared - lookahead)
    if not part:
        source = None
    for entry in (*entries, source):
        _verify(index, entry)
    reason = None if start + part == limit else _reason(start + part, node, source, part, missing in gone)
    return Found(tuple(entries), source, part, reason)


def _whole(
    index: PrefixIndex, tokens: Sequence[int], namespace: str, block_size: int, limit: int
) -> tuple[list[Entry], bytes]:
    """The known whole blocks that end by `limit`, and the key of the first block that is not known."""
    width = block_size + index.keys.group.lookahead
    entries: list[Entry] = []
    node: Node = index.root(namespace)
    for start in range(0, len(tokens) - width + 1, block_size):
        key, entry = index.child(node, tuple(tokens[start : start + width]))
        if entry is None:
            return entries, key
        if start + block_size > limit:
            break
        entries.append(entry)
        node = entry
    return entries, b""


def _verify(index: PrefixIndex, entry: Entry | None) -> None:
    """An entry that is not the one its block is filed under is corrupted."""
    if entry is not None and index.of_block(entry.block) is not entry:
        raise LookupError(f"block {entry.block} of group {index.keys.group.name!r} is filed under two names")


def _reason(cached: int, node: Node, source: Entry | None, part: int, evicted: bool) -> str:
    if evicted:
        return "evicted"
    if not cached:
        return "cold"
    ended = part == source.size if source else not node.children
    return "new" if ended else "diverged"
