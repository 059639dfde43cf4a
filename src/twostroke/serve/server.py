"""Runs the application on a socket: bound before anything slow starts, drained on Ctrl-C.

The first Ctrl-C (or SIGTERM) refuses new requests and lets running answers finish up to a limit; a second one ends the
process at once.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import uvicorn

from twostroke.errors import ConfigError
from twostroke.serve.app import create_app
from twostroke.serve.connection import KEEP_ALIVE_S, Connection
from twostroke.serve.service import Service

SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE_S = 8  # beyond the drain limit, for aborted answers to say so


def bind(host: str, port: int) -> socket.socket:
    """A bound socket.  Raises `ConfigError` when the address is taken, forbidden or unknown."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as problem:
        raise ConfigError(f"cannot use the address {host}: {problem.strerror}", param="host") from problem
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(2048)
    except OSError as problem:
        bound.close()
        raise _refused(host, port, problem) from problem
    return bound


def _refused(host: str, port: int, problem: OSError) -> ConfigError:
    if problem.errno == errno.EADDRINUSE:
        return ConfigError(f"port {port} on {host} is in use; stop what listens there or choose another --port")
    if problem.errno in (errno.EACCES, errno.EPERM):
        return ConfigError(f"port {port} needs privileges; choose a --port above 1023")
    return ConfigError(f"cannot listen on {host}:{port}: {problem.strerror}; choose another --host or --port")


def open_more_files() -> None:
    """Let this process have as many connections as the system allows; the usual 1024 are few for a server."""
    if sys.platform == "win32":
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems refuse what they themselves name as the most
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def leave_at_once() -> None:
    """End the process now, as a second Ctrl-C asks."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(130)


class Server(uvicorn.Server):
    """uvicorn with our own way to stop."""

    def __init__(
        self,
        service: Service,
        *,
        on_ready: Callable[[], None] = lambda: None,
        on_drain: Callable[[int], None] = lambda open_requests: None,
        at_once: Callable[[], None] = leave_at_once,
    ) -> None:
        self._service = service
        self._on_ready, self._on_drain, self._at_once = on_ready, on_drain, at_once
        self._draining: asyncio.Task[bool] | None = None
        self._limit_s = service.settings.drain_s
        super().__init__(
            uvicorn.Config(
                create_app(service),
                lifespan="on",
                http=Connection,
                ws="none",
                log_config=None,
                access_log=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=int(self._limit_s) + GRACE_S,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        open_more_files()
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Our handlers while serving; nothing is raised again afterwards, since stopping is no failure."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()

        def interrupted(number: int, frame: FrameType | None) -> None:
            if self.should_exit:
                self._at_once()
            else:
                self.should_exit = True
                loop.call_soon_threadsafe(self.drain)

        before = {number: signal.signal(number, interrupted) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def drain(self) -> None:
        """Stop accepting and let running answers finish; call on the event loop."""
        self.should_exit = True
        self._on_drain(self._service.host.open)
        self._draining = asyncio.ensure_future(self._service.host.drain(self._limit_s))
