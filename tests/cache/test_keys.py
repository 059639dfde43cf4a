"""A key names everything the KV depends on, and two different things never look alike."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from twostroke.cache.keys import Group, Keys, digest, packed

KEYS = Keys(Group("target"), weights="w1", adapter="a1")
EAGLE = Keys(Group("eagle", lookahead=1), weights="w1")
TOKENS = st.lists(st.integers(0, 2**31), max_size=5)


@given(st.lists(st.binary(max_size=4), max_size=4), st.lists(st.binary(max_size=4), max_size=4))
def test_fields_are_length_prefixed(left: list[bytes], right: list[bytes]) -> None:
    assert (digest(*left) == digest(*right)) == (left == right)


def test_moving_a_letter_between_fields_changes_the_key() -> None:
    assert digest(b"a", b"bc") != digest(b"ab", b"c")
    left, right = replace(KEYS, weights="a", adapter="bc"), replace(KEYS, weights="ab", adapter="c")
    assert left.root("") != right.root("")


def test_a_digest_is_sha256_of_the_prefixed_fields() -> None:
    # printf '\x01\x00\x00\x00\x00\x00\x00\x00a' | sha256sum
    assert digest(b"a").hex() == "ae6121c88ba555f64c3d812123eb799d128015541f850c5e9bf1d54c08ad8481"


def test_the_root_depends_on_group_weights_adapter_and_namespace() -> None:
    roots = {
        KEYS.root(""),
        KEYS.root("tenant"),
        replace(KEYS, weights="w2").root(""),
        replace(KEYS, adapter="a2").root(""),
        replace(KEYS, group=Group("draft")).root(""),
        replace(KEYS, group=Group("target", lookahead=1)).root(""),
    }
    assert len(roots) == 6


def test_a_namespace_may_be_any_string() -> None:
    assert KEYS.root("\ud800") != KEYS.root("\ud801")


@given(TOKENS, TOKENS)
def test_a_child_depends_on_its_tokens(left: list[int], right: list[int]) -> None:
    root = KEYS.root("")
    assert (KEYS.child(root, left) == KEYS.child(root, right)) == (left == right)


def test_a_child_depends_on_its_parent() -> None:
    one, two = KEYS.child(KEYS.root(""), (1, 2)), KEYS.child(KEYS.root(""), (1, 3))
    assert KEYS.child(one, (4, 5)) != KEYS.child(two, (4, 5))


def test_a_child_depends_on_the_tokens_it_looks_ahead_to() -> None:
    root = EAGLE.root("")
    assert EAGLE.child(root, (1, 2, 3)) != EAGLE.child(root, (1, 2, 4))


def test_own_and_later_tokens_are_told_apart() -> None:
    none, one = KEYS, replace(KEYS, group=Group("target", lookahead=1))
    assert none.child(b"parent", (1, 2, 3)) != one.child(b"parent", (1, 2, 3))


def test_every_token_id_has_one_encoding_of_one_width() -> None:
    assert {len(packed([token])) for token in (0, 255, 256, 151_643, 2**31)} == {8}
    assert packed((1, 2)) == packed([1, 2])
