"""Server-sent events that notice at once when the reader has left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

UNBUFFERED = {"cache-control": "no-cache", "x-accel-buffering": "no"}  # for whatever stands between us and the client


async def gone(receive: Receive) -> None:
    """Returns when the client has disconnected; the request's body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream(Response):
    """A response that sends `lines` as they come and calls `close` at the end, however it comes.

    A client that leaves ends it even while no line is due.
    """

    def __init__(self, lines: AsyncIterator[bytes], close: Callable[[], None], headers: Mapping[str, str]) -> None:
        super().__init__(media_type="text/event-stream", headers={**UNBUFFERED, **headers})
        del self.headers["content-length"]
        self._lines = lines
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(send))
        watching = asyncio.ensure_future(gone(receive))
        try:
            await asyncio.wait({sending, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._close()
            sending.cancel()
            watching.cancel()
            await asyncio.gather(sending, watching, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for payload in self._lines:
            await send({"type": "http.response.body", "body": payload, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
