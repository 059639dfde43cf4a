"""Judges a body of the Responses API and turns it into a submission.

Lenient where a client's field changes nothing here, and a 400 where it would.  What went before
(`previous_response_id`, `item_reference`) comes from the store; instructions are not inherited.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from twostroke.errors import InvalidParameter
from twostroke.serve import options
from twostroke.serve.caching import caching
from twostroke.serve.fields import Fields, shown
from twostroke.serve.responses import items, tools
from twostroke.serve.responses.failures import UnknownPrevious
from twostroke.serve.responses.store import ResponseStore
from twostroke.serve.responses.tools import Toolbox
from twostroke.serve.service import Service
from twostroke.serve.submission import Caller, Json, Submission
from twostroke.text.conversation import Conversation, Message, Part
from twostroke.text.formats import AnyJson, Format, JsonSchema
from twostroke.types import Request

log = logging.getLogger("twostroke.http")
TOP_LOGPROBS = 20
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
SUMMARIES = ("auto", "concise", "detailed")
INCLUDED = frozenset({"reasoning.encrypted_content", "message.output_text.logprobs"})
HOSTED_RESULTS = frozenset(
    {
        "file_search_call.results", "web_search_call.results", "web_search_call.action.sources",
        "message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs",
    }
)  # fmt: skip
REFUSED = {  # what each would need
    "background": "send background false and wait for the answer",
    "conversation": "send the items, or previous_response_id",
    "prompt": "send the text as instructions and input",
    "context_management": "shorten the input yourself",
    "moderation": "leave it out",
}
REPEATED = ("metadata", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "user")
HARMLESS = frozenset(
    {
        "access_programs", "background_options", "client_metadata", "image", "max_tool_calls", "personality",
        "service_tier",
    }
)  # fmt: skip
READ = frozenset(
    {
        "include", "input", "instructions", "max_output_tokens", "parallel_tool_calls", "previous_response_id",
        "prompt_cache_options", "reasoning", "stop", "store", "stream", "stream_options", "text", "tool_choice",
        "tools", "top_logprobs", "truncation",
    }
)  # fmt: skip
KNOWN = READ | HARMLESS | frozenset(REPEATED) | frozenset(REFUSED) | options.READ


@dataclass(frozen=True, slots=True)
class Details:
    """What the writer needs beside the submission."""

    echo: Json  # the fields that a `Response` repeats
    box: Toolbox
    items: tuple[Json, ...]  # the whole input, that of the responses before included
    store: bool
    logprobs: bool  # shown with the text
    sealed: bool  # reasoning is sent sealed too
    obfuscated: bool
    comparison: str | None  # the response whose prompt this one is compared with


@dataclass(frozen=True, slots=True)
class Read:
    """A body's conversation, with what it was read from."""

    conversation: Conversation
    box: Toolbox
    items: tuple[Json, ...]
    format: Format | None


def parse(fields: Fields, service: Service, caller: Caller, store: ResponseStore) -> Submission:
    """A `POST /v1/responses` body.  Raises `RequestError` for whatever is wrong with it."""
    _judge(fields, service)
    model = options.model(fields, service)
    stops = options.stop_strings(fields, "stop", service)
    included = _included(fields)
    logprobs = _logprobs(fields, included)
    base = options.request(fields, service, caller, stops=stops, logprobs=logprobs)
    read = conversation(fields, store, base.namespace)
    prompt = service.text.prompt(read.conversation, base.namespace)
    base = replace(base, grammar=service.text.grammar(read.format, read.conversation))
    cache = fields.object("prompt_cache_options") or Fields({}, "prompt_cache_options")
    prewarm = cache.flag("prewarm", False)
    limit = fields.integer("max_output_tokens", 1)
    return Submission(
        id=caller.id,
        created=caller.created,
        model=model,
        requests=options.fitted(base, [prompt], 0 if prewarm else limit, service, "input"),
        prompts=(prompt,),
        stops=stops,
        stream=fields.flag("stream", False),
        conversation=read.conversation,
        prefilled_only=prewarm,
        details=Details(
            echo=_echo(fields, base, logprobs),
            box=read.box,
            items=read.items,
            store=fields.flag("store", True),
            logprobs=logprobs is not None,
            sealed="reasoning.encrypted_content" in included,
            obfuscated=(fields.object("stream_options") or Fields({})).flag("include_obfuscation", False),
            comparison=cache.text("comparison_response_id"),
        ),
    )


def input_tokens(fields: Fields, service: Service, caller: Caller, store: ResponseStore) -> Json:
    """How many tokens the prompt of a body would have.  Raises `RequestError`."""
    _judge(fields, service)
    options.model(fields, service)
    base = options.request(fields, service, caller)
    read = conversation(fields, store, base.namespace)
    count = len(service.text.prompt(read.conversation, base.namespace).ids)
    return {"object": "response.input_tokens", "input_tokens": count}


def conversation(fields: Fields, store: ResponseStore, namespace: str) -> Read:
    """Everything the prompt is made of.  Raises `InvalidParameter`, or `UnknownPrevious`."""
    box = tools.toolbox(fields)
    before = _before(fields, store, namespace)
    new = [_resolved(path, item, store, namespace) for path, item in _input(fields)]
    given = [(f"previous[{i}]", item) for i, item in enumerate(before)] + new
    cache = caching(fields)
    found = (*_instructions(fields), *items.messages(given, box, cache))
    if not found:
        raise InvalidParameter("input is empty; send text or at least one item", param="input")
    effort = _effort(fields)
    return Read(
        conversation=Conversation(
            messages=cache.marked(found),
            tools=box.tools,
            choice=tools.choice(fields, box),
            thinking=None if effort is None else effort != "none",
            arguments={} if effort is None else {"reasoning_effort": effort},
        ),
        box=box,
        items=tuple(item for _, item in given),
        format=_format(fields),
    )


