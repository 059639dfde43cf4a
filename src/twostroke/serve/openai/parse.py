"""Judges a chat or text completion body and turns it into requests.

Every field is either understood, known to change nothing, or refused by name: a field that would change the answer and
is not built yet is an error, never ignored.  Knows nothing about HTTP, threads or the engine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from twostroke.config import OPTIONS
from twostroke.errors import InvalidParameter, PromptTooLong, UnknownModel
from twostroke.serve.fields import Fields, ids, shown
from twostroke.serve.service import Service
from twostroke.speculate.prediction import check_prediction
from twostroke.types import Request, Sampling

MAX_STOPS = 4
MAX_CHOICES = 128
MAX_SALT = 128  # characters


@dataclass(frozen=True, slots=True)
class Caller:
    """What the server knows of a request before it reads the body."""

    id: str  # unique; the request's own name
    key: str = ""  # the API key that was sent, "" where none is required
    arrived_s: float = 0.0
    created: int = 0  # Unix time


@dataclass(frozen=True, slots=True)
class Ask:
    """A judged body: the requests to submit, and how their answer is to be written."""

    chat: bool
    id: str
    created: int
    model: str
    requests: tuple[Request, ...]  # one per prompt
    stops: tuple[str, ...]
    echo: tuple[str, ...]  # text put before the answers, one per prompt
    stream: bool
    include_usage: bool
    logprobs: int | None  # alternatives to report beside each token; None: report nothing

    @property
    def choices(self) -> int:
        """Continuations of each prompt."""
        return self.requests[0].choices


def _only(*values: Any) -> Callable[[Any], bool]:
    return lambda value: any(value == v and isinstance(value, bool) == isinstance(v, bool) for v in values)


def _has(name: str, *values: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and value.get(name) in values


NOT_BUILT: Mapping[str, Callable[[Any], bool]] = {  # the values of each that ask for nothing
    "audio": _only(),
    "chat_template_kwargs": _only({}),
    "continue_final_message": _only(False),
    "frequency_penalty": _only(0),
    "function_call": _only("none", "auto"),
    "functions": _only([]),
    "logit_bias": _only({}),
    "min_tokens": _only(0),
    "modalities": _only(["text"]),
    "moderation": _only(),
    "presence_penalty": _only(0),
    "priority": _only(0),
    "prompt_cache_options": _has("mode", None, "implicit"),
    "prompt_logprobs": _only(),
    "reasoning_effort": _only("none"),
    "repetition_penalty": _only(1),
    "response_format": _has("type", "text"),
    "structured_outputs": _only(),
    "suffix": _only(""),
    "tool_choice": _only("none", "auto"),
    "tools": _only([]),
    "verbosity": _only("medium"),
    "web_search_options": _only(),
}
HARMLESS = frozenset(
    {
        "metadata", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
        "service_tier", "store", "user",
    }
)  # fmt: skip
COMMON = frozenset(
    {
        "model", "max_tokens", "n", "seed", "stop", "stop_token_ids", "ignore_eos", "stream", "stream_options",
        "temperature", "top_k", "top_p", "min_p", "logprobs", "prefix_cache", "speculate", "draft_tokens", "prediction",
        "cache_salt",
    }
)  # fmt: skip
CHAT = COMMON | {"messages", "max_completion_tokens", "top_logprobs"}
TEXT = COMMON | {"prompt", "echo", "best_of"}
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
EMPTY_IN_MESSAGES = frozenset({"refusal", "annotations", "audio", "function_call", "tool_calls"})


def chat(fields: Fields, service: Service, caller: Caller) -> Ask:
    """A `/v1/chat/completions` body.  Raises `RequestError` for whatever is wrong with it."""
    _known(fields, CHAT)
    prompt = tuple(service.text.chat(_messages(fields)))
    wanted = fields.flag("logprobs", False)
    top = fields.integer("top_logprobs", 0, 20)
    if top is not None and not wanted:
        raise InvalidParameter("top_logprobs needs logprobs to be true", param="top_logprobs")
    limit = _first(fields, "max_completion_tokens", "max_tokens")
    return _ask(fields, service, caller, [prompt], limit, logprobs=top or 0 if wanted else None)


def completion(fields: Fields, service: Service, caller: Caller) -> Ask:
    """A `/v1/completions` body.  Raises `RequestError` for whatever is wrong with it."""
    _known(fields, TEXT)
    given = _prompts(fields)
    prompts = [tuple(service.text.encode(p) if isinstance(p, str) else _judged(p, service)) for p in given]
    for prompt in prompts:
        if not prompt:
            raise InvalidParameter("prompt is empty; send at least one token", param="prompt")
    echo = fields.flag("echo", False)
    logprobs = fields.integer("logprobs", 0, 5)
    if echo and logprobs is not None:
        raise InvalidParameter("echo together with logprobs is not supported yet; leave one out", param="echo")
    best = fields.integer("best_of", 1)
    if best is not None and best != (fields.integer("n", 1) or 1):
        raise InvalidParameter("best_of other than n is not supported yet; leave it out", param="best_of")
    texts = tuple((p if isinstance(p, str) else _decoded(p, service)) if echo else "" for p in given)
    limit = _first(fields, "max_tokens")
    return replace(_ask(fields, service, caller, prompts, limit, logprobs=logprobs), echo=texts)


def _known(fields: Fields, understood: frozenset[str]) -> None:
    for name, value in fields.values.items():
        if name in understood or name in HARMLESS or value is None:
            continue
        if name not in NOT_BUILT:
            near = get_close_matches(name, understood, n=2, cutoff=0.7)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise InvalidParameter(f"Unrecognized request argument supplied: {name}{hint}", param=name)
        if not NOT_BUILT[name](value):
            raise InvalidParameter(f"{name} = {shown(value)} is not supported yet; leave {name} out", param=name)


def _ask(
    fields: Fields,
    service: Service,
    caller: Caller,
    prompts: Sequence[tuple[int, ...]],
    limit: int | None,
    *,
    logprobs: int | None,
) -> Ask:
    chat, prediction = "messages" in fields.values, _prediction(fields, service)
    stops = _stops(fields, service)
    stream = fields.flag("stream", False)
    base = Request(
        id=caller.id,
        prompt=(),
        max_tokens=0,
        sampling=_sampling(fields, service, logprobs),
        choices=_choices(fields, service, len(prompts)),
        stop_ids=_stop_ids(fields, service),
        stop=service.text.stop(stops),
        namespace=service.tenants.namespace(caller.key, _salt(fields)),
        prefix_cache=fields.flag("prefix_cache", service.settings.prefix_cache),
        speculate=_speculate(fields, service, bool(prediction)),
        draft_tokens=fields.integer("draft_tokens", 0, int(OPTIONS["draft_tokens"].high or 0)),
        prediction=prediction,
        arrived_s=caller.arrived_s,
    )
    return Ask(
        chat=chat,
        id=caller.id,
        created=caller.created,
        model=_model(fields, service),
        requests=tuple(_fitted(base, prompt, i, limit, service, chat) for i, prompt in enumerate(prompts)),
        stops=stops,
        echo=("",) * len(prompts),
        stream=stream,
        include_usage=_include_usage(fields, stream),
        logprobs=logprobs,
    )


def _fitted(
    base: Request, prompt: tuple[int, ...], place: int, limit: int | None, service: Service, chat: bool
) -> Request:
    """The request for one prompt: an answer ends at its limit or at the context, whichever comes first."""
    room = service.context - len(prompt)
    if room < 1:
        raise PromptTooLong(
            f"the prompt has {len(prompt)} tokens and the context is {service.context}, of which the answer needs at "
            "least one; shorten the prompt or start the server with a larger --context",
            param="messages" if chat else "prompt",
        )
    tokens = min(limit or service.settings.max_tokens or room, room)
    name = f"{base.id}-{place}" if place else base.id
    return replace(base, id=name, prompt=prompt, max_tokens=tokens)


def _model(fields: Fields, service: Service) -> str:
    name = fields.text("model")
    if name is None:
        return service.models[0]
    if name not in service.models:
        have = ", ".join(service.models)
        raise UnknownModel(f"the model {shown(name)} does not exist here; available: {have}", param="model")
    return name


def _sampling(fields: Fields, service: Service, logprobs: int | None) -> Sampling:
    defaults = service.settings
    temperature = fields.number("temperature", 0, 100)
    top_k, top_p, min_p = (
        fields.integer("top_k", -1),
        fields.number("top_p", 0, 1, above=True),
        fields.number("min_p", 0, 1),
    )
    ordinary = 1.0 if defaults.temperature is None else defaults.temperature
    return Sampling(
        temperature=ordinary if temperature is None else temperature,
        top_k=defaults.top_k if top_k is None else max(top_k, 0),
        top_p=defaults.top_p if top_p is None else top_p,
        min_p=defaults.min_p if min_p is None else min_p,
        seed=_seed(fields, defaults.seed),
        logprobs=logprobs,
    )


def _seed(fields: Fields, default: int | None) -> int:
    seed = fields.integer("seed", -(2**63), 2**63 - 1)
    seed = default if seed is None else seed
    return random.getrandbits(63) if seed is None else seed % 2**63


def _choices(fields: Fields, service: Service, prompts: int) -> int:
    choices = fields.integer("n", 1, MAX_CHOICES) or 1
    if choices * prompts > service.settings.max_queue:
        raise InvalidParameter(
            f"{prompts} prompts × n = {choices} exceed the queue of {service.settings.max_queue}; ask for fewer",
            param="n",
        )
    return choices


def _stops(fields: Fields, service: Service) -> tuple[str, ...]:
    value = fields.get("stop")
    if value is None:
        return service.settings.stop
    stops = [value] if isinstance(value, str) else value
    wanted = f"a string or up to {MAX_STOPS} strings, none of them empty"
    if not isinstance(stops, list) or len(stops) > MAX_STOPS or not all(isinstance(s, str) and s for s in stops):
        raise fields.wrong("stop", wanted)
    return tuple(stops)


def _stop_ids(fields: Fields, service: Service) -> frozenset[int]:
    more = fields.get("stop_token_ids")
    if more is not None and not ids(more):
        raise fields.wrong("stop_token_ids", "an array of token ids")
    own = frozenset() if fields.flag("ignore_eos", False) else service.text.end_ids
    return own | frozenset(more or ())


def _salt(fields: Fields) -> str | None:
    salt = fields.text("cache_salt")
    if salt is not None and not 0 < len(salt) <= MAX_SALT:
        raise fields.wrong("cache_salt", f"1 to {MAX_SALT} characters")
    return salt


def _speculate(fields: Fields, service: Service, predicted: bool) -> str | None:
    """The drafter that was asked for; where only one that ignores predictions would work, the one that reads them."""
    name = fields.text("speculate")
    if name is not None and name not in service.drafters:
        raise fields.wrong("speculate", "one of " + ", ".join(sorted(service.drafters)))
    deaf = service.settings.speculate not in ("off", "auto", "prediction")
    return "prediction" if name is None and predicted and deaf and "prediction" in service.drafters else name


def _prediction(fields: Fields, service: Service) -> tuple[int, ...]:
    prediction = fields.object("prediction")
    if prediction is None:
        return ()
    if prediction.get("type") != "content":
        raise prediction.wrong("type", '"content"')
    return check_prediction(service.text.encode(_content(prediction), bos=False), service.context)


def _include_usage(fields: Fields, stream: bool) -> bool:
    options = fields.object("stream_options")
    if options is None:
        return False
    if not stream:
        raise InvalidParameter("stream_options needs stream to be true", param="stream_options")
    for name, value in options.values.items():
        if name not in ("include_usage", "include_obfuscation"):
            raise InvalidParameter(
                f"Unrecognized request argument supplied: {options.at(name)}", param=options.at(name)
            )
        if name == "include_obfuscation" and value:
            raise InvalidParameter("include_obfuscation is not supported yet; leave it out", param=options.at(name))
    return options.flag("include_usage", False)


def _first(fields: Fields, *names: str) -> int | None:
    """The first of several names for one limit that is present."""
    found = [fields.integer(name, 1) for name in names]
    return next((value for value in found if value is not None), None)


def _messages(fields: Fields) -> list[dict[str, str]]:
    messages = fields.array("messages")
    if not messages:
        raise InvalidParameter("messages must hold at least one message", param="messages")
    return [_message(message, f"messages[{i}]") for i, message in enumerate(messages)]


def _message(value: Any, path: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise InvalidParameter(f"{path} must be an object with role and content, not {shown(value)}", param=path)
    message = Fields(value, path)
    role = message.text("role")
    if role in ("tool", "function"):
        raise InvalidParameter(f"{path}.role {shown(role)} is not supported yet", param=f"{path}.role")
    if role not in ROLES:
        raise message.wrong("role", "one of " + ", ".join(ROLES))
    for name, item in value.items():
        if name in ("role", "content", "name") or item is None or (name in EMPTY_IN_MESSAGES and item == []):
            continue
        raise InvalidParameter(f"{path}.{name} is not supported yet; leave it out", param=f"{path}.{name}")
    return {"role": ROLES[role], "content": _content(message)}


def _content(holder: Fields) -> str:
    """Text, or an array of text parts, one a line."""
    content = holder.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise holder.wrong("content", "a string or an array of text parts")
    return "\n".join(_part(part, f"{holder.at('content')}[{i}]") for i, part in enumerate(content))


def _part(value: Any, path: str) -> str:
    part = Fields(value if isinstance(value, dict) else {}, path)
    if part.get("type") not in ("text", None):
        raise InvalidParameter(f"{path}.type {shown(part.get('type'))} is not supported yet; send text", param=path)
    text = part.text("text")
    if part.get("type") is None or text is None:
        raise InvalidParameter(f'{path} must be {{"type": "text", "text": …}}, not {shown(value)}', param=path)
    return text


def _prompts(fields: Fields) -> list[str | list[int]]:
    """One prompt or several, each text or token ids."""
    prompt = fields.get("prompt")
    if isinstance(prompt, str) or (ids(prompt) and prompt):
        return [prompt]
    several = prompt if isinstance(prompt, list) else []
    if several and (all(isinstance(item, str) for item in several) or all(ids(item) for item in several)):
        return several
    raise fields.wrong("prompt", "a string, an array of strings, an array of token ids, or an array of such arrays")


def _judged(prompt: Sequence[int], service: Service) -> Sequence[int]:
    for token in prompt:
        if not 0 <= token < service.text.vocabulary:
            raise InvalidParameter(
                f"the prompt holds token id {token}; ids go from 0 to {service.text.vocabulary - 1}", param="prompt"
            )
    return prompt


def _decoded(prompt: Sequence[int], service: Service) -> str:
    return b"".join(service.text.piece(token) for token in prompt).decode("utf-8", "replace")
