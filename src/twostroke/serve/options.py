"""What a client may choose in every wire format: the model, sampling, the two switches, whom it shares a cache with.

Formats read their own fields (messages, limits, stop strings) themselves.  An unknown field is ignored and logged, or
refused under `--strict`; a known one that cannot be honoured is always an error.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from difflib import get_close_matches

from twostroke.config import ANY_MODEL, OPTIONS
from twostroke.errors import InvalidParameter, PromptTooLong, UnknownModel
from twostroke.serve.fields import Fields, ids, shown
from twostroke.serve.service import Service
from twostroke.serve.submission import Caller
from twostroke.speculate.prediction import check_prediction
from twostroke.text.prompt import Prompt
from twostroke.types import Request, Retention, Sampling

log = logging.getLogger("twostroke.http")

MAX_CHOICES = 128
MAX_SALT = 128  # characters
MIN_REPETITION = 0.01  # smaller divisors take logits out of their range
MAX_NAME = 64  # characters of an unknown field's name that are repeated
MAX_LOGGED = 8  # unknown fields of a body that the log names
TOKEN_ID = re.compile("[0-9]{1,10}")
SAMPLING = frozenset(
    {
        "temperature", "top_k", "top_p", "min_p", "seed", "presence_penalty", "frequency_penalty",
        "repetition_penalty", "logit_bias", "min_tokens",
    }
)  # fmt: skip
OURS = frozenset({"prefix_cache", "cache_prompt", "speculate", "draft_tokens", "cache_salt", "priority"})
ENDS = frozenset({"stop_token_ids", "ignore_eos"})
READ = SAMPLING | OURS | ENDS | {"model"}  # what `request` and `model` read


def judge_names(fields: Fields, known: Collection[str], service: Service) -> None:
    """Log the fields nobody here knows.  Raises `InvalidParameter` for one under `--strict`."""
    unknown = [name for name, value in fields.values.items() if name not in known and value is not None]
    if not unknown:
        return
    if service.settings.strict:
        name = unknown[0]
        near = get_close_matches(name[:MAX_NAME], known, n=2, cutoff=0.7)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        where = fields.at(name)[:MAX_NAME]
        raise InvalidParameter(f"Unrecognized request argument supplied: {where}{hint}", param=name[:MAX_NAME])
    named = ", ".join(shown(fields.at(name)) for name in unknown[:MAX_LOGGED])
    more = f" and {len(unknown) - MAX_LOGGED} more" if len(unknown) > MAX_LOGGED else ""
    log.warning("unknown fields are ignored: %s%s; --strict refuses them", named, more)


def model(fields: Fields, service: Service) -> str:
    """The model by the client's name for it.  Raises `UnknownModel`."""
    name = fields.text("model")
    if name is None:
        return service.models[0]
    if name not in service.models and ANY_MODEL not in service.models:
        have = ", ".join(service.models)
        raise UnknownModel(f"the model {shown(name)} does not exist here; available: {have}", param="model")
    return name


def request(
    fields: Fields,
    service: Service,
    caller: Caller,
    *,
    stops: Sequence[str] = (),
    choices: int = 1,
    logprobs: int | None = None,
    prediction: tuple[int, ...] = (),
    salt: str | None = None,
) -> Request:
    """A request without its prompt and limit (see `fitted`), read from the fields in `READ`.

    `salt` narrows whom it shares with further: a format's own field for that.  Raises `RequestError`.
    """
    own = frozenset() if fields.flag("ignore_eos", False) else service.text.end_ids
    stop_ids = own | frozenset(_token_ids(fields, "stop_token_ids", service))
    return Request(
        id=caller.id,
        prompt=(),
        max_tokens=0,
        sampling=_sampling(fields, service, stop_ids, logprobs),
        choices=choices,
        stop_ids=stop_ids,
        stop=service.text.stop(stops),
        namespace=service.tenants.namespace(caller.key, _salt(fields), salt),
        prefix_cache=fields.flag("prefix_cache", fields.flag("cache_prompt", service.settings.prefix_cache)),
        speculate=_speculate(fields, service, bool(prediction)),
        draft_tokens=fields.integer("draft_tokens", 0, int(OPTIONS["draft_tokens"].high or 0)),
        prediction=prediction,
        priority=fields.integer("priority", -(2**63), 2**63 - 1) or 0,
        arrived_s=caller.arrived_s,
    )


