"""The ledger: exact hits, shared blocks, publication of what is final only, eviction from the leaves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.cache.index import Entry
from twostroke.cache.keys import Group, Keys
from twostroke.cache.lookup import resume
from twostroke.cache.policy import LeastRecentlyUsed
from twostroke.cache.space import GroupSpace, KVSpace
from twostroke.cache.table import Store, Table
from twostroke.types import Copy

B = 4
TARGET = Group("target")
TOKENS = st.lists(st.integers(0, 2), min_size=1, max_size=20)


def ledger(blocks: int = 32, lookahead: int = 0, spare: int = 0) -> GroupSpace:
    return GroupSpace(Store(Group("target", lookahead), blocks, spare), B, LeastRecentlyUsed())


def remember(space: GroupSpace, tokens: Sequence[int], namespace: str = "") -> None:
    """Compute all but the last of these tokens, and finish."""
    table = space.match(tokens, namespace)
    space.copied(table)
    assert space.grow(table, len(tokens) - 1)
    space.close(table, tokens, len(tokens) - 1)
    space.check()


def hit(space: GroupSpace, tokens: Sequence[int], namespace: str = "", caching: bool = True) -> tuple[int, str | None]:
    """What a sequence of these tokens would reuse, and why not more; leaves nothing behind."""
    table = space.match(tokens, namespace, caching)
    space.check()
    found = table.cached, table.miss_reason
    space.release(table)
    space.check()
    return found


def shared(left: Sequence[int], right: Sequence[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


class TestMatch:
    def test_nothing_is_known_at_first(self) -> None:
        assert hit(ledger(), range(10)) == (0, "cold")

    @pytest.mark.parametrize("length", range(1, 30))
    def test_all_but_the_last_token_of_a_repeated_prompt_is_reused(self, length: int) -> None:
        space = ledger()
        remember(space, range(length))
        assert hit(space, range(length)) == (length - 1, None)

    @given(TOKENS, TOKENS, st.integers(0, 2))
    def test_a_hit_is_exact_to_the_token(self, known: list[int], asked: list[int], lookahead: int) -> None:
        space = ledger(lookahead=lookahead)
        remember(space, known)
        final = max(0, min(len(known) - 1, len(known) - lookahead))
        possible = max(0, min(len(asked) - 1, len(asked) - lookahead))
        assert hit(space, asked)[0] == min(final, possible, max(0, shared(known, asked) - lookahead))

    @given(st.lists(TOKENS, max_size=6), TOKENS)
    def test_the_best_of_many_is_found(self, known: list[list[int]], asked: list[int]) -> None:
        space = ledger(64)
        for tokens in known:
            remember(space, tokens)
        best = max((min(len(tokens) - 1, shared(tokens, asked)) for tokens in known), default=0)
        assert hit(space, asked)[0] == min(best, len(asked) - 1)

    def test_a_part_of_a_block_is_copied_into_a_block_of_ones_own(self) -> None:
        space = ledger()
        remember(space, range(12))
        source = space.match(range(12), "").blocks[1]
        table = space.match((*range(6), 99, 99), "")
        assert table.cached == 6
        assert table.copy == Copy(source, table.blocks[1], 2)
        assert table.blocks[1] != source

    def test_the_source_of_a_copy_outlives_every_pressure_until_it_is_made(self) -> None:
        space = ledger(blocks=4)
        remember(space, range(4))
        table = space.match((*range(3), 99), "")
        assert table.copy is not None
        assert space.grow(table, 3 * B)
        assert table.copy.source not in table.blocks
        assert not space.grow(table, 4 * B)
        space.check()
        space.copied(table)
        assert space.grow(table, 4 * B)
        space.check()

    def test_a_partial_hit_can_be_forgone(self) -> None:
        space = ledger()
        remember(space, range(12))
        table = space.match(range(7), "")
        assert (table.cached, len(table.blocks)) == (6, 2)
        space.forgo(table)
        assert (table.cached, table.copy, table.miss_reason, len(table.blocks)) == (4, None, "no_room", 1)
        assert table.ids == tuple(table.blocks)
        space.check()
        space.forgo(table)
        assert table.cached == 4

    def test_without_a_block_to_copy_to_the_hit_is_shorter(self) -> None:
        space = ledger(blocks=2)
        remember(space, range(5))
        other = space.match((), "")
        assert space.grow(other, B)
        table = space.match(range(4), "")
        assert (table.cached, table.copy, table.miss_reason) == (0, None, "no_room")
        space.check()

    def test_an_empty_prompt_is_a_miss(self) -> None:
        space = ledger()
        remember(space, range(9))
        assert hit(space, ())[0] == 0


class TestMissReason:
    def test_disabled_by_the_request(self) -> None:
        space = ledger()
        remember(space, range(9))
        assert hit(space, range(9), caching=False) == (0, "disabled")

    def test_disabled_for_all(self) -> None:
        space = GroupSpace(Store(TARGET, 8), B, LeastRecentlyUsed(), caching=False)
        remember(space, range(9))
        assert hit(space, range(9)) == (0, "disabled")

    def test_diverged_inside_a_block_and_at_its_border(self) -> None:
        space = ledger()
        remember(space, range(13))
        assert hit(space, (*range(6), 99, 99, 99)) == (6, "diverged")
        assert hit(space, (*range(8), 99, 99, 99)) == (8, "diverged")

    def test_new_text_after_a_known_one(self) -> None:
        space = ledger()
        remember(space, range(10))
        assert hit(space, range(20)) == (9, "new")
        remember(space, range(100, 109))
        assert hit(space, range(100, 120)) == (108 - 100, "new")

    def test_evicted(self) -> None:
        space = ledger(blocks=4)
        remember(space, range(17))
        remember(space, range(50, 67))
        assert hit(space, range(17)) == (0, "evicted")

    def test_evicted_is_never_told_to_another_namespace(self) -> None:
        space = ledger(blocks=4)
        remember(space, range(17), "a")
        remember(space, range(50, 67), "a")
        assert hit(space, range(17), "b") == (0, "cold")

    def test_the_memory_of_evicted_keys_is_bounded(self) -> None:
        space = ledger(blocks=4)
        for start in range(0, 4000, 17):
            remember(space, range(start, start + 17))
        assert len(space._gone) <= 16


class TestIsolation:
    def test_the_same_namespace_hits_and_another_does_not(self) -> None:
        space = ledger()
        remember(space, range(12), "a")
        assert hit(space, range(12), "a") == (11, None)
        assert hit(space, range(12), "b") == (0, "cold")
        assert hit(space, range(12)) == (0, "cold")

    def test_a_collision_of_keys_serves_no_foreign_kv(self) -> None:
        space = ledger()
        space.index.keys = Keys(space.group, digest=lambda *fields: b"the same for all")
        remember(space, range(5), "a")
        for tokens, namespace in ((range(5), "b"), ((1, 2, 3, 4, 5), "a"), ((0, 1, 9, 9, 9), "c")):
            assert hit(space, tokens, namespace)[0] == 0
            remember(space, tokens, namespace)
        assert space.collisions == 3
        assert hit(space, range(5), "a") == (4, None)

    def test_a_purge_forgets_one_namespace_and_stops_its_running_sequences(self) -> None:
        space = ledger()
        remember(space, range(12), "a")
        remember(space, range(12), "b")
        running, tokens = space.match(range(20), "a"), range(20)
        space.copied(running)
        assert space.grow(running, 20)
        space.purge("a")
        space.check()
        space.publish(running, tokens, 20)
        assert hit(space, tokens, "a")[0] == 0
        assert hit(space, range(12), "b") == (11, None)
        space.close(running, tokens, 20)
        space.check()
        assert hit(space, tokens, "a")[0] == 0

    def test_a_purge_while_a_copy_is_pending_leaves_its_source_alone(self) -> None:
        space = ledger()
        remember(space, range(12), "a")
        table = space.match(range(7), "a")
        assert table.copy is not None
        space.purge("a")
        space.check()
        assert space.pool.holders[table.copy.source] == 1
        space.copied(table)
        space.release(table)
        space.check()
        assert space.pool.free == space.pool.size

    def test_a_namespace_without_entries_is_not_kept(self) -> None:
        space = ledger()
        for tenant in range(100):
            hit(space, range(9), f"tenant{tenant}")
        remember(space, range(9), "a")
        space.clear()
        assert space.index.namespaces() == ()
        assert space.pool.free == space.pool.size


class TestPublish:
    def running(self, space: GroupSpace, tokens: Sequence[int]) -> Table:
        table = space.match(tokens, "")
        space.copied(table)
        assert space.grow(table, len(tokens))
        return table

    def test_whole_blocks_are_found_while_their_sequence_runs(self) -> None:
        space = ledger()
        self.running(space, range(12))
        table = self.running(space, range(12))
        space.publish(table, range(12), 9)
        assert hit(space, range(12))[0] == 8

    def test_the_part_filled_last_block_is_found_once_it_is_over(self) -> None:
        space = ledger()
        table = self.running(space, range(12))
        space.publish(table, range(12), 11)
        assert hit(space, range(12))[0] == 8
        space.close(table, range(12), 11)
        assert hit(space, range(12))[0] == 11

    @pytest.mark.parametrize(("lookahead", "final"), [(0, 11), (1, 11), (2, 10), (3, 9)])
    def test_a_position_is_published_when_every_token_it_depends_on_is_final(self, lookahead: int, final: int) -> None:
        assert resume(12, lookahead) == final
        space = ledger(lookahead=lookahead)
        remember(space, range(12))
        assert hit(space, range(20))[0] == final

    def test_what_is_not_computed_is_not_published(self) -> None:
        space = ledger()
        table = self.running(space, range(12))
        space.close(table, range(12), 6)
        assert hit(space, range(12))[0] == 6

    def test_nothing_is_published_behind_a_copy_that_was_not_made(self) -> None:
        space = ledger()
        remember(space, range(12))
        table = space.match((*range(6), 99, 99, 99), "")
        assert table.cached == 6
        space.close(table, (*range(6), 99, 99, 99), 6)
        space.check()
        assert len(space.index) == 3  # nothing new

    def test_equal_texts_share_one_block(self) -> None:
        space = ledger()
        one, two = self.running(space, range(9)), self.running(space, range(9))
        assert not set(one.blocks) & set(two.blocks)
        before = two.ids
        space.publish(one, range(9), 8)
        space.publish(two, range(9), 8)
        assert one.blocks[:2] == two.blocks[:2]
        assert two.ids != before
        space.check()

    def test_a_published_value_of_the_blocks_stays_the_same_object(self) -> None:
        space = ledger()
        table = self.running(space, range(9))
        assert table.ids is table.ids

    def test_who_opted_out_publishes_nothing(self) -> None:
        space = ledger()
        table = space.match(range(12), "", caching=False)
        assert space.grow(table, 12)
        space.publish(table, range(12), 12)
        space.close(table, range(12), 12)
        assert len(space.index) == 0
        assert space.pool.free == space.pool.size

    def test_a_shorter_tail_of_a_known_text_is_not_kept_twice(self) -> None:
        space = ledger()
        remember(space, range(8))
        entries = len(space.index)
        remember(space, range(7))
        assert len(space.index) == entries


class TestGrow:
    def test_growing_is_all_or_nothing(self) -> None:
        space = ledger(blocks=2)
        table = space.match((), "")
        assert not space.grow(table, 3 * B)
        assert table.blocks == []
        assert space.grow(table, 2 * B)
        assert len(table.blocks) == 2
        assert space.grow(table, 1)
        assert len(table.blocks) == 2

    def test_growing_evicts_what_nobody_holds(self) -> None:
        space = ledger(blocks=4)
        remember(space, range(17))
        assert space.pool.free == 0
        table = space.match((), "")
        assert space.grow(table, 2 * B)
        assert space.evicted == 2 * B
        assert hit(space, range(17))[0] == 2 * B

    def test_leaves_go_before_their_parents_and_old_ones_first(self) -> None:
        space = ledger(blocks=8)
        remember(space, range(17))
        remember(space, range(50, 67))
        hit(space, range(17))
        table = space.match((), "")
        for left in (12, 8, 4):
            assert space.grow(table, len(table.blocks) * B + 1)
            assert (hit(space, range(50, 67))[0], hit(space, range(17))[0]) == (left, 16)

    def test_guesses_take_free_blocks_only(self) -> None:
        space = ledger(blocks=4)
        remember(space, range(9))
        table = space.match((), "")
        assert space.stretch(table, 20) == 2 * B
        assert space.evicted == 0
        space.check()
        space.trim(table, 1)
        assert len(table.blocks) == 1
        space.trim(table, 1)
        assert len(table.blocks) == 1
        space.check()

    def test_spare_blocks_are_for_guesses(self) -> None:
        space = ledger(blocks=4, spare=2)
        assert (space.capacity, space.obtainable) == (4 * B, 4)
        remember(space, range(17))
        table = space.match((), "")
        assert space.grow(table, 4 * B)
        assert not space.grow(table, 5 * B)
        assert space.stretch(table, 9 * B) == 6 * B
        space.check()

    def test_a_group_without_blocks_refuses_and_remembers_nothing(self) -> None:
        space = ledger(blocks=0)
        table = space.match(range(9), "")
        assert (table.cached, space.grow(table, 1), space.stretch(table, 5)) == (0, False, 0)
        space.close(table, range(9), 0)
        space.check()

    def test_used_counts_positions_held_or_remembered(self) -> None:
        space = ledger(blocks=8)
        remember(space, range(9))
        table = space.match((), "")
        assert space.grow(table, 1)
        assert space.used == 3 * B


class TestFaults:
    def test_a_failing_index_is_a_miss(self, monkeypatch: pytest.MonkeyPatch) -> None:
        space = ledger()
        remember(space, range(12))

        def fail(*_: object) -> None:
            raise RuntimeError("the index is on fire")

        monkeypatch.setattr(space.index, "child", fail)
        table = space.match(range(12), "")
        assert (table.cached, table.miss_reason, space.faults) == (0, "fault", 1)
        assert space.grow(table, 12)
        space.close(table, range(12), 12)
        monkeypatch.undo()
        space.check()
        assert hit(space, range(12)) == (11, None)

    def test_a_failing_publication_is_not_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        space = ledger()
        table = space.match(range(12), "")
        assert space.grow(table, 12)

        def fail(_: Entry) -> bool:
            raise RuntimeError("the index is full")

        monkeypatch.setattr(space.index, "insert", fail)
        space.publish(table, range(12), 12)
        space.close(table, range(12), 12)
        assert space.faults == 1
        monkeypatch.undo()
        space.check()
        assert hit(space, range(12))[0] == 0

    @pytest.mark.parametrize("length", [6, 12])
    def test_a_corrupted_entry_is_recomputed(self, length: int) -> None:
        space = ledger()
        remember(space, range(12))
        first = space.index.root("").children[0]
        first.block = first.children[0].block
        table = space.match(range(length), "")
        assert (table.cached, table.miss_reason, space.faults) == (0, "fault", 1)

    def test_memory_is_never_lost_to_a_broken_index(self) -> None:
        space = ledger(blocks=4)
        remember(space, range(17))
        for entry in list(space.index):
            space._queue.discard(entry)
        table = space.match((), "")
        assert space.grow(table, 4 * B)
        assert space.faults == 1
        space.check()


class TestCheck:
    @pytest.fixture
    def space(self) -> GroupSpace:
        space = ledger()
        remember(space, range(12))
        table = space.match((*range(6), 99, 99, 99, 99), "")
        assert space.grow(table, 10)
        space.check()
        return space

    def only(self, space: GroupSpace) -> Table:
        return next(iter(space._tables.values()))

    def test_a_lost_hold(self, space: GroupSpace) -> None:
        space.pool.holders[self.only(space).blocks[0]] += 1
        with pytest.raises(AssertionError, match="holders"):
            space.check()

    def test_a_table_that_claims_to_have_published_more(self, space: GroupSpace) -> None:
        self.only(space).published += 1
        with pytest.raises(AssertionError):
            space.check()

    def test_an_outdated_value(self, space: GroupSpace) -> None:
        table = self.only(space)
        assert table.ids
        table.blocks.reverse()
        with pytest.raises(AssertionError, match="outdated"):
            space.check()

    def test_an_idle_leaf_that_cannot_be_evicted(self, space: GroupSpace) -> None:
        leaf = next(entry for entry in space.index if entry in space._queue)
        space._queue.discard(leaf)
        with pytest.raises(AssertionError, match="can be evicted"):
            space.check()

    def test_a_table_of_another_namespace(self, space: GroupSpace) -> None:
        self.only(space).namespace = "b"
        with pytest.raises(AssertionError, match="namespace"):
            space.check()


class TestGroups:
    def test_groups_have_budgets_of_their_own(self) -> None:
        draft = Group("draft")
        kv = KVSpace([Store(TARGET, 4), Store(draft, 2)], B)
        remember(kv[TARGET], range(17))
        for start in range(0, 200, 9):
            remember(kv[draft], range(start, start + 9))
        assert kv[draft].evicted > 0
        assert (kv[TARGET].evicted, kv[TARGET].capacity) == (0, 4 * B)
        assert hit(kv[TARGET], range(17)) == (16, None)
        kv.check()

    def test_a_purge_and_a_clear_reach_every_group(self) -> None:
        kv = KVSpace([Store(TARGET, 8), Store(Group("eagle", 1), 8)], B)
        for space in kv:
            remember(space, range(9), "a")
            remember(space, range(9), "b")
        kv.purge("a")
        assert {hit(space, range(9), name)[0] for space in kv for name in "a"} == {0}
        assert all(hit(space, range(9), "b")[0] for space in kv)
        kv.clear()
        kv.check()
        assert {hit(space, range(9), "b")[0] for space in kv} == {0}

    def test_new_weights_of_one_group_leave_the_keys_of_the_other(self) -> None:
        old = KVSpace([Store(TARGET, 8, weights="t1"), Store(Group("draft"), 8, weights="d1")], B)
        new = KVSpace([Store(TARGET, 8, weights="t1"), Store(Group("draft"), 8, weights="d2")], B)
        roots = [[space.index.keys.root("") for space in kv] for kv in (old, new)]
        assert roots[0][0] == roots[1][0]
        assert roots[0][1] != roots[1][1]


class TestLifetimes:
    """A wish that a prefix stays counts as a use at the end of that time."""

    def leave(self, space: GroupSpace, tokens: Sequence[int], at_s: float, *retain: tuple[int, float]) -> None:
        space.now_s = at_s
        table = space.match(tokens, "", retain=retain)
        space.copied(table)
        assert space.grow(table, len(tokens) - 1)
        space.close(table, tokens, len(tokens) - 1)
        space.check()

    def first_to_go(self, space: GroupSpace) -> int:
        """The first token of the text whose last block is evicted first."""
        entry = space._queue.pop()
        while isinstance(entry.parent, Entry):
            entry = entry.parent
        return entry.text[0]

    def test_what_is_wished_to_stay_outlives_what_was_used_later(self) -> None:
        space = ledger()
        self.leave(space, range(5), 1.0, (4, 301.0))
        self.leave(space, range(10, 15), 2.0)
        assert [self.first_to_go(space) for _ in range(2)] == [10, 0]

    def test_a_lifetime_that_is_over_is_a_use_at_its_end(self) -> None:
        space = ledger()
        self.leave(space, range(5), 1.0, (4, 3.0))
        self.leave(space, range(10, 15), 2.0)
        self.leave(space, range(20, 25), 4.0)
        assert [self.first_to_go(space) for _ in range(3)] == [10, 0, 20]

    def test_only_the_blocks_of_the_prefix_are_meant(self) -> None:
        space = ledger()
        self.leave(space, range(13), 1.0, (5, 99.0))
        assert [entry.until_s for entry in sorted(space.index, key=lambda e: e.text)] == [99.0, 99.0, 0.0]

    def test_a_hit_with_a_wish_renews_it_and_one_without_takes_nothing_away(self) -> None:
        space = ledger()
        for at_s, retain in ((1.0, ((4, 5.0),)), (2.0, ((4, 9.0),)), (3.0, ((4, 7.0),)), (4.0, ())):
            self.leave(space, range(9), at_s, *retain)
        assert max(entry.until_s for entry in space.index) == 9.0

    def test_a_wish_refuses_nothing(self) -> None:
        space = ledger(blocks=2)
        self.leave(space, range(8), 1.0, (8, 1e9))
        table = space.match(range(50, 59), "")
        assert space.grow(table, 8)
        space.release(table)

    def test_who_does_not_read_publishes_all_the_same(self) -> None:
        space = ledger()
        remember(space, range(9))
        table = space.match(range(9), "", reading=False)
        assert (table.cached, table.miss_reason) == (0, "unread")
        assert space.grow(table, 8)
        space.close(table, range(9), 8)
        space.check()
        assert hit(space, range(9)) == (8, None)
