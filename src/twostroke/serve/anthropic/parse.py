"""Judges a Messages body and turns it into a submission.

Every field is understood, known to change nothing, or refused by name.  Knows nothing about HTTP or the engine.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from twostroke.errors import InvalidParameter, PromptTooLong
from twostroke.serve import options
from twostroke.serve.anthropic.diagnostics import Fingerprint, fingerprint
from twostroke.serve.anthropic.errors import UnsupportedThread
from twostroke.serve.anthropic.markers import Markers
from twostroke.serve.anthropic.messages import messages, system
from twostroke.serve.anthropic.tools import tools
from twostroke.serve.fields import Fields, shown
from twostroke.serve.service import Service
from twostroke.serve.submission import Caller, Json, Submission
from twostroke.text.conversation import Conversation, Message
from twostroke.text.formats import JsonSchema
from twostroke.text.prompt import Prompt

log = logging.getLogger("twostroke.http")

PROMPT = frozenset(
    {"messages", "system", "tools", "tool_choice", "thinking", "output_config", "output_format", "cache_control"}
)
ANSWER = frozenset({"max_tokens", "stop_sequences", "stream", "metadata", "diagnostics", "context_management"})
HARMLESS = frozenset({"service_tier", "speed", "inference_geo"})  # whose machine answers, and when
NEEDS_SERVERS = ("container", "mcp_servers")
KNOWN = options.READ | PROMPT | ANSWER | HARMLESS | frozenset(NEEDS_SERVERS) | {"thread"}
THINKING = {"adaptive": None, "enabled": True, "disabled": False}
EFFORTS = ("low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Details:
    """What the writer needs beside the submission."""

    limit: int  # max_tokens as the client sent it
    thoughts: bool = True  # the client wants to read them
    edits: bool = False  # the client asked for context management
    previous: str | None = None  # the message whose prompt this one is compared with
    made_of: Fingerprint | None = None  # where the client asked for diagnostics


def parse(fields: Fields, service: Service, caller: Caller) -> Submission:
    """A judged Messages body.  Raises `RequestError`."""
    options.judge_names(fields, KNOWN, service)
    _check_harmless(fields)
    limit = fields.integer("max_tokens", 0)
    if limit is None:
        raise fields.wrong("max_tokens", "an integer ≥ 0")
    model = options.model(fields, service)
    talk = conversation(fields)
    shape = _format(fields, talk)
    if limit == 0:
        _check_prewarm(fields, talk, shape)
    stops = options.stop_strings(fields, "stop_sequences", service)
    base = options.request(fields, service, caller, stops=stops)
    base = replace(base, grammar=service.text.grammar(shape, talk))
    prompt = _prompt(talk, base.namespace, service)
    return Submission(
        id=caller.id,
        created=caller.created,
        model=model,
        requests=options.fitted(base, [prompt], limit, service, "messages"),
        prompts=(prompt,),
        stops=stops,
        stream=fields.flag("stream", False),
        conversation=talk,
        prefilled_only=limit == 0,
        details=_details(fields, limit, model, talk, prompt),
    )


def count(fields: Fields, service: Service, caller: Caller) -> Json:
    """The body of an answer to `count_tokens`: the tokens of the prompt that these fields make."""
    options.judge_names(fields, KNOWN, service)
    _check_harmless(fields)
    options.model(fields, service)
    talk = conversation(fields)
    _format(fields, talk)
    namespace = options.request(fields, service, caller).namespace
    return {"input_tokens": len(service.text.prompt(talk, namespace).ids)}


def conversation(fields: Fields) -> Conversation:
    """What the prompt is rendered from.  Raises `InvalidParameter`."""
    markers = Markers()  # reads in the order of the prompt: tools, system, messages
    known, choice = tools(fields, markers)
    said = (*system(fields, markers), *messages(fields, markers))
    said = markers.automatic(fields, _without_empty_end(said))
    thinking, effort = _thinking(fields), _effort(fields)
    return Conversation(
        messages=said,
        tools=known,
        choice=choice,
        thinking=thinking,
        arguments={"reasoning_effort": effort} if effort else {},
        continue_final=_continues(said),
    )


def _without_empty_end(said: tuple[Message, ...]) -> tuple[Message, ...]:
    """An assistant's last message that says nothing is where the answer begins anyway."""
    last = said[-1]
    return said[:-1] if last.role == "assistant" and len(said) > 1 and not (last.parts or last.reasoning) else said


