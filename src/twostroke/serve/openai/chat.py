"""Judges a `/v1/chat/completions` body and turns it into a submission.

A field is understood, known to say nothing to a model, or refused by name.  Knows nothing about HTTP or the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from twostroke.errors import InvalidParameter
from twostroke.serve import options
from twostroke.serve.caching import KNOWN as CACHING
from twostroke.serve.caching import Caching, caching
from twostroke.serve.fields import Fields
from twostroke.serve.openai import names
from twostroke.serve.openai.details import TOP_LOGPROBS, details, limit, prediction, prompt_logprobs, user_id
from twostroke.serve.openai.messages import KNOWN as MESSAGE
from twostroke.serve.openai.messages import messages
from twostroke.serve.openai.structure import structure
from twostroke.serve.openai.tools import Toolbox, toolbox
from twostroke.serve.service import Service
from twostroke.serve.submission import Caller, Submission
from twostroke.text.conversation import Conversation, Message

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def parse(fields: Fields, service: Service, caller: Caller) -> Submission:
    """The submission of a body.  Raises `RequestError` for whatever is wrong with it."""
    names.judge(fields, names.CHAT, service)
    _judge_names(fields, service)
    model, stream = options.model(fields, service), fields.flag("stream", False)
    cache, box = caching(fields), toolbox(fields)
    logprobs = _logprobs(fields)
    stops = options.stop_strings(fields, "stop", service)
    most = 0 if cache.prewarm else limit(fields, "max_completion_tokens", "max_tokens")
    found = details(fields, service, stream=stream)
    asked = _conversation(fields, cache, box)
    base = options.request(
        fields,
        service,
        caller,
        stops=stops,
        choices=options.choices(fields, service, 1),
        logprobs=logprobs,
        prediction=prediction(fields, service),
        salt=user_id(fields),
    )
    shape, calls = structure(fields), asked.choice.mode == "required"
    base = replace(
        base,
        grammar=service.text.grammar(None if calls else shape, asked),  # a call has the tool's own shape
        prompt_logprobs=prompt_logprobs(fields, stream=stream),
    )
    prompts = (service.text.prompt(asked, base.namespace),)
    return Submission(
        id=caller.id,
        created=caller.created,
        model=model,
        requests=options.fitted(base, prompts, most, service, "messages"),
        prompts=prompts,
        stops=stops,
        stream=stream,
        conversation=asked,
        prefilled_only=most == 0,
        details=replace(found, logprobs=logprobs is not None, legacy=box.legacy, explicit=cache.explicit),
    )


def conversation(fields: Fields) -> Conversation:
    """The conversation of a chat body alone.  Raises `InvalidParameter`."""
    return _conversation(fields, caching(fields), toolbox(fields))


def _judge_names(fields: Fields, service: Service) -> None:
    """Log, or refuse under `--strict`, what nobody knows inside messages and options."""
    for i, value in enumerate(fields.array("messages") or ()):
        if isinstance(value, dict):
            options.judge_names(Fields(value, f"messages[{i}]"), MESSAGE, service)
    if (cache := fields.object("prompt_cache_options")) is not None:
        options.judge_names(cache, CACHING, service)


def _logprobs(fields: Fields) -> int | None:
    """How many alternatives to each token are reported; None reports nothing."""
    wanted = fields.flag("logprobs", False)
    top = fields.integer("top_logprobs", 0, TOP_LOGPROBS)
    if top and not wanted:
        raise InvalidParameter("top_logprobs needs logprobs to be true", param="top_logprobs")
    return (top or 0) if wanted else None


def _conversation(fields: Fields, cache: Caching, box: Toolbox) -> Conversation:
    found = cache.marked(messages(fields, cache))
    arguments = fields.object("chat_template_kwargs") or Fields({}, "chat_template_kwargs")
    return Conversation(
        messages=found,
        tools=box.tools,
        choice=box.choice,
        thinking=_thinking(fields, arguments),
        arguments=arguments.values,
        continue_final=_continues(fields, found),
    )


def _thinking(fields: Fields, arguments: Fields) -> bool | None:
    """Whether the model should think first, by whichever field says so; the template's own default without any."""
    effort = fields.text("reasoning_effort")
    if effort is not None and effort not in EFFORTS:
        raise fields.wrong("reasoning_effort", "one of " + ", ".join(EFFORTS))
    switch = fields.object("thinking")
    if switch is not None and switch.get("type") not in ("enabled", "disabled", "adaptive"):
        raise switch.wrong("type", "one of enabled, disabled, adaptive")
    own = arguments.get("enable_thinking")
    if isinstance(own, bool):
        return own
    if switch is not None and switch.get("type") != "adaptive":
        return bool(switch.get("type") == "enabled")
    return None if effort is None else effort != "none"


def _continues(fields: Fields, found: Sequence[Message]) -> bool:
    """Whether the last message is the beginning of the answer."""
    continues = fields.flag("continue_final_message", False)
    opens = fields.flag("add_generation_prompt", not continues)
    if continues and found[-1].role != "assistant":
        raise InvalidParameter(
            "continue_final_message needs the last message to be the assistant's", param="continue_final_message"
        )
    if continues == opens:
        raise InvalidParameter(
            "add_generation_prompt must be the opposite of continue_final_message; leave it out",
            param="add_generation_prompt",
        )
    return continues
