"""What the writers of this format need of a body beside the submission, and the fields both endpoints read alike."""

from __future__ import annotations

from dataclasses import dataclass

from twostroke.errors import InvalidParameter
from twostroke.serve import options
from twostroke.serve.fields import Fields
from twostroke.serve.openai.messages import text
from twostroke.serve.service import Service

TOP_LOGPROBS = 20
MAX_USER_ID = 512  # characters


@dataclass(frozen=True, slots=True)
class Details:
    """How an answer is to be written."""

    include_usage: bool = False  # a last chunk with the usage
    every_usage: bool = False  # the counts so far on every chunk
    obfuscation: bool = False  # chunks of a size that says nothing about their text
    logprobs: bool = False
    token_ids: bool = False
    prompt_logprobs: bool = False
    legacy: bool = False  # calls are written as `function_call`
    explicit: bool = False  # only explicit breakpoints count as written
    echo: tuple[str, ...] = ()  # text put before the answers, one per prompt


def details(fields: Fields, service: Service, *, stream: bool) -> Details:
    """What both endpoints read.  Raises `InvalidParameter`."""
    given = fields.object("stream_options") or Fields({}, "stream_options")
    if given.values and not stream:
        raise InvalidParameter("stream_options needs stream to be true; leave it out", param="stream_options")
    options.judge_names(given, ("include_usage", "include_obfuscation", "continuous_usage_stats"), service)
    usage = given.flag("include_usage", False)
    return Details(
        include_usage=usage,
        every_usage=given.flag("continuous_usage_stats", False) and usage,
        obfuscation=given.flag("include_obfuscation", False),
        token_ids=fields.flag("return_token_ids", False),
        prompt_logprobs=prompt_logprobs(fields, stream=stream) is not None,
    )


def prompt_logprobs(fields: Fields, *, stream: bool) -> int | None:
    """How many alternatives to each token of the prompt are reported; None reports nothing."""
    wanted = fields.integer("prompt_logprobs", 0, TOP_LOGPROBS)
    if wanted is not None and stream:
        raise InvalidParameter("prompt_logprobs are not streamed; set stream to false", param="prompt_logprobs")
    return wanted


def prediction(fields: Fields, service: Service) -> tuple[int, ...]:
    """The tokens of text that the client expects."""
    given = fields.object("prediction")
    if given is None:
        return ()
    if given.get("type") != "content":
        raise given.wrong("type", '"content"')
    return options.prediction(given, text(given), service)


def user_id(fields: Fields) -> str | None:
    """DeepSeek's `user_id`: its users share no cache."""
    name = fields.text("user_id")
    if name is not None and not 0 < len(name) <= MAX_USER_ID:
        raise fields.wrong("user_id", f"1 to {MAX_USER_ID} characters")
    return name


def limit(fields: Fields, *names: str) -> int | None:
    """The first of several names for the longest answer that is present."""
    found = [fields.integer(name, 0) for name in names]
    return next((value for value in found if value is not None), None)
