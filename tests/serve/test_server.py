"""A real port, and the client people really use."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import httpx
import openai
import pytest

from tests.serve.live import HELLO, running, serving
from tests.serve.scripted import EchoEngine, service
from twostroke.errors import ConfigError
from twostroke.serve.server import bind

ROOT = Path(__file__).parents[2]


def client(url: str, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0, timeout=20)


def test_a_chat_through_the_client() -> None:
    with serving(service(EchoEngine(drafts=2))) as url, client(url) as ai:
        answer = ai.chat.completions.create(
            model="echo", messages=[{"role": "user", "content": "hi there"}], logprobs=True
        )
        assert answer.choices[0].message.content == "hi there"
        assert answer.choices[0].finish_reason == "stop"
        assert answer.usage is not None
        assert answer.usage.prompt_tokens_details is not None
        assert answer.usage.prompt_tokens_details.cached_tokens == 4
        assert answer.choices[0].logprobs is not None
        assert len(answer.choices[0].logprobs.content or []) == 8
        assert answer.model_extra is not None
        assert answer.model_extra["phases"]["prefill"]["cached_tokens"] == 4
        assert answer.model_extra["metrics"]["speculative_decoding"]["num_spec_tokens"] == 2


def test_a_streamed_chat_through_the_client() -> None:
    with serving(service()) as url, client(url) as ai:
        chunks = list(
            ai.chat.completions.create(
                model="echo",
                messages=[{"role": "user", "content": "grüße"}],
                stream=True,
                stream_options={"include_usage": True},
                extra_body={"prefix_cache": False, "speculate": "off"},
            )
        )
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "grüße"
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.completion_tokens == 8
        assert chunks[-1].choices == []


def test_text_completions_and_models_through_the_client() -> None:
    with serving(service()) as url, client(url) as ai:
        answer = ai.completions.create(model="echo", prompt=["a", "bc"], n=2, echo=True)
        assert [choice.text for choice in answer.choices] == ["aa", "aa", "bcbc", "bcbc"]
        assert [model.id for model in ai.models.list()] == ["echo", "echo-alias"]
        assert ai.models.retrieve("echo").owned_by == "twostroke"


def test_errors_are_the_clients_own_exceptions() -> None:
    with serving(service(keys=("sesame",))) as url, client(url, "sesame") as ai, client(url, "wrong") as stranger:
        with pytest.raises(openai.AuthenticationError):
            stranger.models.list()
        with pytest.raises(openai.NotFoundError, match="available: echo"):
            ai.chat.completions.create(model="other", messages=[{"role": "user", "content": "a"}])
        with pytest.raises(openai.BadRequestError, match="temperature") as caught:
            ai.chat.completions.create(model="echo", messages=[{"role": "user", "content": "a"}], temperature=-1)
        assert caught.value.param == "temperature"
        assert caught.value.request_id is not None
        with pytest.raises(openai.BadRequestError, match="not supported here"):
            ai.chat.completions.create(
                model="echo", messages=[{"role": "user", "content": "a"}], modalities=["text", "audio"]
            )


def test_leaving_a_stream_frees_its_place() -> None:
    engine = EchoEngine(pause_s=0.01)
    with serving(service(engine)) as url, client(url) as ai:
        stream = ai.chat.completions.create(
            model="echo", messages=[{"role": "user", "content": "x" * 200}], stream=True
        )
        next(iter(stream))
        stream.close()
        limit = time.monotonic() + 5
        while not engine.idle and time.monotonic() < limit:
            time.sleep(0.005)
        assert engine.idle
        assert engine.steps < 100


def test_draining_lets_a_running_answer_finish() -> None:
    engine = EchoEngine(pause_s=0.01)
    over = service(engine)
    with running(over) as (url, server, thread):
        answers: list[httpx.Response] = []
        asking = threading.Thread(target=lambda: answers.append(httpx.post(url + "/v1/chat/completions", json=HELLO)))
        asking.start()
        while engine.idle:
            time.sleep(0.001)
        server.should_exit = True
        asking.join(10)
        thread.join(10)
        assert not thread.is_alive()
        assert answers[0].json()["choices"][0]["message"]["content"] == "hello"
        assert not over.host.alive
        with pytest.raises(httpx.ConnectError):
            httpx.get(url + "/health")


def test_a_port_in_use_is_a_clear_error() -> None:
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"port {port} on 127\.0\.0\.1 is in use"):
            bind("127.0.0.1", port)


def test_an_unknown_address_is_a_clear_error() -> None:
    with pytest.raises(ConfigError, match="cannot use the address"):
        bind("no.such.host.invalid", 0)
    with pytest.raises(ConfigError, match="cannot listen on 192"):
        bind("192.0.2.1", 0)


PROGRAM = """
    import asyncio, sys
    from tests.serve.scripted import EchoEngine, service
    from twostroke.serve.server import Server, bind
    socket = bind("127.0.0.1", 0)
    say = lambda *words: print(*words, flush=True)
    over = service(EchoEngine(pause_s=float(sys.argv[1])), drain_s=float(sys.argv[2]))
    server = Server(over, on_ready=lambda: say(socket.getsockname()[1]), on_drain=lambda count: say("draining", count))
    asyncio.run(server.serve([socket]))
    say("bye")
