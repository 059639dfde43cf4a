"""The queue gives entries in the policy's order, whatever came and went in between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twostroke.cache.index import Entry, Root
from twostroke.cache.policy import EvictionQueue, LeastRecentlyUsed

ROOT = Root(b"root", "")


def entry(block: int, used: int) -> Entry:
    made = Entry(bytes([block]), ROOT, (block,), 1, block)
    made.used = used
    return made


class Largest:
    """Another policy: the block with the highest number goes first."""

    def key(self, entry: Entry) -> int:
        return -entry.block


@given(st.lists(st.integers(0, 9), max_size=30))
def test_the_least_recently_used_goes_first(used: list[int]) -> None:
    queue = EvictionQueue(LeastRecentlyUsed())
    for block, tick in enumerate(used):
        queue.add(entry(block, tick))
    assert len(queue) == len(used)
    assert [queue.pop().used for _ in used] == sorted(used)


def test_equals_go_in_the_order_they_came() -> None:
    queue = EvictionQueue(LeastRecentlyUsed())
    for block in range(5):
        queue.add(entry(block, 7))
    assert [queue.pop().block for _ in range(5)] == [0, 1, 2, 3, 4]


def test_the_policy_is_a_seam() -> None:
    queue = EvictionQueue(Largest())
    for block in (2, 9, 4):
        queue.add(entry(block, block))
    assert [queue.pop().block for _ in range(3)] == [9, 4, 2]


@given(st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=300))
def test_what_was_discarded_never_comes_out(moves: list[tuple[int, bool]]) -> None:
    entries = [entry(block, 0) for block in range(8)]
    queue, model = EvictionQueue(LeastRecentlyUsed()), set()
    for tick, (block, there) in enumerate(moves):
        entries[block].used = tick
        if there:
            queue.add(entries[block])
            model.add(block)
        else:
            queue.discard(entries[block])
            model.discard(block)
        assert all((entries[b] in queue) == (b in model) for b in range(8))
    assert len(queue) == len(model)
    assert {queue.pop().block for _ in range(len(queue))} == model


def test_outdated_items_do_not_pile_up() -> None:
    queue = EvictionQueue(LeastRecentlyUsed())
    held = entry(0, 0)
    for _ in range(10_000):
        queue.add(held)
        queue.discard(held)
    assert len(queue._heap) < 100
