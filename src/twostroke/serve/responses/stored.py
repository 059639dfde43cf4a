"""What clients may ask about responses that were stored: one of them, its input, and that it be forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twostroke.errors import InvalidParameter
from twostroke.serve.responses.failures import UnknownResponse
from twostroke.serve.responses.store import ResponseStore, Stored
from twostroke.serve.submission import Json

PAGE = 20  # items of a page, where the client names no number
MOST_OF_A_PAGE = 100


def get(id: str, namespace: str, store: ResponseStore) -> Json:
    """The response.  Raises `UnknownResponse`."""
    return _found(id, namespace, store).body


def delete(id: str, namespace: str, store: ResponseStore) -> Json:
    """Forget the response.  Raises `UnknownResponse`."""
    if not store.delete(id, namespace):
        raise _unknown(id)
    return {"id": id, "object": "response", "deleted": True}


def input_items(
    id: str, namespace: str, store: ResponseStore, *, after: str | None = None, limit: int = PAGE, order: str = "desc"
) -> Json:
    """A page of the response's input, the latest first unless `order` is "asc".

    Raises `UnknownResponse`, or `InvalidParameter` for a page that cannot be.
    """
    if not 1 <= limit <= MOST_OF_A_PAGE:
        raise InvalidParameter(f"limit must be an integer of 1 to {MOST_OF_A_PAGE}, not {limit}", param="limit")
    if order not in ("asc", "desc"):
        raise InvalidParameter(f'order must be "asc" or "desc", not "{order}"', param="order")
    items = _listed(_found(id, namespace, store))
    rest = _beyond(items if order == "asc" else items[::-1], after)
    page = rest[:limit]
    first, last = (page[0]["id"], page[-1]["id"]) if page else (None, None)
    return {"object": "list", "data": page, "first_id": first, "last_id": last, "has_more": len(rest) > limit}


def _found(id: str, namespace: str, store: ResponseStore) -> Stored:
    stored = store.get(id, namespace)
    if stored is None:
        raise _unknown(id)
    return stored


def _unknown(id: str) -> UnknownResponse:
    return UnknownResponse(f"Response with id '{id}' not found; it was not stored, or is stored no longer")


def _beyond(items: Sequence[Json], after: str | None) -> Sequence[Json]:
    """The items after the one with that id."""
    if after is None:
        return items
    at = next((i for i, item in enumerate(items) if item["id"] == after), None)
    if at is None:
        raise InvalidParameter(f"after names the item '{after}', which is not in the input", param="after")
    return items[at + 1 :]


def _listed(stored: Stored) -> Sequence[Json]:
    """The input in full form.  Items without an id, or with one that another has, get a name of their own here."""
    name = stored.id.rpartition("_")[2]
    found: dict[str, Json] = {}
    for index, item in enumerate(stored.items):
        given = item.get("id")
        own = given if isinstance(given, str) and given not in found else f"in_{name}{index:02x}"
        found[own] = {"type": "message", **item, "id": own, **_content(item)}
    return list(found.values())


def _content(item: Json) -> dict[str, Any]:
    """The content of a message as parts."""
    text = item.get("content")
    if not isinstance(text, str):
        return {}
    if item.get("role") == "assistant":
        return {"status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}
    return {"content": [{"type": "input_text", "text": text}]}
