"""The boundary of a hit, against a model that compares every known text."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.cache.index import Entry, Node, PrefixIndex, common
from twostroke.cache.keys import Group, Keys
from twostroke.cache.lookup import find, resume

B = 3
TEXT = st.lists(st.integers(0, 2), max_size=14)


def known(lookahead: int, *texts: list[int]) -> PrefixIndex:
    """An index that knows each text as far as its positions are final."""
    index, blocks = PrefixIndex(Keys(Group("g", lookahead))), count()
    for text in texts:
        node: Node = index.root("")
        final = resume(len(text), lookahead)
        for start in range(0, final, B):
            size = min(B, final - start)
            part = tuple(text[start : start + size + lookahead])
            key, entry = index.child(node, part)
            if entry is None:
                entry = Entry(key, node, part, size, next(blocks))
                assert index.insert(entry)
            node = entry
    index.check()
    return index


@given(st.integers(0, 50), st.integers(0, 3))
def test_the_last_known_token_and_what_depends_on_later_ones_are_computed(length: int, lookahead: int) -> None:
    limit = resume(length, lookahead)
    assert limit >= 0
    assert limit == 0 or (limit <= length - 1 and limit - 1 + lookahead <= length - 1)
    assert limit >= min(length - 1, length - lookahead)


@given(st.lists(TEXT, max_size=5), TEXT, st.integers(0, 2))
def test_the_longest_known_prefix_is_found(texts: list[list[int]], asked: list[int], lookahead: int) -> None:
    def usable(text: list[int]) -> int:
        shared = common(tuple(text), tuple(asked))
        return max(0, min(shared - lookahead, resume(len(text), lookahead), resume(len(asked), lookahead)))

    found = find(known(lookahead, *texts), asked, "", B)
    assert len(found.entries) * B + found.part == max(map(usable, texts), default=0)
    assert (found.source is None) == (found.part == 0)
    assert (found.reason is None) == (len(found.entries) * B + found.part == resume(len(asked), lookahead))


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (range(8), None),
        (range(12), "new"),
        ((0, 1, 9, 9, 9), "diverged"),
        ((0, 1, 2, 9, 9), "diverged"),
        ((9, 9, 9, 9), "cold"),
        ((), None),
    ],
)
def test_why_not_more(asked: list[int], reason: str | None) -> None:
    assert find(known(0, list(range(10))), asked, "", B).reason == reason


def test_a_key_that_was_known_is_evicted_wherever_the_chain_breaks() -> None:
    index = known(0, list(range(10)))
    gone = set()
    for entry in index.leaves_first("")[:2]:
        gone.add(entry.key)
        index.remove(entry)
    found = find(index, range(10), "", B, gone)
    assert (len(found.entries), found.part, found.reason) == (1, 0, "evicted")
    assert find(index, range(10), "", B).reason == "new"


def test_another_namespace_knows_nothing() -> None:
    assert find(known(0, list(range(10))), range(10), "b", B).reason == "cold"


def test_a_corrupted_entry_is_told_of_and_nothing_changes() -> None:
    index = known(0, list(range(10)))
    first = index.root("").children[0]
    first.block = -1
    with pytest.raises(LookupError, match="filed under two names"):
        find(index, range(10), "", B)
    first.block = 0
    index.check()
