"""The one thread that runs the engine, and the door through which requests reach it.

Everything that touches the engine happens on its thread: the door only fills an inbox.  Every accepted request ends in
exactly one `Done` per choice, whatever happens to the client, the step or the server.  Events return to the event loop
one batch per step.  Knows nothing about HTTP, text or models.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, Self, TypeVar

from twostroke.errors import Draining, InternalError, Overloaded
from twostroke.observe.delivery import Batch, Delivery, Sink, directly
from twostroke.types import Done, Event, FinishReason, Report, Request

log = logging.getLogger("twostroke.host")
T = TypeVar("T")
LAST = 32  # endings from which the rate of service is estimated
PAUSE_S = 0.05  # after a failed step, so that an engine that fails always does not spin


class Engine(Protocol):
    """What the host asks of an engine; its observers must include the host's `Delivery`."""

    @property
    def idle(self) -> bool: ...

    def add(self, request: Request) -> object: ...

    def abort(self, request: str) -> None:
        """The request leaves at the next plan; one that is gone already is no error."""
        ...

    def step(self) -> Report: ...

    @property
    def faults(self) -> Mapping[str, int]:
        """What neighbours of the engine did wrong so far, by neighbour, without ending anything."""
        ...

    @property
    def last_fault(self) -> str:
        """The latest of them, in words."""
        ...


class Stream:
    """The events of requests submitted together, up to the last `Done`, each with its request's place among them.

    Closing it early aborts what has not ended.
    """

    def __init__(self, requests: Sequence[Request], abort: Callable[[str], None]) -> None:
        self.requests = tuple(requests)
        self._abort = abort
        self._events: asyncio.Queue[tuple[int, Event]] = asyncio.Queue()
        self._due = [request.choices for request in requests]  # endings not yet received
        self._left = sum(self._due)  # endings not yet read

    def put(self, place: int, events: Sequence[Event]) -> bool:
        """Receive events of one request, on the event loop; returns whether it has ended."""
        for event in events:
            self._due[place] -= isinstance(event, Done)
            self._events.put_nowait((place, event))
        return self._due[place] == 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[int, Event]:
        if self._left == 0:
            raise StopAsyncIteration
        place, event = await self._events.get()
        self._left -= isinstance(event, Done)
        return place, event

    def close(self) -> None:
        """The client went away, or has everything."""
        for request, due in zip(self.requests, self._due, strict=True):
            if due:
                self._abort(request.id)


