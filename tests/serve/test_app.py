"""The application over a scripted engine: statuses, headers, streams, and what happens when clients leave."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from tests.serve.live import HELLO, connected, get, post, talk, until
from tests.serve.scripted import EchoEngine, service
from twostroke.errors import InvalidParameter
from twostroke.serve.app import create_app
from twostroke.serve.bodies import OFF_LOOP
from twostroke.text.prompt import Prompt
from twostroke.types import Request

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
LONG = {"messages": [{"role": "user", "content": "x" * 200}], "stream": True}


def payloads(body: str) -> list[Any]:
    """The JSON of each event; `[DONE]` as the string it is."""
    events = [event.removeprefix("data: ") for event in body.split("\n\n") if event]
    return [event if event == "[DONE]" else json.loads(event) for event in events]


def test_a_chat() -> None:
    response = post(service(), CHAT, {**HELLO, "model": "echo"})
    assert response.status_code == 200
    assert response.headers["x-request-id"].startswith("req_")
    body = response.json()
    assert body["choices"][0]["message"]["content"] == "hello"
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["usage"]["completion_tokens"] == 6
    assert body["usage"]["prompt_tokens_details"]["cached_tokens"] == 2
    decode = body["phases"]["decode"]
    assert decode["steps"] + decode["accepted"] == decode["output_tokens"] == 6


def test_a_stream_in_order() -> None:
    response = post(
        service(EchoEngine(drafts=2)), CHAT, {**HELLO, "stream": True, "stream_options": {"include_usage": True}}
    )
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    *chunks, last = payloads(response.text)
    assert last == "[DONE]"
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks[:-1]) == "hello"
    assert [c["choices"][0]["finish_reason"] for c in chunks[:-1]].count("stop") == 1
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["total_tokens"] == 11
    assert chunks[-1]["metrics"]["speculative_decoding"]["num_accepted_draft_tokens"] == 3


def test_streamed_and_whole_say_the_same() -> None:
    async def both(client: httpx.AsyncClient) -> tuple[Any, list[Any]]:
        body = {"prompt": ["one", "zwölf"], "n": 2, "echo": True, "logprobs": None}
        whole = (await client.post(TEXT, json=body)).json()
        streamed = payloads((await client.post(TEXT, json={**body, "stream": True})).text)
        return whole, streamed

    whole, streamed = talk(service(), both)
    for choice in whole["choices"]:
        parts = [c["choices"][0] for c in streamed[:-1] if c["choices"][0]["index"] == choice["index"]]
        assert "".join(part["text"] for part in parts) == choice["text"]
        assert parts[-1]["finish_reason"] == choice["finish_reason"]


def test_a_stop_string_ends_the_answer() -> None:
    body = post(service(EchoEngine(drafts=3)), TEXT, {"prompt": "one two three", "stop": "two"}).json()
    assert body["choices"][0]["text"] == "one "
    assert body["choices"][0]["finish_reason"] == "stop"


def test_the_limit_ends_the_answer() -> None:
    body = post(service(), TEXT, {"prompt": "hello", "max_tokens": 2}).json()
    assert (body["choices"][0]["text"], body["choices"][0]["finish_reason"]) == ("he", "length")


def test_models() -> None:
    body = get(service(), "/v1/models").json()
    assert body["object"] == "list"
    assert [card["id"] for card in body["data"]] == ["echo", "echo-alias"]
    assert get(service(), "/v1/models/echo-alias").json()["max_model_len"] == 256
    missing = get(service(), "/v1/models/owner/other")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")
    assert "echo" in missing.json()["error"]["message"]


def test_health_version_and_metrics() -> None:
    assert get(service(), "/health").json() == {"status": "ok"}
    assert get(service(), "/version").json() == {"version": "1.2.3"}

    async def counted(client: httpx.AsyncClient) -> str:
        await client.post(CHAT, json=HELLO)
        return (await client.get("/metrics")).text

    text = talk(service(), counted)
    assert 'twostroke:generation_tokens_total{model_name="echo"} 6.0' in text
    assert 'twostroke:request_success_total{finished_reason="stop",model_name="echo"} 1.0' in text


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("content", "headers", "status", "said"),
    [
        (b"{", JSON, 400, "not valid JSON"),
        (b"", JSON, 400, "not valid JSON"),
        (b"[1]", JSON, 400, "must be a JSON object"),
        (b"\xff", JSON, 400, "not UTF-8"),
        (b"{}", {"content-type": "text/plain"}, 415, "Content-Type: application/json"),
        (b"{}", {}, 415, "Content-Type: application/json"),
        (b"{}", JSON, 400, "messages"),
        (b'{"messages": []}', JSON, 400, "at least one message"),
        (b'{"messages": [{"role": "user", "content": "a"}], "temperature": NaN}', JSON, 400, "NaN"),
        (b'{"messages": [{"role": "user", "content": "a"}], "temperature": 1e999}', JSON, 400, "temperature"),
        (b'{"messages": [{"role": "user", "content": "a"}], "temperature": -1}', JSON, 400, "temperature"),
        (b'{"messages": [{"role": "user", "content": "a"}], "max_tokens": -1}', JSON, 400, "max_tokens"),
        (b'{"messages": [{"role": "user", "content": "a"}], "stop": ""}', JSON, 400, "stop"),
        (b'{"messages": [{"role": "user", "content": "a"}], "tools": [1]}', JSON, 400, "tools"),
        (b'{"messages": [{"role": "user", "content": "a"}], "n": "x"}', JSON, 400, "n must be an integer"),
        (b'{"messages": [{"role": "user", "content": "a"}], "model": "b"}', JSON, 404, "available: echo"),
        (rb'{"messages": [{"role": "user", "content": "\ud800"}]}', JSON, 400, r"lone surrogate \ud800"),
        (rb'{"messages": [{"role": "user", "content": "a"}], "stop": "\ud800"}', JSON, 400, "stop holds"),
        (b'{"messages": [{"role": "user", "content": "' + b"a" * 300 + b'"}]}', JSON, 400, "300 tokens"),
        (b"{" + b" " * 5000, JSON, 413, "larger than 4096 bytes"),
    ],
)
def test_bad_bodies(content: bytes, headers: dict[str, str], status: int, said: str) -> None:
    response = post(service(max_body=4096), CHAT, content=content, headers=headers)
    assert response.status_code == status
    error = response.json()["error"]
    assert said in error["message"]
    assert error["type"] == "invalid_request_error"
    assert set(error) == {"message", "type", "param", "code"}
    assert response.headers["x-request-id"]


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nope", 404), ("GET", CHAT, 405), ("POST", "/health", 405)]
)
def test_unknown_paths_and_methods_have_the_same_shape(method: str, path: str, status: int) -> None:
    response = talk(service(), lambda client: client.request(method, path))
    assert response.status_code == status
    assert path in response.json()["error"]["message"]
    assert response.headers["x-request-id"].startswith("req_")


def test_a_request_may_bring_its_own_id_if_it_is_a_sane_one() -> None:
    assert post(service(), CHAT, HELLO, headers={"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
    assert post(service(), CHAT, HELLO, headers={"x-request-id": "a b"}).headers["x-request-id"].startswith("req_")


def test_keys() -> None:
    locked = service(keys=("sesame",))
    outside = post(locked, CHAT, HELLO)
    assert (outside.status_code, outside.json()["error"]["code"]) == (401, "invalid_api_key")
    assert outside.headers["www-authenticate"] == "Bearer"
    assert get(service(keys=("sesame",)), "/v1/models").status_code == 401
    assert get(service(keys=("sesame",)), "/health").status_code == 200
    inside = post(service(keys=("sesame",)), CHAT, HELLO, headers={"authorization": "Bearer sesame"})
    assert inside.status_code == 200


def test_key_and_salt_make_the_namespace() -> None:
    async def names(client: httpx.AsyncClient) -> None:
        for key in ("one", "two"):
            for salt in (None, "s"):
                head = {"authorization": f"Bearer {key}"}
                await client.post(CHAT, json={**HELLO, "cache_salt": salt}, headers=head)

    engine = EchoEngine()
    talk(service(engine, keys=("one", "two")), names)
    assert len({request.namespace for request in engine.requests}) == 4


def test_a_long_body_is_read_off_the_event_loop() -> None:
    engine = EchoEngine()
    text = "x" * (2 * OFF_LOOP)
    body = post(service(engine, context=4 * OFF_LOOP), TEXT, {"prompt": text, "max_tokens": 1}).json()
    assert body["choices"][0]["text"] == "x"
    assert len(engine.requests[0].prompt) == len(text)


def test_a_template_that_refuses_is_the_callers_error() -> None:
    over = service()

    def prompt(conversation: object, namespace: str) -> Prompt:
        raise InvalidParameter("the template says no", param="messages")

    over.text.prompt = prompt  # type: ignore[method-assign]
    response = post(over, CHAT, HELLO)
    assert (response.status_code, response.json()["error"]["message"]) == (400, "the template says no")


def test_what_nobody_foresaw_is_an_internal_error_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    over = service()

    def encode(text: str) -> tuple[int, ...]:
        raise ZeroDivisionError("secret detail")

    over.text.encode = encode  # type: ignore[method-assign]
    response = post(over, TEXT, {"prompt": "a"}, headers={"x-request-id": "mine"})
    assert response.status_code == 500
    assert "secret" not in response.text
    assert "mine" in response.json()["error"]["message"]
    assert "secret detail" in caplog.text


def test_a_full_queue_says_when_to_come_back() -> None:
    engine = EchoEngine(slots=1, pause_s=0.005)
    over = service(engine, max_queue=1)

    async def crowd(client: httpx.AsyncClient) -> list[httpx.Response]:
        first = asyncio.ensure_future(client.post(CHAT, json=HELLO))
        await until(lambda: over.host.open == 1 and over.host.waiting == 0)
        second = asyncio.ensure_future(client.post(CHAT, json=HELLO))
        await until(lambda: over.host.waiting == 1)
        third = await client.post(CHAT, json=HELLO)
        counted = await client.get("/metrics")
        return [third, await first, await second, counted]

    third, first, second, counted = talk(over, crowd)
    assert (third.status_code, third.json()["error"]["type"]) == (429, "rate_limit_error")
    assert third.json()["error"]["code"] == "server_is_overloaded"
    assert 1 <= int(third.headers["retry-after"]) <= 60
    assert (first.status_code, second.status_code) == (200, 200)
    assert 'admission_rejections_total{model_name="echo",reason="server_is_overloaded"} 1.0' in counted.text


def test_draining_refuses_new_requests_and_says_so() -> None:
    over = service()

    async def late(client: httpx.AsyncClient) -> tuple[httpx.Response, httpx.Response]:
        await over.host.drain(1)
        return await client.post(CHAT, json=HELLO), await client.get("/health")

    response, health = talk(over, late)
    assert (response.status_code, response.json()["error"]["code"]) == (503, "draining")
    assert "retry-after" in response.headers
    assert (health.status_code, health.json()) == (503, {"status": "draining"})


def test_a_failing_step_is_500_and_the_next_request_is_served(caplog: pytest.LogCaptureFixture) -> None:
    engine = EchoEngine()
    engine.fail_next = RuntimeError("boom")

    async def twice(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [await client.post(CHAT, json=HELLO), await client.post(CHAT, json=HELLO)]

    first, second = talk(service(engine), twice)
    assert (first.status_code, first.json()["error"]["code"]) == (500, "runner_failed")
    assert second.json()["choices"][0]["message"]["content"] == "hello"


def test_a_failure_in_mid_stream_is_the_last_event(caplog: pytest.LogCaptureFixture) -> None:
    class Fragile(EchoEngine):
        def step(self) -> Any:
            if self.steps == 3:
                self.fail_next = RuntimeError("boom")
            return super().step()

    *chunks, last = payloads(post(service(Fragile()), CHAT, {**HELLO, "stream": True}).text)
    assert last["error"]["type"] == "server_error"
    assert "boom" in last["error"]["message"]
    assert all("error" not in chunk for chunk in chunks)


async def call(app: Any, path: str, body: Any, leave: asyncio.Event) -> list[dict[str, Any]]:
    """One raw ASGI request whose client leaves when told."""
    incoming = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if incoming:
            return incoming.pop()
        await leave.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"content-type", b"application/json")], "http_version": "1.1", "scheme": "http",
        "server": ("test", 80), "client": ("test", 1),
    }  # fmt: skip
    await app(scope, receive, send)
    return sent


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_frees_its_place_within_a_step(stream: bool) -> None:
    engine = EchoEngine(pause_s=0.02)
    over = service(engine)

    async def run() -> None:
        app, leave = create_app(over), asyncio.Event()
        async with app.router.lifespan_context(app):
            asking = asyncio.ensure_future(call(app, CHAT, {**LONG, "stream": stream}, leave))
            await until(lambda: engine.steps >= 3)
            at = engine.steps
            leave.set()
            await asking
            await until(lambda: engine.idle)
            assert engine.steps - at <= 3
            await until(lambda: over.host.open == 0)
            assert b"[DONE]" not in b"".join(message.get("body", b"") for message in await asking)

    asyncio.run(run())


def test_a_client_that_leaves_while_sending_its_body_is_no_error() -> None:
    async def run() -> list[dict[str, Any]]:
        app, sent = create_app(service()), []

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http", "method": "POST", "path": CHAT, "raw_path": b"", "query_string": b"", "root_path": "",
            "headers": [(b"content-type", b"application/json")], "http_version": "1.1", "scheme": "http",
        }  # fmt: skip
        async with app.router.lifespan_context(app):
            await app(scope, receive, send)
        return sent

    assert asyncio.run(run())[0]["status"] == 499


def test_many_clients_at_once() -> None:
    async def crowd(client: httpx.AsyncClient) -> list[httpx.Response]:
        asks = [client.post(TEXT, json={"prompt": f"text {i}", "stream": i % 2 == 0}) for i in range(40)]
        return list(await asyncio.gather(*asks))

    over = service(EchoEngine(slots=5, drafts=2))
    for i, response in enumerate(talk(over, crowd)):
        events = payloads(response.text)[:-1] if i % 2 == 0 else [response.json()]
        assert "".join(event["choices"][0]["text"] for event in events) == f"text {i}"
    assert over.host.open == 0


def test_the_loop_stays_free_while_the_engine_works() -> None:
    async def watch() -> float:
        async with connected(service(EchoEngine(pause_s=0.4))) as client:
            asking = asyncio.ensure_future(client.post(CHAT, json={**HELLO, "max_tokens": 2}))
            longest, loop = 0.0, asyncio.get_running_loop()
            while not asking.done():
                before = loop.time()
                await asyncio.sleep(0.001)
                longest = max(longest, loop.time() - before)
            return longest

    assert asyncio.run(watch()) < 0.4


def test_the_engine_sees_when_a_request_arrived() -> None:
    engine = EchoEngine()
    post(service(engine), CHAT, HELLO)
    (request,) = engine.requests
    assert isinstance(request, Request)
    assert request.arrived_s > 0
