"""What goes wrong, in OpenAI's error shape, whole or inside a stream."""

from __future__ import annotations

from twostroke.errors import RequestError, TwostrokeError
from twostroke.serve.format import named
from twostroke.serve.submission import Json

KINDS = {401: "authentication_error", 429: "rate_limit_error", 503: "service_unavailable_error"}


class UnknownResponse(RequestError):
    """No response with this id is stored for this caller."""

    status = 404
    code = "not_found"


class UnknownPrevious(RequestError):
    """`previous_response_id` names a response that is not stored for this caller."""

    code = "previous_response_not_found"


def error(problem: TwostrokeError, request: str) -> Json:
    """The body of a failure.  The request's id travels in a header."""
    ordinary = "invalid_request_error" if problem.status < 500 else "server_error"
    kind = KINDS.get(problem.status, ordinary)
    return {"error": {"message": problem.message, "type": kind, "param": problem.param, "code": problem.code}}


def error_event(problem: TwostrokeError, request: str) -> bytes:
    """The last event of a stream that failed.

    A function of the problem alone cannot number it: `response.failed`, which the writer sends before, is numbered.
    """
    body = {"code": problem.code, "message": problem.message, "param": problem.param}
    return named("error", {"type": "error", "sequence_number": 0, **body})
