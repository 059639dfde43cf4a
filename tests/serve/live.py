"""The server over a scripted engine: in this process without sockets, or in a thread with real ones."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import httpx

from twostroke.serve.app import create_app
from twostroke.serve.server import Server, bind
from twostroke.serve.service import Service

T = TypeVar("T")
HELLO = {"messages": [{"role": "user", "content": "hello"}]}


@asynccontextmanager
async def connected(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application, without sockets."""
    app = create_app(service)
    transport = httpx.ASGITransport(app, raise_app_exceptions=True)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://test", timeout=20) as client,
    ):
        yield client


def talk(service: Service, conversation: Callable[[httpx.AsyncClient], Awaitable[T]]) -> T:
    """Run one conversation with the application from start to stop."""

    async def run() -> T:
        async with connected(service) as client:
            return await conversation(client)

    return asyncio.run(run())


def post(service: Service, path: str, body: Any = None, **extra: Any) -> httpx.Response:
    """One request, one response; `body` is sent as JSON unless `content` is given."""
    if "content" not in extra:
        extra["json"] = body
    return talk(service, lambda client: client.post(path, **extra))


def get(service: Service, path: str, **extra: Any) -> httpx.Response:
    return talk(service, lambda client: client.get(path, **extra))


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """The server on a real port, in a thread; yields its base URL and drains at the end."""
    with running(service) as (url, _, _):
        yield url


@contextmanager
def running(service: Service) -> Iterator[tuple[str, Server, threading.Thread]]:
    """The same, with the server and the thread it runs in."""
    ready = threading.Event()
    socket = bind("127.0.0.1", 0)
    server = Server(service, on_ready=ready.set)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([socket])), daemon=True)
    thread.start()
    try:
        assert ready.wait(10), "the server did not start"
        yield f"http://127.0.0.1:{socket.getsockname()[1]}", server, thread
    finally:
        server.should_exit = True
        thread.join(15)
        socket.close()
        assert not thread.is_alive(), "the server did not stop"


async def until(condition: Callable[[], bool], limit_s: float = 5.0) -> None:
    """Wait for something that another thread brings about."""
    async with asyncio.timeout(limit_s):
        while not condition():
            await asyncio.sleep(0.002)
