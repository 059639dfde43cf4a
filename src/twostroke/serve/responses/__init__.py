"""OpenAI's Responses API: items in, items out, and a bounded store of what was answered.

The store is the server's: one per service, given to everything here that reads or fills it.
"""

from __future__ import annotations

from functools import partial

from twostroke.serve.format import Format
from twostroke.serve.responses.failures import error, error_event
from twostroke.serve.responses.parse import input_tokens, parse
from twostroke.serve.responses.render import ResponseWriter
from twostroke.serve.responses.store import ResponseStore
from twostroke.serve.responses.stored import PAGE, delete, get, input_items

__all__ = ["PAGE", "ResponseStore", "delete", "formats", "get", "input_items", "input_tokens"]


def formats(store: ResponseStore) -> tuple[Format, ...]:
    """The endpoint that answers, over a store."""
    return (
        Format(
            path="/v1/responses",
            prefix="resp_",
            parse=partial(parse, store=store),
            writer=partial(ResponseWriter, store=store),
            error=error,
            error_event=error_event,
        ),
    )
