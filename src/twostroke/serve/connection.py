"""One HTTP connection, which no client can hold open by doing nothing.

Between requests it waits only so long for a whole head, whether nothing comes or a little at a time; after an answer
it reads only a little longer of a body that nobody needs; an answer that is not read is given up.  What happens inside
a request is the application's business.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

KEEP_ALIVE_S = 65  # for the head of the next request; longer than common proxies keep theirs
LINGER_S = 10.0  # for the rest of a body whose request has been answered: closed at once, the answer might be lost
STALLED_S = 600.0  # without the client reading while more is to be sent
HEAD, REST, REQUEST = "head", "rest", "request"


class Connection(H11Protocol):
    """uvicorn's connection with a limit on each wait."""

    _state = REQUEST
    _waiting: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._note_state()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note_state()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note_state()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._waiting, self._stalled):
            if timer is not None:
                timer.cancel()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(STALLED_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def send_400_response(self, msg: str) -> None:
        """Says that this is no HTTP; in the middle of an answer nothing can be said any more."""
        if self.cycle is None or self.cycle.response_complete:
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def _note_state(self) -> None:
        """Start the limit of what is waited for now; one that runs goes on, however much comes."""
        state = self._now()
        if state == self._state:
            return
        self._state = state
        if self._waiting is not None:
            self._waiting.cancel()
        limits = {HEAD: KEEP_ALIVE_S, REST: LINGER_S}
        self._waiting = self.loop.call_later(limits[state], self.transport.abort) if state in limits else None

    def _now(self) -> str:
        if self.cycle is None:
            return HEAD
        if not self.cycle.response_complete:
            return REQUEST
        return REST if self.cycle.more_body else HEAD
