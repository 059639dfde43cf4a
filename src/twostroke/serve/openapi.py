"""The OpenAPI document of what is served: paths, bodies, and every status an answer may have.

Written by hand, because bodies are judged by the wire formats and not by a framework.  A test sends what the document
describes and accepts no status that it does not name.
"""

from __future__ import annotations

from typing import Any

from twostroke.serve.responses.stored import MOST_OF_A_PAGE
from twostroke.serve.schemas import REQUESTS, RESPONSES, named

Json = dict[str, Any]
STATUSES = {
    400: "A field is wrong; the message names it, its value and what would be right.",
    401: "The API key is missing or wrong.",
    404: "There is no such thing here; the message lists what is.",
    405: "The path has no such method.",
    408: "The body did not come in time.",
    413: "The body is larger than the server reads.",
    415: "The body is not declared as JSON.",
    429: "The queue is full; Retry-After says when a place is likely.",
    500: "A fault of ours; the log names it by the request id.",
    503: "The server is stopping, or has failed.",
    529: "The queue is full, or the server is stopping.",
}
READING = (401, 405, 500)
WRITING = (400, 401, 404, 405, 408, 413, 415, 500)
OPENAI = (*WRITING, 429, 503)
ANTHROPIC = (*WRITING, 429, 529)
LOCKED: list[Json] = [{}, {"bearer": []}, {"key": []}]  # the first: where the server was given no key, none is needed


def document(service_version: str) -> Json:
    """The whole document, for JSON."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Twostroke",
            "version": service_version,
            "description": "An LLM serving engine that speaks the formats of OpenAI and Anthropic.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": {**_answers(), **_counts(), **_stored(), **_models(), **_tools(), **_operations()},
        "components": {
            "schemas": {**REQUESTS, **RESPONSES},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def _answers() -> Json:
    return {
        "/v1/chat/completions": {
            "post": _post("Answer a conversation.", "ChatRequest", "ChatCompletion", OPENAI, stream=True)
        },
        "/v1/completions": {"post": _post("Continue a text.", "CompletionRequest", "Completion", OPENAI, stream=True)},
        "/v1/responses": {
            "post": _post("Answer items, and keep the response.", "ResponsesRequest", "Response", OPENAI, stream=True)
        },
        "/v1/messages": {"post": _post("Answer messages.", "MessagesRequest", "Message", ANTHROPIC, stream=True)},
    }


def _counts() -> Json:
    what = "Count the tokens of a prompt."
    return {
        "/v1/chat/completions/input_tokens": {"post": _post(what, "ChatRequest", "InputTokens", OPENAI)},
        "/v1/responses/input_tokens": {"post": _post(what, "ResponsesRequest", "InputTokens", OPENAI)},
        "/v1/messages/count_tokens": {"post": _post(what, "CountRequest", "InputTokens", ANTHROPIC)},
    }


def _stored() -> Json:
    return {
        "/v1/responses/{id}": {
            "parameters": [_in_path("id", "The response's id.")],
            "get": _operation("Read a stored response.", _json("Response"), (*READING, 404)),
            "delete": _operation("Forget a stored response.", _json("DeletedResponse"), (*READING, 404)),
        },
        "/v1/responses/{id}/input_items": {
            "parameters": [
                _in_path("id", "The response's id."),
                _in_query("limit", "Items of a page.", {"type": "integer", "minimum": 1, "maximum": MOST_OF_A_PAGE}),
                _in_query("order", "The latest first, or last.", {"type": "string", "enum": ["asc", "desc"]}),
                _in_query("after", "The id of the item before the page.", {"type": "string"}),
            ],
            "get": _operation("A page of what a response answers.", _json("InputItems"), (*READING, 400, 404)),
        },
    }


def _models() -> Json:
    return {
        "/v1/models": {"get": _operation("What is served.", _json("Models"), READING)},
        "/v1/models/{name}": {
            "parameters": [_in_path("name", "A served name.")],
            "get": _operation("One model.", _json("Model"), (*READING, 404)),
        },
    }


def _tools() -> Json:
    return {
        "/tokenize": {"post": _post("The tokens of a text or a conversation.", "TokenizeRequest", "Tokens", OPENAI)},
        "/detokenize": {"post": _post("The text of tokens.", "DetokenizeRequest", "Text", OPENAI)},
        "/reset_prefix_cache": {
            "post": _operation("Forget every cached prefix that nobody is using.", _json("Reset"), (*READING, 503))
        },
    }


def _operations() -> Json:
    """What needs no key: a page, and what is watched."""
    plain: Json = {"text/plain": {"schema": {"type": "string"}}}
    page: Json = {"text/html": {"schema": {"type": "string"}}}
    failed = {"503": {"description": STATUSES[503], "content": _json("Health")}}
    health = _operation("Whether the server answers.", _json("Health"), (405, 500), locked=False)
    return {
        "/": {
            "get": _operation("A page about this server.", page, (405, 500), locked=False),
            "head": _operation("Whether anybody is there.", {}, (405, 500), locked=False),
        },
        "/docs": {"get": _operation("This document as a page.", page, (405, 500), locked=False)},
        "/openapi.json": {
            "get": _operation(
                "This document.", {"application/json": {"schema": {"type": "object"}}}, (405, 500), locked=False
            )
        },
        "/health": {"get": {**health, "responses": {**health["responses"], **failed}}},
        "/version": {"get": _operation("The version.", _json("Version"), (405, 500), locked=False)},
        "/metrics": {"get": _operation("Prometheus metrics.", plain, (405, 500), locked=False)},
    }


def _post(summary: str, body: str, answer: str, statuses: tuple[int, ...], *, stream: bool = False) -> Json:
    events = {"text/event-stream": {"schema": {"description": "Events as the format has them."}}} if stream else {}
    request = {"required": True, "content": _json(body)}
    return {**_operation(summary, {**_json(answer), **events}, statuses), "requestBody": request}


def _operation(summary: str, content: Json, statuses: tuple[int, ...], *, locked: bool = True) -> Json:
    shape = "AnthropicError" if 529 in statuses else "Error"
    good: Json = {"description": "Done."} | ({"content": content} if content else {})
    # A head has no body, whatever its status.
    bad = {
        str(status): {"description": STATUSES[status]} | ({"content": _json(shape)} if content else {})
        for status in sorted(statuses)
    }
    return {"summary": summary, "responses": {"200": good, **bad}, "security": LOCKED if locked else []}


def _in_path(name: str, about: str) -> Json:
    return {"name": name, "in": "path", "required": True, "description": about, "schema": {"type": "string"}}


def _in_query(name: str, about: str, schema: Json) -> Json:
    return {"name": name, "in": "query", "description": about, "schema": schema}


def _json(name: str) -> Json:
    return {"application/json": {"schema": named(name)}}
