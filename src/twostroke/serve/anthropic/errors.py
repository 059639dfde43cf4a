"""Failures in Anthropic's shape."""

from __future__ import annotations

from twostroke.errors import Overloaded, TwostrokeError
from twostroke.serve.format import named
from twostroke.serve.submission import Json

OVERLOADED = 529
KINDS = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    OVERLOADED: "overloaded_error",
}


def status(problem: TwostrokeError) -> int:
    """The HTTP status: a full queue and a server that shuts down are overload, a tenant's own limit is its rate."""
    busy = problem.code == Overloaded.code or problem.status == 503
    return OVERLOADED if busy else problem.status


def error(problem: TwostrokeError, request_id: str) -> Json:
    """The body of a failure."""
    number = status(problem)
    kind = KINDS.get(number, "invalid_request_error" if number < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": problem.message}, "request_id": request_id}


def error_event(problem: TwostrokeError, request_id: str) -> bytes:
    """A failure inside a stream."""
    return named("error", error(problem, request_id))
