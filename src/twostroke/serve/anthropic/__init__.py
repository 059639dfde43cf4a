"""The Anthropic wire format: Messages, token counts, models and errors.  No HTTP here."""

from __future__ import annotations

from twostroke.serve.anthropic.catalogue import model_card, models
from twostroke.serve.anthropic.errors import error, error_event, status
from twostroke.serve.anthropic.parse import count, parse
from twostroke.serve.anthropic.render import PING, MessageWriter
from twostroke.serve.format import Format

__all__ = ["FORMATS", "count", "error", "model_card", "models"]

REQUEST_ID_HEADER = "request-id"
FORMATS: tuple[Format, ...] = (
    Format(
        path="/v1/messages",
        prefix="msg_",
        parse=parse,
        writer=MessageWriter,
        error=error,
        error_event=error_event,
        ping=PING,
        statuses=status,
        request_id_header=REQUEST_ID_HEADER,
    ),
)