"""


@pytest.fixture
def program(request: pytest.FixtureRequest) -> subprocess.Popen[str]:
    """A server in a process of its own: (seconds a step, seconds to drain)."""
    pause_s, drain_s = request.param
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(pause_s), str(drain_s)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    yield child
    child.kill()
    child.communicate()


class Asking:
    """A streamed chat in a thread: what came, and whether it broke off."""

    def __init__(self, port: int, text: str) -> None:
        self.body = ""
        self.broken: httpx.HTTPError | None = None
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(port, text))
        self._thread.start()
        assert self._began.wait(20), "no token came"

    def _run(self, port: int, text: str) -> None:
        body = {"messages": [{"role": "user", "content": text}], "stream": True}
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        try:
            with httpx.Client(timeout=20) as http, http.stream("POST", url, json=body) as response:
                for piece in response.iter_text():
                    self.body += piece
                    if '"content":"x"' in self.body:
                        self._began.set()
        except httpx.HTTPError as error:
            self.broken = error

    def wait(self) -> None:
        self._thread.join(20)
        assert not self._thread.is_alive()


def port_of(program: subprocess.Popen[str]) -> int:
    assert program.stdout is not None
    return int(program.stdout.readline())


@pytest.mark.parametrize("program", [(0.02, 30)], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_drains_and_leaves_cleanly(program: subprocess.Popen[str], number: signal.Signals) -> None:
    asking = Asking(port_of(program), "x" * 60)
    program.send_signal(number)
    out, err = program.communicate(timeout=20)
    asking.wait()
    assert out.split("\n")[:2] == ["draining 1", "bye"]
    assert program.returncode == 0
    assert "Traceback" not in err
    assert asking.body.count('"content":"x"') == 60
    assert asking.body.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("program", [(0.05, 0.2)], indirect=True)
def test_an_answer_too_long_to_drain_ends_with_an_error_event(program: subprocess.Popen[str]) -> None:
    asking = Asking(port_of(program), "x" * 120)
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=20)
    asking.wait()
    assert program.returncode == 0
    assert '"code":"draining"' in asking.body.strip().split("\n\n")[-1]


@pytest.mark.parametrize("program", [(0.1, 60)], indirect=True)
def test_the_second_signal_leaves_at_once(program: subprocess.Popen[str]) -> None:
    asking = Asking(port_of(program), "x" * 120)
    program.send_signal(signal.SIGINT)
    assert program.stdout is not None
    assert program.stdout.readline() == "draining 1\n"
    program.send_signal(signal.SIGINT)
    program.wait(timeout=5)
    asking.wait()
    assert program.returncode == 130
    assert "[DONE]" not in asking.body
    assert asking.broken


def test_the_server_may_run_on_a_socket_of_any_family() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    with bind("localhost", 0) as bound:
        assert bound.getsockname()[1] > 0


def test_nothing_is_left_running() -> None:
    with serving(service()) as url:
        assert httpx.get(url + "/health").status_code == 200
    assert "twostroke-engine" not in [thread.name for thread in threading.enumerate()]
