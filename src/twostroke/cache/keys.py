"""What a cached block is called.

A key names everything the KV of a block depends on: the group and its weights, the adapter, the namespace, every token
before (through the parent's key), the block's own tokens, and the `lookahead` tokens after them.  Fields are
length-prefixed, so ("a", "bc") and ("ab", "c") differ.  Keys are names, not proofs: whoever looks one up compares the
tokens too, so a collision costs a recompute and never serves foreign KV.  Nothing here knows what a block holds.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

Digest = Callable[..., bytes]


@dataclass(frozen=True, slots=True)
class Group:
    """KV that is cached together.  The KV at position i depends on tokens 0 … i + `lookahead`."""

    name: str
    lookahead: int = 0


def digest(*fields: bytes) -> bytes:
    """SHA-256 over length-prefixed fields: 32 bytes."""
    name = sha256()
    for field in fields:
        name.update(len(field).to_bytes(8, "little"))
        name.update(field)
    return name.digest()


def packed(tokens: Sequence[int]) -> bytes:
    """Token ids as 64-bit integers, so that every id has one encoding of one width."""
    return array("q", tokens).tobytes()


@dataclass(frozen=True, slots=True)
class Keys:
    """Makes the keys of one group under one version of its weights and adapter."""

    group: Group
    weights: str = ""
    adapter: str = ""
    digest: Digest = digest

    def root(self, namespace: str) -> bytes:
        """The parent of a namespace's first blocks."""
        names = (self.group.name, str(self.group.lookahead), self.weights, self.adapter, namespace)
        # A namespace may be any string a server derived, lone surrogates included; it must still have a key.
        return self.digest(*(name.encode("utf-8", "surrogatepass") for name in names))

    def child(self, parent: bytes, text: Sequence[int]) -> bytes:
        """The key of a block whose own tokens, followed by the `lookahead` tokens after them, are `text`."""
        own = len(text) - self.group.lookahead
        return self.digest(parent, packed(text[:own]), packed(text[own:]))
