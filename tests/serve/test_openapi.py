"""The OpenAPI document: valid, complete, and in step with what the formats read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from twostroke.serve import options
from twostroke.serve.openapi import document
from twostroke.serve.schemas import optional, text, thing, whole, word

DOCUMENT = document("1.2.3")
CALLS = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
METHODS = ("get", "head", "post", "delete")


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in DOCUMENT["paths"].items():
        for method in METHODS:
            if method in item:
                yield method, path, item[method]


def request(name: str) -> Draft202012Validator:
    schemas = DOCUMENT["components"]["schemas"]
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}})


def test_it_is_an_openapi_document() -> None:
    OpenAPIV31SpecValidator(DOCUMENT).validate()  # type: ignore[arg-type]
    assert DOCUMENT["info"]["version"] == "1.2.3"


def test_every_path_is_there() -> None:
    assert {(method, path) for method, path, _ in operations()} == {
        ("post", "/v1/chat/completions"), ("post", "/v1/chat/completions/input_tokens"),
        ("post", "/v1/completions"),
        ("post", "/v1/responses"), ("post", "/v1/responses/input_tokens"),
        ("get", "/v1/responses/{id}/input_items"),
        ("get", "/v1/responses/{id}"), ("delete", "/v1/responses/{id}"),
        ("post", "/v1/messages"), ("post", "/v1/messages/count_tokens"),
        ("get", "/v1/models"), ("get", "/v1/models/{name}"),
        ("post", "/tokenize"), ("post", "/detokenize"), ("post", "/reset_prefix_cache"),
        ("get", "/health"), ("get", "/version"), ("get", "/metrics"),
        ("get", "/"), ("head", "/"), ("get", "/docs"), ("get", "/openapi.json"),
    }  # fmt: skip


def test_every_status_of_a_body_that_is_judged_is_documented() -> None:
    for method, path, operation in operations():
        found = set(operation["responses"])
        assert found >= {"200", "405", "500"}
        if "requestBody" in operation:
            assert found >= {"400", "401", "404", "413", "415", "429"}
            assert ("529" if path.startswith("/v1/messages") else "503") in found, (method, path)


def test_errors_have_the_shape_of_their_format() -> None:
    for _, path, operation in operations():
        for status, answer in operation["responses"].items():
            schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
            if int(status) >= 400 and path != "/health" and schema:
                assert schema["$ref"].endswith("AnthropicError") == path.startswith("/v1/messages")


@pytest.mark.parametrize("name", ["ChatRequest", "CompletionRequest", "ResponsesRequest", "MessagesRequest"])
def test_every_field_that_all_formats_read_is_described(name: str) -> None:
    assert set(DOCUMENT["components"]["schemas"][name]["properties"]) >= options.READ


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("ChatRequest", {"messages": [{"role": "user", "content": "Hi"}], "stop": None, "unknown": 1}),
        ("ChatRequest", {"messages": [{"role": "assistant", "content": None, "tool_calls": CALLS}]}),
        (
            "ChatRequest",
            {"messages": [{"role": "tool", "content": "x", "tool_call_id": "c"}], "tool_choice": "required"},
        ),
        ("CompletionRequest", {"prompt": [[1, 2], [3]], "logit_bias": {"5": -100}}),
        ("ResponsesRequest", {"input": "Hi", "reasoning": {"effort": "low"}}),
        (
            "MessagesRequest",
            {"max_tokens": 0, "messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]},
        ),
        ("CountRequest", {"messages": [{"role": "user", "content": "Hi"}]}),
        ("TokenizeRequest", {"prompt": "Hi"}),
    ],
)
def test_bodies_that_clients_send_fit(name: str, body: dict[str, Any]) -> None:
    request(name).validate(body)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("ChatRequest", {}),
        ("ChatRequest", {"messages": []}),
        ("ChatRequest", {"messages": [{"role": "user", "content": "Hi"}], "temperature": 101}),
        ("ChatRequest", {"messages": [{"role": "robot", "content": "Hi"}]}),
        ("ChatRequest", {"messages": [{"role": "assistant", "content": None}]}),
        ("ChatRequest", {"messages": [{"role": "tool", "content": "x"}]}),
        ("CompletionRequest", {"prompt": 5}),
        ("CompletionRequest", {"prompt": "Hi", "logit_bias": {"x": 1}}),
        ("MessagesRequest", {"messages": [{"role": "user", "content": "Hi"}]}),
        ("ResponsesRequest", {"input": []}),
        ("TokenizeRequest", {}),
        ("DetokenizeRequest", {"tokens": [-1]}),
    ],
)
def test_bodies_that_are_refused_do_not(name: str, body: dict[str, Any]) -> None:
    assert not request(name).is_valid(body)


def test_what_may_be_left_out_may_be_null() -> None:
    shape = thing({"a": whole("", 0, 3), "b": word("x"), "c": text()}, ("c",))
    assert shape["required"] == ["c"]
    validator = Draft202012Validator(shape)
    assert validator.is_valid({"a": None, "b": None, "c": ""})
    assert not validator.is_valid({"a": 4, "c": ""})
    assert not validator.is_valid({"c": None})
    assert optional({"$ref": "#/x"}) == {"anyOf": [{"$ref": "#/x"}, {"type": "null"}]}
