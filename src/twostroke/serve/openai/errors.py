"""Failures in OpenAI's shape, as a body and as the last event of a stream."""

from __future__ import annotations

from twostroke.errors import TwostrokeError
from twostroke.serve.format import data
from twostroke.serve.submission import Json

KINDS = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    503: "service_unavailable_error",
}


def error(problem: TwostrokeError, request: str) -> Json:
    """The body; the id of the request is told in a header."""
    kind = KINDS.get(problem.status, "invalid_request_error" if problem.status < 500 else "server_error")
    return {"error": {"message": problem.message, "type": kind, "param": problem.param, "code": problem.code}}


def error_event(problem: TwostrokeError, request: str) -> bytes:
    """The event after which nothing comes; clients raise on it."""
    return data(error(problem, request))
