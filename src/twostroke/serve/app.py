"""Every HTTP byte: routes, bodies, statuses, headers; and nothing else.

A body becomes a submission, the host answers it, the answer becomes a body: each in the wire format of its path.
Whatever goes wrong on the way is an error in that format's own shape with a request id; no traceback leaves.  A client
that goes away aborts its requests.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from twostroke.errors import (
    InternalError,
    InvalidParameter,
    Overloaded,
    TwostrokeError,
    Unavailable,
    UnsupportedMediaType,
)
from twostroke.serve import endpoints, fields, sse
from twostroke.serve.bodies import Bodies
from twostroke.serve.format import Format, Writer
from twostroke.serve.formats import formats, shape_of
from twostroke.serve.host import Stream
from twostroke.serve.responses import ResponseStore
from twostroke.serve.service import Service
from twostroke.serve.submission import Caller, Json
from twostroke.types import Event

log = logging.getLogger("twostroke.http")
GONE = 499  # nobody reads this status; it is for the access log
PING_S = 10.0  # of silence, after which a stream is sent the format's ping
GIVEN_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(service: Service) -> FastAPI:
    """The application that serves one model; its lifespan starts and stops the host."""
    app = FastAPI(title="Twostroke", docs_url=None, redoc_url=None, openapi_url=None, lifespan=_lifespan(service))
    served = Application(service, Bodies(service.settings.max_body))
    for wire in formats(served.store):
        app.add_route(wire.path, served.guarded(partial(served.answer, wire=wire), wire), methods=["POST"])
    for route in endpoints.routes():
        handler = partial(served.plain, route=route)
        app.add_route(route.path, served.guarded(handler), methods=[route.method])
    app.add_exception_handler(HTTPException, _no_route)
    return app


def _lifespan(service: Service) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def run(app: FastAPI) -> AsyncIterator[None]:
        service.host.start()
        try:
            yield
        finally:
            service.host.stop()

    return run


def request_id(request: Request) -> str:
    """The client's own `x-request-id` where it is a sane one, else a new one."""
    given = request.headers.get("x-request-id", "")
    return given if GIVEN_ID.fullmatch(given) else f"req_{uuid.uuid4().hex}"


def _no_route(request: Request, problem: Exception) -> JSONResponse:
    """An unknown path or method."""
    assert isinstance(problem, HTTPException)
    error = TwostrokeError(f"{problem.detail}: {request.method} {request.url.path}")
    error.status, error.code = problem.status_code, "not_found" if problem.status_code == 404 else "method_not_allowed"
    wire, own = shape_of(request.url.path, request.headers), request_id(request)
    headers = {**(problem.headers or {}), wire.request_id_header: own}
    return JSONResponse(wire.error(error, own), problem.status_code, headers)


