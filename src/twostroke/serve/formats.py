"""The wire formats that are served, and which of them a path's errors are written in."""

from __future__ import annotations

from collections.abc import Mapping

from twostroke.serve import anthropic, openai, responses
from twostroke.serve.format import Format
from twostroke.serve.responses import ResponseStore


def formats(store: ResponseStore) -> tuple[Format, ...]:
    """Every format, each at its path; `store` keeps responses that clients may go on from."""
    return (*openai.FORMATS, *responses.formats(store), *anthropic.FORMATS)


def speaks_anthropic(headers: Mapping[str, str]) -> bool:
    """Whether the client reads Anthropic's shapes where a path serves both."""
    return "anthropic-version" in headers


def shape_of(path: str, headers: Mapping[str, str]) -> Format:
    """The format whose errors a client of that path can read."""
    if path.startswith("/v1/messages") or speaks_anthropic(headers):
        return anthropic.FORMATS[0]
    return openai.FORMATS[0]
