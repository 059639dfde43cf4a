"""Every failure a person can meet, as one tree.

The branch says whose move it is: `RequestError` is the caller's, `Unavailable` is time's, `ModelError` is the file's,
`InternalError` is ours.  A message names the offending value and the remedy; `param` names the offending field where
there is one.
"""

from __future__ import annotations


class TwostrokeError(Exception):
    """The root.  `status` is the HTTP status a server answers with; `code` is a stable machine-readable word."""

    status: int = 500
    code: str = "internal_error"

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class RequestError(TwostrokeError):
    """The caller can fix it."""

    status = 400
    code = "invalid_request"


class InvalidParameter(RequestError):
    """A field is missing, malformed or out of range."""

    code = "invalid_parameter"


class PromptTooLong(RequestError):
    """The prompt does not fit the context; the message carries both numbers."""

    code = "context_length_exceeded"


class UnknownModel(RequestError):
    """No such model here; the message lists those that are."""

    status = 404
    code = "model_not_found"


class BodyTooLarge(RequestError):
    """The request body exceeds what the server reads."""

    status = 413
    code = "request_too_large"


class BodyTooSlow(RequestError):
    """The request body did not come in time."""

    status = 408
    code = "request_timeout"


class UnsupportedMediaType(RequestError):
    """The request body is not JSON, or is not declared as such."""

    status = 415
    code = "unsupported_media_type"


class Unauthorized(RequestError):
    """The API key is missing or wrong."""

    status = 401
    code = "invalid_api_key"


class Unavailable(TwostrokeError):
    """Try again later."""

    status = 503
    code = "unavailable"


class Overloaded(Unavailable):
    """The queue is full."""

    status = 429
    code = "server_is_overloaded"


class Draining(Unavailable):
    """The server is shutting down."""

    code = "draining"


class ModelError(TwostrokeError):
    """The model file cannot be used (raised at start-up)."""

    code = "model_error"


class UnsupportedArchitecture(ModelError):
    """The file names an architecture no decoder here implements."""


class UnsupportedQuantization(ModelError):
    """The file holds a weight type no kernel here reads."""


class Corrupt(ModelError):
    """The file is truncated or damaged, or its checksum differs."""


class FetchFailed(ModelError):
    """A model could not be downloaded; the message says what was tried."""


class ConfigError(TwostrokeError):
    """A setting is wrong (flag, environment or file); raised before anything starts."""

    status = 400
    code = "config_error"


class InternalError(TwostrokeError):
    """We are wrong."""


class RunnerFailed(InternalError):
    """A forward pass raised; every sequence in it ends with this error."""

    code = "runner_failed"
