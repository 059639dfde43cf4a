"""Servers started for a measurement, and the little HTTP that it takes to ask them.

Both our server and the peer's are asked in the same way, by the same code.  Standard library only, so that the client
costs the two cores as little as may be.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.rounds import Unmeasured

START_S = 180.0
HOST = "127.0.0.1"
OURS = frozenset({"TWOSTROKE_LLAMA_BIN", "TWOSTROKE_TORCH_PYTHON"})


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def server(command: Sequence[str], port: int) -> Iterator[int]:
    """Run a server until its health answers 200; yields the port.  Raises `Unmeasured` where it never does."""
    try:
        process = subprocess.Popen(
            command, env=served_environment(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        raise Unmeasured(f"{command[0]}: {error}") from None
    try:
        _wait(process, command[0], port)
        yield port
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def served_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment less what only a benchmark reads: our server refuses settings that it does not know."""
    return {name: value for name, value in environ.items() if name not in OURS}


def _wait(process: subprocess.Popen[bytes], name: str, port: int) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Unmeasured(f"{name} ended with status {process.returncode} before it was ready")
        if _healthy(port):
            return
        time.sleep(0.1)
    raise Unmeasured(f"{name} was not ready after {START_S:.0f} s")


def _healthy(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def post(port: int, path: str, body: Mapping[str, Any]) -> Any:
    """The JSON reply to one request.  Raises `Unmeasured` for any failure."""
    try:
        return json.loads(_send(port, path, body).read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unmeasured(f"POST {path}: {error!r}") from None


def _send(port: int, path: str, body: Mapping[str, Any]) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(HOST, port, timeout=600)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        raise Unmeasured(f"POST {path}: {error!r}") from None
    if response.status != 200:
        raise Unmeasured(f"POST {path}: status {response.status}: {response.read(300)!r}")
    return response


@dataclass(frozen=True, slots=True)
class Answer:
    """How one streamed answer arrived; times in seconds since it was asked for."""

    first_s: float
    last_s: float
    tokens: int

    @property
    def per_token_s(self) -> float:
        """Mean time between tokens after the first."""
        return (self.last_s - self.first_s) / max(1, self.tokens - 1)


def stream(port: int, path: str, body: Mapping[str, Any], tokens: int) -> Answer:
    """Ask for a streamed completion of exactly `tokens` tokens.  Raises `Unmeasured` where nothing comes."""
    began = time.perf_counter()
    response = _send(port, path, {**body, "stream": True})
    first = last = 0.0
    for _ in pieces(response):
        last = time.perf_counter() - began
        first = first or last
    if not last:
        raise Unmeasured(f"POST {path}: the answer was empty")
    return Answer(first, last, tokens)


def pieces(lines: Iterator[bytes] | http.client.HTTPResponse) -> Iterator[Any]:
    """The JSON values of a server-sent stream that carry text or tokens."""
    for line in lines:
        if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
            continue
        value = json.loads(line[6:])
        if "error" in value:
            raise Unmeasured(f"the stream broke: {value['error']}")
        if value.get("choices"):
            yield value
