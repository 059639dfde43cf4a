"""The pool against a model of it: every block in exactly one of three states."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from twostroke.cache.pool import BlockPool

SIZE = 5


class PoolMachine(RuleBasedStateMachine):
    """Holds and names at random; the model is a count and a set."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(SIZE)
        self.holders = dict.fromkeys(range(SIZE), 0)
        self.named: set[int] = set()

    def _held(self) -> list[int]:
        return [block for block, holders in self.holders.items() if holders]

    @precondition(lambda self: self.pool.free)
    @rule()
    def take(self) -> None:
        block = self.pool.take()
        assert not self.holders[block]
        assert block not in self.named
        self.holders[block] = 1

    @precondition(lambda self: self._held() or self.named)
    @rule(data=st.data())
    def hold(self, data: st.DataObject) -> None:
        block = data.draw(st.sampled_from(sorted({*self._held(), *self.named})))
        self.pool.hold(block)
        self.holders[block] += 1

    @precondition(lambda self: self._held())
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        block = data.draw(st.sampled_from(self._held()))
        self.holders[block] -= 1
        assert self.pool.drop(block) == (not self.holders[block])

    @precondition(lambda self: set(self._held()) - self.named)
    @rule(data=st.data())
    def name(self, data: st.DataObject) -> None:
        block = data.draw(st.sampled_from(sorted(set(self._held()) - self.named)))
        self.pool.name(block)
        self.named.add(block)

    @precondition(lambda self: self.named)
    @rule(data=st.data())
    def clear_name(self, data: st.DataObject) -> None:
        block = data.draw(st.sampled_from(sorted(self.named)))
        self.pool.clear_name(block)
        self.named.remove(block)

    @invariant()
    def agrees(self) -> None:
        self.pool.check()
        assert self.pool.holders == list(self.holders.values())
        idle = [block for block in self.named if not self.holders[block]]
        free = [block for block, holders in self.holders.items() if not holders and block not in self.named]
        assert (self.pool.idle, self.pool.free) == (len(idle), len(free))


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=40, stateful_step_count=30)


def test_a_new_pool_is_free() -> None:
    pool = BlockPool(3)
    pool.check()
    assert (pool.free, pool.idle) == (3, 0)
    assert sorted(pool.take() for _ in range(3)) == [0, 1, 2]


def test_the_block_used_last_is_taken_first() -> None:
    pool = BlockPool(3)
    first, second = pool.take(), pool.take()
    pool.drop(first)
    pool.drop(second)
    assert pool.take() == second


def test_a_free_block_cannot_be_held() -> None:
    with pytest.raises(AssertionError, match="block 1 is free"):
        BlockPool(2).hold(1)


def test_a_block_cannot_be_dropped_more_often_than_held() -> None:
    pool = BlockPool(2)
    block = pool.take()
    pool.drop(block)
    with pytest.raises(AssertionError, match="more often than held"):
        pool.drop(block)


def test_a_name_needs_a_holder_and_is_given_once() -> None:
    pool = BlockPool(2)
    with pytest.raises(AssertionError, match="nobody holds it"):
        pool.name(0)
    block = pool.take()
    pool.name(block)
    with pytest.raises(AssertionError, match="named twice"):
        pool.name(block)
    with pytest.raises(AssertionError, match="no name to lose"):
        pool.clear_name(1 - block)


@pytest.mark.parametrize("attribute", ["holders", "named", "idle", "_free"])
def test_check_sees_each_book_that_is_wrong(attribute: str) -> None:
    pool = BlockPool(3)
    pool.take()
    block = pool.take()
    pool.name(block)
    pool.drop(block)
    pool.check()
    broken = {"holders": [0, 0, 0], "named": [False] * 3, "idle": 2, "_free": []}
    setattr(pool, attribute, broken[attribute])
    with pytest.raises(AssertionError):
        pool.check()