@dataclass(frozen=True)
class Application:
    """The endpoints of one service."""

    service: Service
    bodies: Bodies
    store: ResponseStore = field(default_factory=ResponseStore)

    def guarded(self, endpoint: Endpoint, wire: Format | None = None) -> Endpoint:
        """The endpoint with every failure turned into an error body, and an id on every answer."""

        async def answer(request: Request) -> Response:
            request.state.id = request_id(request)
            try:
                return await endpoint(request)
            except ClientDisconnect:
                return Response(status_code=GONE)
            except Exception as problem:
                return self._failed(problem, request, wire or shape_of(request.url.path, request.headers))

        return answer

    def _failed(self, problem: Exception, request: Request, wire: Format) -> JSONResponse:
        """The error body of whatever was raised; what is not ours to tell is logged and called an internal error."""
        if not isinstance(problem, TwostrokeError):
            log.error("request %s failed", request.state.id, exc_info=problem)
            problem = InternalError(f"an internal error; the server's log names it by {request.state.id}")
        headers = {wire.request_id_header: request.state.id}
        if isinstance(problem, Unavailable):
            self.service.rejected(problem.code)
            wait_s = self.service.host.retry_after_s() if isinstance(problem, Overloaded) else 5
            headers["retry-after"] = str(wait_s)
        if problem.status == 401:
            headers["www-authenticate"] = "Bearer"
        return JSONResponse(wire.error(problem, request.state.id), wire.statuses(problem), headers)

    async def plain(self, request: Request, route: endpoints.Route) -> Response:
        """An endpoint that answers at once."""
        key = self._key(request) if route.needs_key else ""

        def asked(raw: bytes) -> endpoints.Reply | Awaitable[endpoints.Reply]:
            body = fields.body(raw) if route.reads_body else fields.Fields({})
            return route.answer(
                endpoints.Asked(
                    self.service, self.store, key, request.path_params, request.query_params, request.headers, body
                )
            )

        found = await self._read(request, asked) if route.reads_body else asked(b"")
        headers = {shape_of(request.url.path, request.headers).request_id_header: request.state.id}
        reply = await found if isinstance(found, Awaitable) else found
        if isinstance(reply.body, str):
            return Response(reply.body, reply.status, headers, reply.media_type)
        return JSONResponse(reply.body, reply.status, headers)

    async def answer(self, request: Request, wire: Format) -> Response:
        """One body in, one answer out, whole or streamed."""
        caller = Caller(
            wire.prefix + uuid.uuid4().hex,
            self._key(request),
            time.monotonic(),
            int(time.time()),
            dict(request.headers),
        )
        submission = await self._read(request, lambda raw: wire.parse(fields.body(raw), self.service, caller))
        writer = wire.writer(submission, self.service)
        stream = self.service.host.submit(*submission.requests)
        headers = {wire.request_id_header: request.state.id}
        if submission.stream:
            return sse.EventStream(lines(writer, stream, wire, request.state.id), stream.close, headers)
        return JSONResponse(await whole(writer, stream, request), 200, headers)

    async def _read(self, request: Request, parse: Callable[[bytes], T]) -> T:
        """What `parse` makes of the body, which must be declared as JSON."""
        declared = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if declared != "application/json":
            raise UnsupportedMediaType(
                f"the content type is {fields.shown(declared)}; send the header 'Content-Type: application/json'"
            )
        async with self.bodies.read(request) as raw:
            try:
                return await self.bodies.parse(raw, partial(parse, raw))
            except RecursionError:
                raise InvalidParameter("JSON text in the body is nested too deeply; flatten it") from None

    def _key(self, request: Request) -> str:
        own = request.headers.get("x-api-key")
        return self.service.tenants.admit(f"Bearer {own}" if own else request.headers.get("authorization"))


async def lines(writer: Writer, stream: Stream, wire: Format, own: str) -> AsyncIterator[bytes]:
    """The answer as server-sent events; a failure on the way is the last of them."""
    try:
        for event in writer.begin():
            yield event
        async for item in paced(stream, wire.ping):
            if isinstance(item, bytes):
                yield item
                continue
            for event in writer.take(*item):
                yield event
        for event in writer.finish():
            yield event
    except TwostrokeError as problem:
        yield wire.error_event(problem, own)
    except Exception:
        log.exception("a stream failed")
        yield wire.error_event(InternalError(f"an internal error; the server's log names it by {own}"), own)


async def paced(stream: Stream, ping: bytes | None) -> AsyncIterator[bytes | tuple[int, Event]]:
    """The stream's events, and `ping`, if there is one, whenever none came for a while."""
    if ping is None:
        async for event in stream:
            yield event
        return
    events = aiter(stream)
    while True:
        due = asyncio.ensure_future(anext(events, None))
        try:
            while not (await asyncio.wait({due}, timeout=PING_S))[0]:
                yield ping
            item = await due
        finally:
            due.cancel()
        if item is None:
            return
        yield item


async def whole(writer: Writer, stream: Stream, request: Request) -> Json:
    """The answer as one body.  Raises `ClientDisconnect` when the client leaves first."""
    collecting = asyncio.ensure_future(_collect(writer, stream))
    watching = asyncio.ensure_future(sse.gone(request.receive))
    try:
        await asyncio.wait({collecting, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not collecting.done():
            raise ClientDisconnect
        return collecting.result()
    finally:
        stream.close()
        collecting.cancel()
        watching.cancel()


async def _collect(writer: Writer, stream: Stream) -> Json:
    async for place, event in stream:
        for _ in writer.take(place, event):
            pass
    return writer.whole()
