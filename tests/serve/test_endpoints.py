"""What is answered without the engine, and in whose shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest
from anthropic.types import ModelInfo
from openai.types import Model

from tests.serve.live import get, post, talk
from tests.serve.scripted import service
from twostroke.serve.openapi import document

ANTHROPIC = {"anthropic-version": "2023-06-01"}
HELLO = [{"role": "user", "content": "hello"}]


def test_models_are_listed_for_either_client_and_without_the_star() -> None:
    over = replace(service(), models=("echo", "*"))
    ours = get(over, "/v1/models").json()["data"]
    theirs = get(over, "/v1/models", headers=ANTHROPIC).json()
    assert [Model.model_validate(card).id for card in ours] == ["echo"]
    assert [ModelInfo.model_validate(card).id for card in theirs["data"]] == ["echo"]
    assert theirs["has_more"] is False


def test_under_the_star_every_name_is_a_model() -> None:
    assert get(service(), "/v1/models/gpt-9").status_code == 404
    over, again = (replace(service(), models=("echo", "*")) for _ in range(2))
    assert get(over, "/v1/models/gpt-9").json()["id"] == "gpt-9"
    assert post(again, "/v1/chat/completions", {"model": "gpt-9", "messages": HELLO}).json()["model"] == "gpt-9"


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_are_html_that_asks_nothing_of_anybody_else(path: str) -> None:
    page = get(service(), path)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<html" in page.text
    assert "src=" not in page.text


def test_head_of_the_root_answers_without_a_body() -> None:
    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        return await client.head("/")

    answer = talk(service(), ask)
    assert (answer.status_code, answer.content) == (200, b"")


def test_the_document_is_served() -> None:
    assert get(service(), "/openapi.json").json() == document("1.2.3")


def test_every_documented_path_is_there() -> None:
    async def ask(client: httpx.AsyncClient) -> list[tuple[str, str, int]]:
        found = []
        for path, item in document("1")["paths"].items():
            for method in set(item) & {"get", "head", "post", "delete"}:
                answer = await client.request(method, path.format(id="resp_x", name="echo"), json={})
                found.append((method, path, answer.status_code))
        return found

    documented = document("1")["paths"]
    for method, path, status in talk(service(), ask):
        assert status != 405, (method, path)
        assert str(status) in documented[path][method]["responses"], (method, path, status)


def test_tokens_of_a_text_and_back() -> None:
    counted = post(service(), "/tokenize", {"prompt": "héllo"}).json()
    assert counted == {"tokens": list("héllo".encode()), "count": 6, "max_model_len": 256}
    assert post(service(), "/detokenize", {"tokens": counted["tokens"]}).json() == {"prompt": "héllo"}


def test_tokens_of_a_chat() -> None:
    assert post(service(), "/tokenize", {"messages": HELLO}).json()["count"] == 5


@pytest.mark.parametrize("tokens", [None, "a", [257], [-1], [1.5], [True]])
def test_tokens_that_are_none_are_refused(tokens: Any) -> None:
    answer = post(service(), "/detokenize", {"tokens": tokens})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "tokens")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages/count_tokens", {"model": "echo", "messages": HELLO}),
        ("/v1/chat/completions/input_tokens", {"messages": HELLO}),
        ("/v1/responses/input_tokens", {"model": "echo", "input": "hello"}),
    ],
)
def test_prompts_are_counted_without_being_read(path: str, body: Any) -> None:
    assert post(service(), path, body).json()["input_tokens"] == 5


def test_the_prefix_cache_is_cleared_between_two_steps() -> None:
    threads = []

    def clear() -> bool:
        import threading

        threads.append(threading.current_thread().name)
        return True

    over = replace(service(), clear_cache=clear)
    assert post(over, "/reset_prefix_cache").json() == {"success": True}
    assert threads == ["twostroke-engine"]


def test_a_cache_that_cannot_be_cleared_is_an_error_and_the_engine_goes_on() -> None:
    def fail() -> bool:
        raise RuntimeError("no")

    async def ask(client: httpx.AsyncClient) -> list[int]:
        first = await client.post("/reset_prefix_cache")
        second = await client.post("/v1/chat/completions", json={"messages": HELLO})
        return [first.status_code, second.status_code]

    assert talk(replace(service(), clear_cache=fail), ask) == [500, 200]


def test_a_stored_response_is_found_listed_and_forgotten() -> None:
    async def ask(client: httpx.AsyncClient) -> list[Any]:
        own = (await client.post("/v1/responses", json={"model": "echo", "input": "hello"})).json()["id"]
        found = await client.get(f"/v1/responses/{own}")
        items = await client.get(f"/v1/responses/{own}/input_items", params={"limit": 1})
        wrong = await client.get(f"/v1/responses/{own}/input_items", params={"limit": "x"})
        gone = await client.delete(f"/v1/responses/{own}")
        again = await client.get(f"/v1/responses/{own}")
        return [found.json()["id"] == own, len(items.json()["data"]), wrong.status_code, gone.json()["deleted"], again]

    found, items, wrong, deleted, again = talk(service(), ask)
    assert (found, items, wrong, deleted) == (True, 1, 400, True)
    assert again.status_code == 404
    assert "error" in again.json()


def test_either_header_carries_the_key() -> None:
    over = service(keys=("sesame",))
    for headers in ({"authorization": "Bearer sesame"}, {"x-api-key": "sesame"}):
        assert get(over, "/v1/models", headers=headers).status_code == 200
    for headers in ({}, {"x-api-key": "wrong"}, {"authorization": "Bearer wrong"}):
        assert get(over, "/v1/models", headers=headers).status_code == 401


def test_errors_are_in_the_shape_of_the_path() -> None:
    wrong = {"model": "echo", "max_tokens": "x", "messages": HELLO}
    theirs = post(service(), "/v1/messages", wrong, headers=ANTHROPIC)
    assert (theirs.status_code, theirs.json()["type"], theirs.json()["error"]["type"]) == (
        400,
        "error",
        "invalid_request_error",
    )
    assert theirs.headers["request-id"] == theirs.json()["request_id"]
    ours = post(service(), "/v1/chat/completions", wrong)
    assert ours.json()["error"]["param"] == "max_tokens"
    assert ours.headers["x-request-id"]
    assert get(service(), "/v1/messages/nowhere", headers=ANTHROPIC).json()["type"] == "error"
