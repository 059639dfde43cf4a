"""OpenAI's wire formats: chat and text completions, models and errors.  No HTTP here."""

from __future__ import annotations

from twostroke.serve.format import Format
from twostroke.serve.openai import chat, completions
from twostroke.serve.openai.chat import conversation
from twostroke.serve.openai.chat_writer import ChatWriter
from twostroke.serve.openai.completion_writer import CompletionWriter
from twostroke.serve.openai.errors import error, error_event
from twostroke.serve.openai.models import card

__all__ = ["FORMATS", "card", "conversation", "error", "error_event"]

FORMATS: tuple[Format, ...] = (
    Format("/v1/chat/completions", "chatcmpl-", chat.parse, ChatWriter, error, error_event),
    Format("/v1/completions", "cmpl-", completions.parse, CompletionWriter, error, error_event),
)
