"""The ledger under random use, with a cell behind every position: whatever is found holds what it is found by."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.composition.fakes import Cells, digests
from twostroke.cache import index
from twostroke.cache.index import common
from twostroke.cache.keys import Group
from twostroke.cache.policy import LeastRecentlyUsed
from twostroke.cache.space import GroupSpace
from twostroke.cache.table import Store, Table

B = 2
TEXT = st.lists(st.integers(0, 1), min_size=1, max_size=9)
NAMESPACE = st.sampled_from(["", "b"])


@dataclass
class Running:
    tokens: list[int]
    table: Table
    computed: int


class SpaceMachine(RuleBasedStateMachine):
    """Sequences that match, compute, guess, grow, end and are preempted, in one small group."""

    @initialize(lookahead=st.integers(0, 2), blocks=st.integers(3, 10), spare=st.integers(0, 2))
    def begin(self, lookahead: int, blocks: int, spare: int) -> None:
        self.space = GroupSpace(Store(Group("g", lookahead), blocks, spare), B, LeastRecentlyUsed())
        self.cells = Cells(B, lookahead)
        self.running: list[Running] = []

    def pick(self, data: st.DataObject) -> Running:
        return data.draw(st.sampled_from(self.running))

    @rule(tokens=TEXT, namespace=NAMESPACE, caching=st.sampled_from([True, True, False]))
    def match(self, tokens: list[int], namespace: str, caching: bool) -> None:
        table = self.space.match(tokens, namespace, caching)
        assert caching or not table.cached
        self.running.append(Running(tokens, table, table.cached))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), count=st.integers(1, 4))
    def compute(self, data: st.DataObject, count: int) -> None:
        """Make the copy, audit what is below, write, publish."""
        item = self.pick(data)
        table = item.table
        end = min(item.computed + count, len(item.tokens) - self.cells.lookahead)
        if end <= item.computed or not self.space.grow(table, end):
            return
        if table.copy is not None:
            self.cells.copy(table.copy.source, table.copy.target, table.copy.tokens)
        self.space.copied(table)
        wanted = digests(table.namespace, item.tokens)
        self.cells.audit(table.ids, wanted, item.computed)
        for position in range(item.computed, end):
            self.cells.write(table.ids, position, wanted[position + self.cells.lookahead])
        item.computed = end
        self.space.publish(table, item.tokens, end)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), tokens=TEXT)
    def extend(self, data: st.DataObject, tokens: list[int]) -> None:
        self.pick(data).tokens += tokens

    @precondition(lambda self: self.running)
    @rule(data=st.data(), count=st.integers(1, 5))
    def guess(self, data: st.DataObject, count: int) -> None:
        """Write beyond what is computed into free blocks, and take it back."""
        item = self.pick(data)
        evicted = self.space.evicted
        if item.table.copy is None:
            covered = self.space.stretch(item.table, item.computed + count)
            for position in range(item.computed, covered):
                self.cells.write(item.table.ids, position, -1)
            self.space.trim(item.table, item.computed)
        assert self.space.evicted == evicted

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def forgo(self, data: st.DataObject) -> None:
        item = self.pick(data)
        if item.table.copy is not None and item.computed == item.table.cached:
            self.space.forgo(item.table)
            item.computed = item.table.cached

    @precondition(lambda self: self.running)
    @rule(data=st.data(), publish=st.booleans())
    def end(self, data: st.DataObject, publish: bool) -> None:
        item = self.pick(data)
        self.running.remove(item)
        if publish:
            self.space.close(item.table, item.tokens, item.computed)
        else:
            self.space.release(item.table)

    @rule(namespace=NAMESPACE)
    def purge(self, namespace: str) -> None:
        self.space.purge(namespace)

    @invariant()
    def books_are_right(self) -> None:
        if hasattr(self, "space"):
            self.space.check()
            assert not self.space.faults
            assert not self.space.collisions

    @invariant()
    def a_found_prefix_is_what_it_is_found_by(self) -> None:
        for item in getattr(self, "running", ()):
            if item.table.copy is None:
                self.cells.audit(item.table.ids, digests(item.table.namespace, item.tokens), item.computed)

    def teardown(self) -> None:
        for item in getattr(self, "running", ()):
            self.space.close(item.table, item.tokens, item.computed)
        if hasattr(self, "space"):
            self.space.check()
            assert not any(self.space.pool.holders)


TestSpaceMachine = SpaceMachine.TestCase
TestSpaceMachine.settings = settings(max_examples=60, stateful_step_count=30)


def test_the_machine_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "common", lambda left, right: min(common(left, right) + 1, len(left), len(right)))
    with pytest.raises(AssertionError, match="is not its KV"):
        run_state_machine_as_test(SpaceMachine, settings=settings(TestSpaceMachine.settings, phases=[Phase.generate]))
