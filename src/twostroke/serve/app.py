"""Every HTTP byte: routes, bodies, statuses, headers; and nothing else.

A body becomes an ask, the host answers it, the answer becomes a body.  Whatever goes wrong on the way is an error in
the wire format's own shape with an `x-request-id`; no traceback leaves.  A client that goes away aborts its requests.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from twostroke.errors import (
    BodyTooLarge,
    InternalError,
    Overloaded,
    TwostrokeError,
    Unavailable,
    UnknownModel,
    UnsupportedMediaType,
)
from twostroke.serve import fields, sse
from twostroke.serve.host import Stream
from twostroke.serve.openai import parse, render
from twostroke.serve.service import Service

log = logging.getLogger("twostroke.http")
OFF_LOOP = 8192  # bytes of a body from which reading it leaves the event loop
GONE = 499  # nobody reads this status; it is for the access log
GIVEN_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
Endpoint = Callable[[Request], Awaitable[Response]]
Parse = Callable[[fields.Fields, Service, parse.Caller], parse.Ask]


def create_app(service: Service) -> FastAPI:
    """The application that serves one model; its lifespan starts and stops the host."""
    app = FastAPI(title="Twostroke", docs_url=None, redoc_url=None, openapi_url=None, lifespan=_lifespan(service))
    door = Door(service)
    app.add_route("/v1/chat/completions", guarded(door.chat, service), methods=["POST"])
    app.add_route("/v1/completions", guarded(door.completion, service), methods=["POST"])
    app.add_route("/v1/models", guarded(door.models, service), methods=["GET"])
    app.add_route("/v1/models/{name:path}", guarded(door.model, service), methods=["GET"])
    app.add_route("/health", guarded(door.health, service), methods=["GET"])
    app.add_route("/metrics", guarded(door.metrics, service), methods=["GET"])
    app.add_route("/version", guarded(door.version, service), methods=["GET"])
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


def guarded(endpoint: Endpoint, service: Service) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint with every failure turned into an error body, and an id on every answer."""

    async def answer(request: Request) -> Response:
        request.state.id = request_id(request)
        try:
            return await endpoint(request)
        except ClientDisconnect:
            return Response(status_code=GONE)
        except Exception as problem:
            return failed(problem, request, service)

    return answer


def request_id(request: Request) -> str:
    """The client's own `x-request-id` where it is a sane one, else a new one."""
    given = request.headers.get("x-request-id", "")
    return given if GIVEN_ID.fullmatch(given) else f"req_{uuid.uuid4().hex}"


def failed(problem: Exception, request: Request, service: Service) -> JSONResponse:
    """The error body of whatever was raised; what is not ours to tell is logged and called an internal error."""
    if not isinstance(problem, TwostrokeError):
        log.error("request %s failed", request.state.id, exc_info=problem)
        problem = InternalError(f"an internal error; the server's log names it by {request.state.id}")
    headers = {"x-request-id": request.state.id}
    if isinstance(problem, Unavailable):
        service.rejected(problem.code)
        headers["retry-after"] = str(service.host.retry_after_s()) if isinstance(problem, Overloaded) else "5"
    if problem.status == 401:
        headers["www-authenticate"] = "Bearer"
    return JSONResponse(render.error(problem), problem.status, headers)


def _no_route(request: Request, problem: Exception) -> JSONResponse:
    """An unknown path or method."""
    assert isinstance(problem, HTTPException)
    error = TwostrokeError(f"{problem.detail}: {request.method} {request.url.path}")
    error.status, error.code = problem.status_code, "not_found" if problem.status_code == 404 else "method_not_allowed"
    headers = {**(problem.headers or {}), "x-request-id": request_id(request)}
    return JSONResponse(render.error(error), problem.status_code, headers)


@dataclass(frozen=True)
class Door:
    """The endpoints of one service."""

    service: Service

    async def chat(self, request: Request) -> Response:
        return await self._answer(request, parse.chat, "chatcmpl-")

    async def completion(self, request: Request) -> Response:
        return await self._answer(request, parse.completion, "cmpl-")

    async def models(self, request: Request) -> Response:
        self._admit(request)
        return self._json(request, {"object": "list", "data": [self._card(name) for name in self.service.models]})

    async def model(self, request: Request) -> Response:
        self._admit(request)
        name = request.path_params["name"]
        if name not in self.service.models:
            have = ", ".join(self.service.models)
            raise UnknownModel(f"the model {fields.shown(name)} does not exist here; available: {have}", param="model")
        return self._json(request, self._card(name))

    async def health(self, request: Request) -> Response:
        host = self.service.host
        state = "draining" if host.draining else "ok" if host.alive else "failed"
        return self._json(request, {"status": state}, status=200 if state == "ok" else 503)

    async def metrics(self, request: Request) -> Response:
        return Response(self.service.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def version(self, request: Request) -> Response:
        return self._json(request, {"version": self.service.version})

    async def _answer(self, request: Request, judge: Parse, prefix: str) -> Response:
        caller = parse.Caller(prefix + uuid.uuid4().hex, self._admit(request), time.monotonic(), int(time.time()))
        ask = await self._ask(await self._body(request), judge, caller)
        answer = render.Answer(ask, self.service.text)
        stream = self.service.host.submit(*ask.requests)
        if ask.stream:
            return sse.EventStream(lines(answer, stream), stream.close, {"x-request-id": request.state.id})
        return self._json(request, await whole(answer, stream, request))

    async def _ask(self, raw: bytes, judge: Parse, caller: parse.Caller) -> parse.Ask:
        def read() -> parse.Ask:
            return judge(fields.body(raw), self.service, caller)

        return await asyncio.to_thread(read) if len(raw) > OFF_LOOP else read()

    async def _body(self, request: Request) -> bytes:
        """The raw body, no larger than the settings allow and declared as JSON."""
        declared = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if declared != "application/json":
            raise UnsupportedMediaType(
                f"the content type is {fields.shown(declared)}; send the header 'Content-Type: application/json'"
            )
        limit, parts, size = self.service.settings.max_body, [], 0
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            if size > limit:
                raise BodyTooLarge(f"the body is larger than {limit} bytes; shorten it or raise --max-body")
        return b"".join(parts)

    def _admit(self, request: Request) -> str:
        return self.service.tenants.admit(request.headers.get("authorization"))

    def _card(self, name: str) -> render.Json:
        return render.card(name, self.service.created, self.service.context)

    def _json(self, request: Request, body: render.Json, status: int = 200) -> JSONResponse:
        return JSONResponse(body, status, {"x-request-id": request.state.id})


async def lines(answer: render.Answer, stream: Stream) -> AsyncIterator[bytes]:
    """The answer as server-sent events; a failure on the way is the last of them."""
    try:
        for chunk in answer.begin():
            yield sse.line(chunk)
        async for place, event in stream:
            for chunk in answer.take(place, event):
                yield sse.line(chunk)
        for chunk in answer.finish():
            yield sse.line(chunk)
        yield sse.DONE
    except TwostrokeError as problem:
        yield sse.line(render.error(problem))
    except Exception:
        log.exception("a stream failed")
        yield sse.line(render.error(InternalError("an internal error; the server's log names it")))


async def whole(answer: render.Answer, stream: Stream, request: Request) -> render.Json:
    """The answer as one body.  Raises `ClientDisconnect` when the client leaves first."""
    collecting = asyncio.ensure_future(_collect(answer, stream))
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


async def _collect(answer: render.Answer, stream: Stream) -> render.Json:
    async for place, event in stream:
        for _ in answer.take(place, event):
            pass
    return answer.whole()
