"""Failures and models in Anthropic's shape."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from anthropic.types import ErrorResponse, ModelInfo
from pydantic import TypeAdapter

from tests.serve.anthropic.plain import ASK, CALLER, FORMAT, SERVICE
from twostroke.errors import (
    BodyTooLarge,
    Draining,
    InvalidParameter,
    Overloaded,
    RunnerFailed,
    TwostrokeError,
    Unauthorized,
    Unavailable,
    UnknownModel,
    UnsupportedMediaType,
)
from twostroke.serve import anthropic
from twostroke.serve.fields import Fields


class OverLimit(Unavailable):
    """A tenant asks for more than its share."""

    status = 429
    code = "rate_limit_exceeded"


@pytest.mark.parametrize(
    ("problem", "status", "kind"),
    [
        (InvalidParameter, 400, "invalid_request_error"),
        (Unauthorized, 401, "authentication_error"),
        (UnknownModel, 404, "not_found_error"),
        (BodyTooLarge, 413, "request_too_large"),
        (UnsupportedMediaType, 415, "invalid_request_error"),
        (OverLimit, 429, "rate_limit_error"),
        (RunnerFailed, 500, "api_error"),
        (Overloaded, 529, "overloaded_error"),
        (Draining, 529, "overloaded_error"),
    ],
)
def test_statuses_and_kinds(problem: type[TwostrokeError], status: int, kind: str) -> None:
    raised = problem("what and why")
    body = anthropic.error(raised, "req_1")
    assert body == {"type": "error", "error": {"type": kind, "message": "what and why"}, "request_id": "req_1"}
    if kind != "request_too_large":  # documented, and not among the client's models
        TypeAdapter(ErrorResponse).validate_python(body)
    assert FORMAT.statuses(raised) == status
    assert (
        FORMAT.error_event(raised, "req_1")
        == b"event: error\ndata: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"
    )


@pytest.mark.parametrize("thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}])
@pytest.mark.parametrize("read", [FORMAT.parse, anthropic.count])
def test_a_thread_is_refused_in_the_way_that_makes_tool_runners_send_the_whole_conversation(
    thread: dict[str, str], read: Callable[..., object]
) -> None:
    with pytest.raises(InvalidParameter, match="send the whole conversation in messages") as raised:
        read(Fields({**ASK, "thread": thread}), SERVICE, CALLER)
    body = anthropic.error(raised.value, "req_1")
    assert body["error"]["details"] == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    assert body["error"]["type"] == "invalid_request_error"


def test_the_format_is_told_apart() -> None:
    assert (FORMAT.path, FORMAT.prefix, FORMAT.request_id_header) == ("/v1/messages", "msg_", "request-id")
    assert FORMAT.ping == b'event: ping\ndata: {"type":"ping"}\n\n'


def test_models() -> None:
    page = anthropic.models(["one", "two"], 1700000000, 4096)
    assert (page["first_id"], page["last_id"], page["has_more"]) == ("one", "two", False)
    for card in page["data"]:
        assert ModelInfo.model_validate(card).max_input_tokens == 4096
    assert page["data"][0] == anthropic.model_card("one", 1700000000, 4096)
    assert page["data"][0]["created_at"] == "2023-11-14T22:13:20Z"
    assert anthropic.models([], 0, 1)["first_id"] is None