def fitted(
    base: Request, prompts: Sequence[Prompt], limit: int | None, service: Service, param: str
) -> tuple[Request, ...]:
    """One request per prompt: an answer ends at `limit` or at the context, whichever comes first.

    A limit of 0 computes the prompt (and one token, which `Submission.prefilled_only` hides).  Breakpoints become
    lifetimes.  Raises `PromptTooLong`.
    """
    return tuple(_fitted(base, prompt, place, limit, service, param) for place, prompt in enumerate(prompts))


def _fitted(base: Request, prompt: Prompt, place: int, limit: int | None, service: Service, param: str) -> Request:
    room = service.context - len(prompt.ids)
    if room < 1:
        raise PromptTooLong(
            f"the prompt has {len(prompt.ids)} tokens and the context is {service.context}, of which the answer needs "
            "at least one; shorten the prompt or start the server with a larger --context",
            param=param,
        )
    wanted = service.settings.max_tokens or room if limit is None else max(limit, 1)
    return replace(
        base,
        id=f"{base.id}-{place}" if place else base.id,
        prompt=prompt.ids,
        max_tokens=min(wanted, room),
        retain=tuple(Retention(part.end, part.ttl_s) for part in prompt.parts if part.ttl_s),
    )


def choices(fields: Fields, service: Service, prompts: int) -> int:
    """`n`, no more than the queue holds."""
    wanted = fields.integer("n", 1, MAX_CHOICES) or 1
    if wanted * prompts > service.settings.max_queue:
        raise InvalidParameter(
            f"{prompts} prompts × n = {wanted} exceed the queue of {service.settings.max_queue}; ask for fewer",
            param="n",
        )
    return wanted


def stop_strings(fields: Fields, name: str, service: Service) -> tuple[str, ...]:
    """A string or any number of them; the server's own where the field is absent."""
    value = fields.get(name)
    if value is None:
        return service.settings.stop
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(s, str) and s for s in stops):
        raise fields.wrong(name, "a string or an array of strings, none of them empty")
    return tuple(stops)


def prediction(fields: Fields, text: str | None, service: Service) -> tuple[int, ...]:
    """The tokens of text that the client expects."""
    if text is None:
        return ()
    return check_prediction(service.text.encode(text, bos=False), service.context)


def _sampling(fields: Fields, service: Service, stop_ids: frozenset[int], logprobs: int | None) -> Sampling:
    defaults = service.settings
    temperature = fields.number("temperature", 0, 100)
    top_k, top_p, min_p = (
        fields.integer("top_k", -1),
        fields.number("top_p", 0, 1),
        fields.number("min_p", 0, 1),
    )
    ordinary = 1.0 if defaults.temperature is None else defaults.temperature
    least = fields.integer("min_tokens", 0) or 0
    return Sampling(
        temperature=ordinary if temperature is None else temperature,
        top_k=defaults.top_k if top_k is None else min(max(top_k, 0), service.text.vocabulary),
        top_p=defaults.top_p if top_p is None else max(top_p, 1e-6),
        min_p=defaults.min_p if min_p is None else min_p,
        seed=_seed(fields, defaults.seed),
        logprobs=logprobs,
        presence_penalty=fields.number("presence_penalty", -2, 2) or 0.0,
        frequency_penalty=fields.number("frequency_penalty", -2, 2) or 0.0,
        repetition_penalty=fields.number("repetition_penalty", MIN_REPETITION, 100) or 1.0,
        bias=_bias(fields, service),
        min_tokens=least,
        withheld=tuple(sorted(stop_ids)) if least else (),
    )


def _bias(fields: Fields, service: Service) -> tuple[tuple[int, float], ...]:
    given = fields.object("logit_bias")
    if given is None:
        return ()
    found: dict[int, float] = {}
    for name in given.values:
        if not TOKEN_ID.fullmatch(name) or not int(name) < service.text.vocabulary:
            raise InvalidParameter(
                f"logit_bias names the token {shown(name)}; give token ids of 0 to {service.text.vocabulary - 1}",
                param=given.at(name),
            )
        found[int(name)] = given.number(name, -100, 100) or 0.0
    return tuple(sorted(found.items()))


def _seed(fields: Fields, default: int | None) -> int:
    seed = fields.integer("seed", -(2**63), 2**63 - 1)
    seed = default if seed is None else seed
    return random.getrandbits(63) if seed is None else seed % 2**63


def _token_ids(fields: Fields, name: str, service: Service) -> Sequence[int]:
    value = fields.get(name)
    if value is None:
        return ()
    if not ids(value) or not all(0 <= token < service.text.vocabulary for token in value):
        raise fields.wrong(name, f"an array of token ids of 0 to {service.text.vocabulary - 1}")
    return list(value)


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