def _continues(said: tuple[Message, ...]) -> bool:
    """Whether the last message is the beginning of the answer."""
    last = said[-1]
    if last.role != "assistant":
        return False
    if not last.text:
        raise InvalidParameter(f"{last.path} holds no text that an answer could continue; send some", param=last.path)
    if last.text != last.text.rstrip():
        raise InvalidParameter(
            f"{last.path} ends with white space, and an answer cannot continue there; remove it", param=last.path
        )
    return True


def _thinking(fields: Fields) -> bool | None:
    """Whether to think.  A budget is a wish: `max_tokens` bounds thoughts and words together."""
    thinking = fields.object("thinking")
    if thinking is None:
        return None
    kind = thinking.get("type")
    if kind not in THINKING:
        raise thinking.wrong("type", "one of " + ", ".join(THINKING))
    thinking.integer("budget_tokens", 1)
    if thinking.get("display") not in (None, "summarized", "omitted"):
        raise thinking.wrong("display", "one of summarized, omitted")
    return THINKING[kind]


def _effort(fields: Fields) -> str | None:
    config = fields.object("output_config")
    effort = config.text("effort") if config else None
    if config is not None and effort not in (None, *EFFORTS):
        raise config.wrong("effort", "one of " + ", ".join(EFFORTS))
    return effort


def _format(fields: Fields, talk: Conversation) -> JsonSchema | None:
    """The schema of `output_config.format`, or of `output_format` as it was called before."""
    config = fields.object("output_config")
    shape = (config.object("format") if config else None) or fields.object("output_format")
    if shape is None:
        return None
    if shape.get("type") != "json_schema":
        raise shape.wrong("type", '"json_schema"')
    schema = shape.object("schema")
    if schema is None:
        raise shape.wrong("schema", "a JSON schema")
    for wrong, what in (
        (talk.choice.mode == "required", "tool_choice forces a call"),
        (talk.continue_final, f"{talk.messages[-1].path} begins the answer"),
    ):
        if wrong:
            raise InvalidParameter(f"{shape.path} is set and {what}; choose one of the two", param=shape.path)
    return JsonSchema(schema.values, schema.path)


def _check_prewarm(fields: Fields, talk: Conversation, shape: JsonSchema | None) -> None:
    """A request for no token only fills the cache: nothing may be asked of its answer."""
    for wrong, name in (
        (fields.flag("stream", False), "stream"),
        (talk.thinking is True, "thinking"),
        (talk.choice.mode == "required", "tool_choice"),
        (shape is not None, "output_config.format"),
    ):
        if wrong:
            raise InvalidParameter(
                f"max_tokens is 0, which answers nothing, and {name} asks something of the answer; leave {name} out",
                param=name,
            )


def _check_harmless(fields: Fields) -> None:
    """Judge what changes no token, and refuse what only Anthropic's own servers can do."""
    for name in NEEDS_SERVERS:
        if fields.get(name):
            raise InvalidParameter(f"{name} is not supported here; leave it out", param=name)
    if fields.get("thread") is not None:
        raise UnsupportedThread
    # Agents put a hash of account and session here.  It does not narrow whom a request shares its cache with: the
    # prompt of every new session would start cold.  The API key and `cache_salt` do.
    metadata = fields.object("metadata")
    if metadata is not None:
        metadata.text("user_id")
    management = fields.object("context_management")
    for edit in (management.array("edits") or ()) if management else ():
        _judge_edit(edit)


def _judge_edit(edit: Any) -> None:
    """Nothing is edited here: the client's messages are the prompt."""
    if not (isinstance(edit, Mapping) and edit.get("keep") == "all"):
        log.warning("the context edit %s is ignored: messages are read as they were sent", shown(edit))


def _prompt(talk: Conversation, namespace: str, service: Service) -> Prompt:
    prompt = service.text.prompt(talk, namespace)
    most = service.context - 1
    if len(prompt.ids) > most:  # the words by which agents know that it is time to compact
        raise PromptTooLong(
            f"prompt is too long: {len(prompt.ids)} tokens > {most} maximum; shorten the messages or start the server "
            "with a larger --context",
            param="messages",
        )
    return prompt


def _details(fields: Fields, limit: int, model: str, talk: Conversation, prompt: Prompt) -> Details:
    thinking, compared = fields.object("thinking"), fields.object("diagnostics")
    previous = compared.text("previous_message_id") if compared else None
    return Details(
        limit=limit,
        thoughts=thinking is None or thinking.get("display") != "omitted",
        edits=fields.get("context_management") is not None,
        previous=previous,
        made_of=fingerprint(model, talk, prompt) if compared else None,
    )
