"""Stored responses: bounded, the least recently used gone first, and each tenant's own."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twostroke.serve.responses.store import ResponseStore, Stored


def stored(id: str, namespace: str = "", text: str = "") -> Stored:
    body: dict[str, Any] = {"id": f"resp_{id}", "output": [{"id": f"msg_{id}", "text": text}]}
    return Stored(namespace, body, ({"role": "user", "content": text},))


def test_a_response_and_its_items_are_found_under_their_namespace_alone() -> None:
    store = ResponseStore()
    store.put(stored("1", "a"))
    assert store.get("resp_1", "a") is not None
    assert store.item("msg_1", "a") == {"id": "msg_1", "text": ""}
    assert store.get("resp_1", "b") is None
    assert store.item("msg_1", "b") is None
    assert not store.delete("resp_1", "b")
    store.check()


def test_the_least_recently_used_goes_first() -> None:
    store = ResponseStore(most=2)
    store.put(stored("1"))
    store.put(stored("2"))
    assert store.get("resp_1", "")
    store.put(stored("3"))
    assert [store.get(f"resp_{i}", "") is not None for i in (1, 2, 3)] == [True, False, True]
    assert store.item("msg_2", "") is None
    store.check()


def test_bytes_are_bounded() -> None:
    one = stored("1", text="x" * 1000)
    store = ResponseStore(most_bytes=one.size * 2)
    for i in range(3):
        store.put(stored(str(i), text="x" * 1000))
    assert len(store) == 2
    store.check()


def test_what_alone_exceeds_the_bound_is_not_kept_and_evicts_nothing() -> None:
    store = ResponseStore(most_bytes=400)
    store.put(stored("1"))
    store.put(stored("2", text="x" * 1000))
    assert store.get("resp_1", "") is not None
    assert store.get("resp_2", "") is None
    store.check()


def test_deleting_forgets_the_items_too() -> None:
    store = ResponseStore()
    store.put(stored("1"))
    assert store.delete("resp_1", "")
    assert not store.delete("resp_1", "")
    assert store.item("msg_1", "") is None
    store.check()


OPERATIONS = st.tuples(
    st.sampled_from(["put", "get", "item", "delete"]), st.integers(0, 6), st.sampled_from("ab"), st.integers(0, 300)
)


@given(st.lists(OPERATIONS, max_size=60))
def test_it_is_within_its_bounds_whatever_happens(operations: list[tuple[str, int, str, int]]) -> None:
    store = ResponseStore(most=3, most_bytes=900)
    for name, index, namespace, size in operations:
        match name:
            case "put":
                store.put(stored(str(index), namespace, "x" * size))
            case "get":
                found = store.get(f"resp_{index}", namespace)
                assert found is None or found.namespace == namespace
            case "item":
                store.item(f"msg_{index}", namespace)
            case "delete":
                store.delete(f"resp_{index}", namespace)
                assert store.get(f"resp_{index}", namespace) is None
        store.check()
