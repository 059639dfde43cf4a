"""Reads request bodies: bounded one by one, all together and in time, and no two large ones are parsed at once.

A body is refused as soon as it is known to be too large, by its declared length where it has one.  What is read is
counted until its reader has let go of it.  Knows nothing of what a body says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from starlette.requests import Request

from twostroke.errors import BodyTooLarge, BodyTooSlow, Overloaded

T = TypeVar("T")
TOGETHER = 4  # bodies of the largest size may be in memory at a time
BODY_S = 120.0  # for a body to come
OFF_LOOP = 8192  # bytes of a body from which parsing it leaves the event loop
LARGE = 2**20  # bytes of a body whose parsing takes so much memory that it waits its turn


@dataclass
class Bodies:
    """The bodies being read and parsed.  To be used on one event loop."""

    limit: int  # bytes of one body
    limit_s: float = BODY_S
    held: int = 0  # bytes in memory
    _turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """The whole body, counted until the block ends.

        Raises `BodyTooLarge`, `BodyTooSlow` after `limit_s`, or `Overloaded` when all bodies together are too many.
        """
        self._judge(_declared(request))
        found = bytearray()
        try:
            async with asyncio.timeout(self.limit_s):
                async for part in request.stream():
                    self.held += len(part)
                    found += part
                    self._judge(len(found))
            yield bytes(found)
        except TimeoutError:
            raise BodyTooSlow(f"the body did not come within {self.limit_s:g} seconds; send it again") from None
        finally:
            self.held -= len(found)

    def _judge(self, size: int) -> None:
        if size > self.limit:
            raise BodyTooLarge(f"the body is larger than {self.limit} bytes; shorten it or raise --max-body")
        if self.held > self.limit * TOGETHER:
            raise Overloaded(f"the bodies being read together exceed {self.limit * TOGETHER} bytes; try again later")

    async def parse(self, raw: bytes, parse: Callable[[], T]) -> T:
        """What `parse` makes of the body: here where it is short, else on a thread, large ones one after another."""
        if len(raw) <= OFF_LOOP:
            return parse()
        if len(raw) <= LARGE:
            return await asyncio.to_thread(parse)
        async with self._turn:
            return await asyncio.to_thread(parse)


def _declared(request: Request) -> int:
    """The body's length as its header says, 0 where it says none."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdecimal() and len(length) < 20 else 0