class Host:
    """Owns the engine's thread.  `submit`, `abort` and the counters may be called from the event loop only."""

    def __init__(
        self,
        engine: Engine,
        delivery: Delivery,
        *,
        max_queue: int = 256,
        accept: Callable[[Request], None] = lambda request: None,
    ) -> None:
        self._engine = engine
        self._delivery = delivery
        self._accept = accept  # told of each request on the engine's thread, before the engine is
        self._max_queue = max_queue
        self._inbox: deque[Callable[[], None]] = deque()
        self._wake = threading.Event()
        self._waiting: dict[str, int] = {}  # choices that do not run yet, by request
        self._open: set[str] = set()
        self._endings: deque[float] = deque(maxlen=LAST)
        self._faults = 0
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.draining = False
        delivery.post = self._post

    def start(self) -> None:
        """Start the engine's thread; call on the event loop that will submit."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="twostroke-engine", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the engine's thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def open(self) -> int:
        """Requests accepted and not ended."""
        return len(self._open)

    @property
    def waiting(self) -> int:
        """Choices accepted that do not run yet."""
        return sum(self._waiting.values())

    def submit(self, *requests: Request) -> Stream:
        """Accept all of the requests or none.

        Raises `Draining` once the server shuts down, `Overloaded` when more choices than `max_queue` would wait, and
        `InternalError` when the engine's thread is gone.
        """
        if self.draining:
            raise Draining("the server is shutting down; try another or come back later")
        if not self.alive:
            raise InternalError("the engine does not run; restart the server")
        wanted = sum(request.choices for request in requests)
        if self.waiting + wanted > self._max_queue:
            raise Overloaded(
                f"{self.waiting} answers wait and {wanted} more exceed the queue of {self._max_queue}; try again later"
            )
        stream = Stream(requests, self.abort)
        for place, request in enumerate(requests):
            self._open.add(request.id)
            self._waiting[request.id] = request.choices
            self._tell(partial(self._add, request, partial(self._receive, stream, place)))
        return stream

    def abort(self, request: str) -> None:
        """The request leaves at the next plan; its blocks are free then."""
        self._tell(partial(self._engine.abort, request))

    async def run(self, call: Callable[[], T]) -> T:
        """What `call` returns on the engine's thread, between two steps."""
        assert self._loop is not None, "run() before start()"
        due: asyncio.Future[T] = self._loop.create_future()

        def there() -> None:
            try:
                result = call()
            except Exception as problem:
                self._on_loop(due.set_exception, problem)
            else:
                self._on_loop(due.set_result, result)

        self._tell(there)
        return await due

    def retry_after_s(self) -> int:
        """Whole seconds after which a place in the queue is likely, from the recent rate of endings; 1 to 60."""
        if len(self._endings) < 2:
            return 1
        span_s = max(time.monotonic() - self._endings[0], 1e-3)
        return int(min(max(self.waiting * span_s / len(self._endings) / 2, 1), 60))

    async def drain(self, limit_s: float) -> bool:
        """Refuse new requests and wait for the accepted ones; those left after `limit_s` are aborted.

        Returns whether all of them ended by themselves.
        """
        self.draining = True
        finished = await self._emptied(limit_s)
        for request in tuple(self._open):
            self.abort(request)
        return finished and await self._emptied(5.0)

    async def _emptied(self, limit_s: float) -> bool:
        end_s = time.monotonic() + limit_s
        while self._open and time.monotonic() < end_s:
            await asyncio.sleep(0.02)
        return not self._open

    def stop(self, limit_s: float = 5.0) -> None:
        """End the thread after the step at hand, and every open request with it."""
        self.draining = self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(limit_s)

    def _tell(self, order: Callable[[], None]) -> None:
        self._inbox.append(order)
        self._wake.set()

    # The engine's thread from here on.

    def _run(self) -> None:
        while True:
            self._wake.clear()  # before anything is looked at, so that nothing that comes later is slept through
            if self._stopping:
                break
            self._obey()
            if self._engine.idle:
                self._wake.wait()
            else:
                self._step()
        self._obey()  # what was accepted meanwhile must end as well
        self._end_all("the server has stopped", FinishReason.ABORT)

    def _obey(self) -> None:
        while self._inbox:
            order = self._inbox.popleft()
            try:
                order()
            except Exception:
                log.exception("an order to the engine failed")

    def _add(self, request: Request, sink: Sink) -> None:
        self._delivery.accept(request, sink)
        self._accept(request)
        try:
            self._engine.add(request)
        except Exception as error:
            log.exception("the engine refused request %s", request.id)
            self._end(request.id, f"the engine refused the request: {error}")

    def _step(self) -> None:
        try:
            report = self._engine.step()
        except Exception as error:
            log.exception("a step failed; every request in the engine ends with an error")
            self._end_all(f"a step failed: {error}", FinishReason.ERROR)
            self._wake.wait(PAUSE_S)
            return
        self._note_faults()
        if started := [admission.request for admission in report.admitted if not admission.resumed]:
            self._on_loop(self._started, started)

    def _note_faults(self) -> None:
        """Log what the engine put up with: nobody else would hear of it."""
        count = sum(self._engine.faults.values())
        if count != self._faults:
            log.error("%d faults so far, the latest: %s", count, self._engine.last_fault)
            self._faults = count

    def _end_all(self, message: str, reason: FinishReason) -> None:
        for request in self._delivery.open:
            self._end(request, message, reason)

    def _end(self, request: str, message: str, reason: FinishReason = FinishReason.ERROR) -> None:
        try:
            self._engine.abort(request)
        except Exception:
            log.exception("aborting request %s failed", request)
        self._delivery.fail(request, message, reason)

    def _post(self, batch: Batch) -> None:
        self._on_loop(directly, batch)

    def _on_loop(self, call: Callable[[T], None], argument: T) -> None:
        assert self._loop is not None, "the engine's thread runs before start()"
        try:
            self._loop.call_soon_threadsafe(call, argument)
        except RuntimeError:  # the loop is closed: nobody listens any more
            log.debug("an event after the event loop closed is dropped")

    # Back on the event loop.

    def _started(self, requests: Sequence[str]) -> None:
        for request in requests:
            self._waiting[request] = self._waiting.get(request, 1) - 1
            if not self._waiting[request]:
                del self._waiting[request]

    def _receive(self, stream: Stream, place: int, events: Sequence[Event]) -> None:
        if stream.put(place, events):
            self._endings.append(time.monotonic())
            self._open.discard(stream.requests[place].id)
            self._waiting.pop(stream.requests[place].id, None)
