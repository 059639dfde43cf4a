"""The client side of a measurement: streams, replies and failures."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from bench.rounds import Unmeasured

from bench import llama, onednn, wire

LINES = [
    b": a comment\n",
    b"\n",
    b'data: {"choices": [{"text": "a"}]}\n',
    b'data: {"choices": [], "usage": {}}\n',
    b'data: {"choices": [{"text": "b"}]}\n',
    b"data: [DONE]\n",
]


class Handler(BaseHTTPRequestHandler):
    """Answers by path."""

    asked: list[Any] = []

    def do_POST(self) -> None:
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        status = 400 if self.path == "/bad" else 200
        body = {"/stream": b"".join(LINES), "/empty": b"data: [DONE]\n", "/bad": b"no"}.get(self.path, b'{"ok": 1}')
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    Handler.asked = []
    served = HTTPServer((wire.HOST, 0), Handler)
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served.server_port
    served.shutdown()
    thread.join()
    served.server_close()


def test_only_pieces_with_choices_count() -> None:
    assert [piece["choices"][0]["text"] for piece in wire.pieces(iter(LINES))] == ["a", "b"]


def test_an_error_inside_a_stream_is_unmeasured() -> None:
    with pytest.raises(Unmeasured, match="too bad"):
        list(wire.pieces(iter([b'data: {"error": "too bad"}\n'])))


def test_a_reply_is_read_as_json(port: int) -> None:
    assert wire.post(port, "/x", {"a": 1}) == {"ok": 1}
    assert Handler.asked == [{"a": 1}]


def test_a_refusal_is_unmeasured_with_its_status(port: int) -> None:
    with pytest.raises(Unmeasured, match="status 400"):
        wire.post(port, "/bad", {})


def test_a_stream_is_timed_from_asking(port: int) -> None:
    answer = wire.stream(port, "/stream", {"n": 2}, 2)
    assert 0 < answer.first_s <= answer.last_s
    assert Handler.asked == [{"n": 2, "stream": True}]


def test_an_empty_stream_is_unmeasured(port: int) -> None:
    with pytest.raises(Unmeasured, match="empty"):
        wire.stream(port, "/empty", {}, 2)


def test_nobody_listening_is_unmeasured() -> None:
    with pytest.raises(Unmeasured, match="POST /x"):
        wire.post(wire.free_port(), "/x", {})


def test_time_per_token_leaves_the_first_out() -> None:
    assert wire.Answer(1.0, 3.0, 5).per_token_s == 0.5


def test_a_server_that_ends_at_once_is_unmeasured() -> None:
    with pytest.raises(Unmeasured, match="status 3"), wire.server([sys.executable, "-c", "exit(3)"], 1):
        raise AssertionError("it never becomes ready")


def test_a_server_that_is_not_there_is_unmeasured() -> None:
    with pytest.raises(Unmeasured, match="/no/such"), wire.server(["/no/such/program"], 1):
        raise AssertionError("it never becomes ready")


SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Healthy(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *a): pass
HTTPServer(("127.0.0.1", int(sys.argv[1])), Healthy).serve_forever()
"""


def test_a_server_is_ready_when_yielded_and_gone_afterwards() -> None:
    port = wire.free_port()
    with wire.server([sys.executable, "-c", SERVER, str(port)], port) as ready:
        assert ready == port
        assert wire._healthy(port)
    assert not wire._healthy(port)


def test_a_server_does_not_see_what_only_a_benchmark_reads() -> None:
    environ = {llama.VARIABLE: "/x", onednn.VARIABLE: "/y", "TWOSTROKE_HOME": "/z", "PATH": "/bin"}
    assert wire.served_environment(environ) == {"TWOSTROKE_HOME": "/z", "PATH": "/bin"}