def _judge(fields: Fields, service: Service) -> None:
    options.judge_names(fields, KNOWN, service)
    for name, remedy in REFUSED.items():
        if fields.get(name):
            raise InvalidParameter(f"{name} is not supported here; {remedy}", param=name)
    if fields.text("truncation") not in (None, "auto", "disabled"):
        raise fields.wrong("truncation", '"auto" or "disabled"')
    for name in ("prompt_cache_key", "prompt_cache_retention", "safety_identifier", "user"):
        fields.text(name)
    for name, value in (metadata.values if (metadata := fields.object("metadata")) else {}).items():
        if not isinstance(value, str):
            raise InvalidParameter(f"metadata.{name} must be a string, not {shown(value)}", param=f"metadata.{name}")


def _input(fields: Fields) -> Sequence[tuple[str, Any]]:
    value = fields.get("input")
    if isinstance(value, str):
        text = {"type": "input_text", "text": value}
        return [("input", {"type": "message", "role": "user", "content": [text]})]
    if value is not None and not isinstance(value, list):
        raise fields.wrong("input", "a string or an array of items")
    return [(f"input[{i}]", item) for i, item in enumerate(value or ())]


def _before(fields: Fields, store: ResponseStore, namespace: str) -> Sequence[Json]:
    """The items of the response this one continues."""
    name = fields.text("previous_response_id")
    if name is None:
        return ()
    stored = store.get(name, namespace)
    if stored is None:
        raise UnknownPrevious(
            f"Previous response with id {shown(name)} not found; it was not stored, or is stored no longer: "
            "send its items",
            param="previous_response_id",
        )
    return (*stored.items, *stored.output)


def _resolved(path: str, item: Any, store: ResponseStore, namespace: str) -> tuple[str, Any]:
    """The item, or the one of a stored response that it refers to."""
    if not isinstance(item, dict) or (item.get("type") or "item_reference") != "item_reference" or "role" in item:
        return path, item
    name = Fields(item, path).text("id")
    found = None if name is None else store.item(name, namespace)
    if found is None:
        raise InvalidParameter(
            f"{path} refers to {shown(name)}, which is not stored; send the item", param=f"{path}.id"
        )
    return path, found


def _instructions(fields: Fields) -> Sequence[Message]:
    text = fields.text("instructions")
    return () if text is None else (Message("system", (Part(text, "instructions"),), path="instructions"),)


def _effort(fields: Fields) -> str | None:
    reasoning = fields.object("reasoning")
    if reasoning is None:
        return None
    if reasoning.text("summary") not in (None, *SUMMARIES):
        raise reasoning.wrong("summary", "one of " + ", ".join(SUMMARIES))
    effort = reasoning.text("effort")
    if effort not in (None, *EFFORTS):
        raise reasoning.wrong("effort", "one of " + ", ".join(EFFORTS))
    return effort


def _format(fields: Fields) -> Format | None:
    text = fields.object("text")
    if text is None:
        return None
    if text.text("verbosity") not in (None, "low", "medium", "high"):
        raise text.wrong("verbosity", '"low", "medium" or "high"')
    format = text.object("format")
    match None if format is None else format.get("type"):
        case "json_object":
            return AnyJson()
        case "json_schema":
            assert format is not None
            return _schema(format)
        case "text":
            return None
        case _ if format is None:
            return None
    raise format.wrong("type", '"text", "json_object" or "json_schema"')


def _schema(format: Fields) -> JsonSchema:
    if not format.text("name"):
        raise format.wrong("name", "a name for the schema")
    format.flag("strict", False)
    schema = format.object("schema")
    if schema is None:
        raise format.wrong("schema", "a JSON schema")
    return JsonSchema(schema.values, format.at("schema"))


def _included(fields: Fields) -> frozenset[str]:
    found = fields.array("include") or ()
    for index, value in enumerate(found):
        if not isinstance(value, str) or value not in INCLUDED | HOSTED_RESULTS:
            known = ", ".join(sorted(INCLUDED))
            raise InvalidParameter(
                f"include[{index}] must be one of {known}, not {shown(value)}", param=f"include[{index}]"
            )
    return frozenset(found)


def _logprobs(fields: Fields, included: frozenset[str]) -> int | None:
    """How many alternatives beside each token, None where log-probabilities were not asked for."""
    top = fields.integer("top_logprobs", 0, TOP_LOGPROBS) or 0
    return top if top or "message.output_text.logprobs" in included else None


def _echo(fields: Fields, base: Request, logprobs: int | None) -> Json:
    """What a `Response` says of its request.  `truncation` is what is done: nothing is ever dropped."""
    reasoning: Mapping[str, Any] = fields.get("reasoning") or {}
    text: Mapping[str, Any] = fields.get("text") or {}
    repeated = {name: fields.get(name) for name in REPEATED if fields.get(name) is not None}
    return {
        "background": False,
        "instructions": fields.get("instructions"),
        "max_output_tokens": fields.get("max_output_tokens"),
        "max_tool_calls": fields.get("max_tool_calls"),
        "metadata": {},
        "parallel_tool_calls": fields.flag("parallel_tool_calls", True),
        "previous_response_id": fields.get("previous_response_id"),
        "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
        "service_tier": "default",
        "store": fields.flag("store", True),
        "temperature": base.sampling.temperature,
        "text": {"format": text.get("format") or {"type": "text"}, "verbosity": text.get("verbosity") or "medium"},
        "tool_choice": fields.get("tool_choice") or "auto",
        "tools": list(fields.array("tools") or ()),
        "top_logprobs": logprobs or 0,
        "top_p": base.sampling.top_p,
        "truncation": "disabled",
        "user": None,
        **repeated,
    }
