"""What a wire format is to the server: a body becomes a submission, events become bodies and streams.

Formats are siblings and never import each other.  Knows nothing about HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from twostroke.errors import TwostrokeError
from twostroke.serve.fields import Fields
from twostroke.serve.service import Service
from twostroke.serve.submission import Caller, Json, Submission
from twostroke.types import Event


class Writer(Protocol):
    """Writes one submission's answer.  Every `bytes` is a whole server-sent event."""

    def begin(self) -> Iterable[bytes]:
        """What a stream opens with, before any token."""
        ...

    def take(self, place: int, event: Event) -> Iterable[bytes]:
        """What an event of the `place`-th request makes certain.

        Raises `TwostrokeError` when the engine failed or the server stopped: there is no answer then.
        """
        ...

    def finish(self) -> Iterable[bytes]:
        """What a stream ends with, when every choice has ended."""
        ...

    def whole(self) -> Json:
        """The body of an answer that is not streamed, after the last event."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """One endpoint's wire format.

    `prefix` begins the ids of its answers, `ping` keeps an idle stream open (None: nothing does), and `error` writes a
    failure, whose request id is the second argument; `error_event` writes the same inside a stream.
    """

    path: str
    prefix: str
    parse: Callable[[Fields, Service, Caller], Submission]
    writer: Callable[[Submission, Service], Writer]
    error: Callable[[TwostrokeError, str], Json]
    error_event: Callable[[TwostrokeError, str], bytes]
    ping: bytes | None = None
    statuses: Callable[[TwostrokeError], int] = lambda problem: problem.status
    request_id_header: str = "x-request-id"


def data(value: Any) -> bytes:
    """A server-sent event without a name."""
    return b"data: " + encoded(value) + b"\n\n"


def named(name: str, value: Any) -> bytes:
    """A server-sent event with a name."""
    return b"event: " + name.encode() + b"\n" + data(value)


def encoded(value: Any) -> bytes:
    """Compact JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
