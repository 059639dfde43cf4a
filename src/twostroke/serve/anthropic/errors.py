"""Failures in Anthropic's shape."""

from __future__ import annotations

from twostroke.errors import InvalidParameter, Overloaded, TwostrokeError
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


class UnsupportedThread(InvalidParameter):
    """The client wants the server to keep its conversation.

    The tool runners of Anthropic's own clients ask for that first; where the details say that it cannot be had, they
    send the whole conversation with every turn.
    """

    def __init__(self) -> None:
        message = "thread is not supported here; send the whole conversation in messages and leave thread out"
        super().__init__(message, param="thread")
        self.details: Json = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}


def status(problem: TwostrokeError) -> int:
    """The HTTP status: a full queue and a server that shuts down are overload, a tenant's own limit is its rate."""
    busy = problem.code == Overloaded.code or problem.status == 503
    return OVERLOADED if busy else problem.status


def error(problem: TwostrokeError, request_id: str) -> Json:
    """The body of a failure."""
    number = status(problem)
    kind = KINDS.get(number, "invalid_request_error" if number < 500 else "api_error")
    failure: Json = {"type": kind, "message": problem.message}
    if isinstance(problem, UnsupportedThread):
        failure["details"] = problem.details
    return {"type": "error", "error": failure, "request_id": request_id}


def error_event(problem: TwostrokeError, request_id: str) -> bytes:
    """A failure inside a stream."""
    return named("error", error(problem, request_id))
