"""The tree finds exactly what it was given, and the longest part of it without looking at every sibling."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.cache.index import Entry, Node, PrefixIndex, Text, common
from twostroke.cache.keys import Group, Keys

TEXTS = st.lists(st.integers(0, 3), min_size=1, max_size=5).map(tuple)
BLOCKS = count()


def index(lookahead: int = 0) -> PrefixIndex:
    return PrefixIndex(Keys(Group("target", lookahead)))


def insert(tree: PrefixIndex, parent: Node, *text: int) -> Entry:
    key, found = tree.child(parent, text)
    assert found is None
    entry = Entry(key, parent, text, len(text) - tree.keys.group.lookahead, next(BLOCKS))
    assert tree.insert(entry)
    return entry


@given(TEXTS, TEXTS)
def test_common_counts_the_leading_tokens_two_texts_share(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    shared = common(left, right)
    assert left[:shared] == right[:shared]
    assert shared == min(len(left), len(right)) or left[shared] != right[shared]


@given(st.sets(TEXTS, max_size=12), TEXTS)
def test_the_longest_part_is_the_longest_of_all_siblings(texts: set[tuple[int, ...]], wanted: tuple[int, ...]) -> None:
    tree = index()
    root = tree.root("")
    for text in texts:
        insert(tree, root, *text)
    tree.check()
    shared, entry = tree.longest(root, wanted)
    assert shared == max((common(text, wanted) for text in texts), default=0)
    assert (entry is None) == (shared == 0)
    assert entry is None or common(entry.text, wanted) == shared


def test_siblings_are_not_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = index()
    root = tree.root("")
    for token in range(2000):
        insert(tree, root, token, token)
    compared: list[Text] = []

    def counted(left: Text, right: Text) -> int:
        compared.append(left)
        return common(left, right)

    monkeypatch.setattr("twostroke.cache.index.common", counted)
    assert tree.longest(root, (1234, 0))[0] == 1
    assert len(compared) <= 2


def test_a_child_is_found_under_its_own_parent_only() -> None:
    tree = index()
    one, two = insert(tree, tree.root(""), 1, 1), insert(tree, tree.root(""), 1, 2)
    child = insert(tree, one, 3, 3)
    assert tree.child(one, (3, 3))[1] is child
    assert tree.child(two, (3, 3))[1] is None


def test_namespaces_do_not_meet() -> None:
    tree = index()
    insert(tree, tree.root("a"), 1, 2)
    assert tree.child(tree.root("b"), (1, 2))[1] is None
    assert tree.longest(tree.root("b"), (1, 2)) == (0, None)
    assert tree.namespaces() == ("a",)


def test_a_namespace_whose_last_entry_goes_leaves_nothing_behind() -> None:
    tree = index()
    entry = insert(tree, tree.root("a"), 1, 2)
    tree.remove(entry)
    tree.check()
    assert tree.namespaces() == ()
    assert len(tree) == 0


def test_a_parent_cannot_be_removed_before_its_children() -> None:
    tree = index()
    parent = insert(tree, tree.root(""), 1)
    insert(tree, parent, 2)
    with pytest.raises(AssertionError, match="still has children"):
        tree.remove(parent)


def test_leaves_come_before_their_parents() -> None:
    tree = index()
    parent = insert(tree, tree.root(""), 1)
    children = [insert(tree, parent, token) for token in (2, 3)]
    grandchild = insert(tree, children[0], 4)
    order = tree.leaves_first("")
    assert order.index(grandchild) < order.index(children[0]) < order.index(parent)
    assert len(order) == 4


def test_the_same_text_with_another_successor_is_another_entry() -> None:
    tree = index(lookahead=1)
    root = tree.root("")
    one = insert(tree, root, 1, 2, 3)
    insert(tree, root, 1, 2, 4)
    assert tree.child(root, (1, 2, 3))[1] is one
    assert one.size == 2


def colliding(*fields: bytes) -> bytes:
    return b"the same for all"


def test_a_colliding_key_finds_nothing_and_adds_nothing() -> None:
    tree = PrefixIndex(Keys(Group("target"), digest=colliding))
    root, other = tree.root("a"), tree.root("b")
    entry = insert(tree, root, 1, 2)
    assert tree.child(root, (3, 4))[1] is None
    assert tree.child(other, (1, 2))[1] is None
    assert tree.child(entry, (1, 2))[1] is None
    key, _ = tree.child(other, (1, 2))
    assert not tree.insert(Entry(key, other, (1, 2), 2, next(BLOCKS)))
    assert len(tree) == 1
    assert tree.namespaces() == ("a",)
    assert tree.child(root, (1, 2))[1] is entry


@pytest.mark.parametrize("field", ["text", "size", "block", "parent", "key"])
def test_check_sees_a_corrupted_entry(field: str) -> None:
    tree = index()
    parent = insert(tree, tree.root(""), 1, 2)
    entry = insert(tree, parent, 3, 4)
    setattr(entry, field, {"text": (3, 5), "size": 1, "block": -1, "parent": tree.root(""), "key": b""}[field])
    with pytest.raises((AssertionError, KeyError)):
        tree.check()
