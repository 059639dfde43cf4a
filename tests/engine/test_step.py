"""Acceptance is what one-by-one decoding would have done; allowances are shared out by level."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twostroke.engine.step import Plan, accept, allot

TOKENS = st.lists(st.integers(0, 3), max_size=8)


@given(TOKENS, st.integers(0, 10**6))
def test_accepting_is_decoding_one_by_one(drafts: list[int], salt: int) -> None:
    def choose(context: tuple[int, ...]) -> int:
        return hash((salt, context)) % 4

    samples = [choose(tuple(drafts[:i])) for i in range(len(drafts) + 1)]
    kept = accept(drafts, samples)
    written: tuple[int, ...] = ()
    for token in kept:
        assert token == choose(written)
        written = (*written, token)
    assert kept[:-1] == tuple(drafts[: len(kept) - 1])
    assert len(kept) > len(drafts) or kept[-1] != drafts[len(kept) - 1]


def test_plain_decoding_is_verification_of_no_drafts() -> None:
    assert accept((), (5,)) == (5,)


def test_the_first_disagreement_ends_it() -> None:
    assert accept((1, 2, 3), (1, 9, 3, 4)) == (1, 9)
    assert accept((1, 2, 3), (8, 2, 3, 4)) == (8,)
    assert accept((1, 2, 3), (1, 2, 3, 4)) == (1, 2, 3, 4)


@given(st.dictionaries(st.integers(0, 9), st.integers(0, 9)), st.integers(0, 40))
def test_an_allowance_is_never_exceeded_and_never_wasted(wishes: dict[int, int], allowance: int) -> None:
    granted = allot(wishes, allowance)
    assert granted.keys() == wishes.keys()
    assert all(0 <= granted[key] <= wishes[key] for key in wishes)
    assert sum(granted.values()) == min(allowance, sum(wishes.values()))


@given(st.dictionaries(st.integers(0, 9), st.integers(0, 9), min_size=1), st.integers(0, 40))
def test_an_allowance_is_shared_by_level(wishes: dict[int, int], allowance: int) -> None:
    granted = allot(wishes, allowance)
    level = max(granted.values())
    assert all(granted[key] >= min(wishes[key], level - 1) for key in wishes)


def test_who_asks_little_is_served_whole() -> None:
    assert allot({1: 8, 2: 1, 3: 8}, 9) == {1: 4, 2: 1, 3: 4}
    assert allot({}, 5) == {}


def test_a_plan_is_a_value() -> None:
    assert Plan(()) == Plan((), (), (), ())
