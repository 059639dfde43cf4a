"""Event streams end for every reason they can end for, and always tell the source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from twostroke.serve import sse
from twostroke.serve.format import data


class Wire:
    """An ASGI connection: what was sent, and when the client leaves."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.left = asyncio.Event()
        self.closed = 0

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    def close(self) -> None:
        self.closed += 1

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


async def three() -> AsyncIterator[bytes]:
    for value in (1, 2, 3):
        yield data(value)


async def forever() -> AsyncIterator[bytes]:
    yield data("first")
    await asyncio.Event().wait()


def test_a_line_is_one_event_whatever_it_holds() -> None:
    assert data({"a": "x\n\ny"}) == b'data: {"a":"x\\n\\ny"}\n\n'
    assert data("\N{EURO SIGN}") == 'data: "\N{EURO SIGN}"\n\n'.encode()


def test_lines_are_sent_as_they_come_and_the_source_is_closed() -> None:
    async def run() -> Wire:
        wire = Wire()
        await sse.EventStream(three(), wire.close, {"x-request-id": "r"})({"type": "http"}, wire.receive, wire.send)
        return wire

    wire = asyncio.run(run())
    headers = dict(wire.sent[0]["headers"])
    assert headers[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert headers[b"x-request-id"] == b"r"
    assert b"content-length" not in headers
    assert wire.body == b"data: 1\n\ndata: 2\n\ndata: 3\n\n"
    assert [m.get("more_body") for m in wire.sent[1:]] == [True, True, True, False]
    assert wire.closed == 1


def test_a_client_that_leaves_closes_the_source_while_no_line_is_due() -> None:
    async def run() -> Wire:
        wire = Wire()
        stream = sse.EventStream(forever(), wire.close, {})
        sending = asyncio.ensure_future(stream({"type": "http"}, wire.receive, wire.send))
        await asyncio.sleep(0.01)
        assert wire.closed == 0
        wire.left.set()
        async with asyncio.timeout(1):
            await sending
        return wire

    wire = asyncio.run(run())
    assert wire.body == b'data: "first"\n\n'
    assert wire.closed == 1


def test_cancellation_closes_the_source() -> None:
    async def run() -> Wire:
        wire = Wire()
        stream = sse.EventStream(forever(), wire.close, {})
        sending = asyncio.ensure_future(stream({"type": "http"}, wire.receive, wire.send))
        await asyncio.sleep(0.01)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        return wire

    assert asyncio.run(run()).closed == 1


def test_a_wire_that_breaks_closes_the_source() -> None:
    async def run() -> Wire:
        wire = Wire()

        async def broken(message: Any) -> None:
            raise OSError("broken pipe")

        await sse.EventStream(three(), wire.close, {})({"type": "http"}, wire.receive, broken)
        return wire

    assert asyncio.run(run()).closed == 1
