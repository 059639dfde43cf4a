"""Judges a `/v1/completions` body and turns it into a submission: plain prompts, as text or as token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from twostroke.errors import InvalidParameter
from twostroke.serve import options
from twostroke.serve.fields import Fields, ids
from twostroke.serve.openai import names
from twostroke.serve.openai.details import details, limit, prediction, prompt_logprobs, user_id
from twostroke.serve.openai.structure import structure
from twostroke.serve.service import Service
from twostroke.serve.submission import Caller, Submission
from twostroke.text.prompt import Prompt

MOST_LOGPROBS = 20  # OpenAI takes 5
Given = str | list[int]


def parse(fields: Fields, service: Service, caller: Caller) -> Submission:
    """The submission of a body.  Raises `RequestError` for whatever is wrong with it."""
    names.judge(fields, names.TEXT, service)
    model, stream = options.model(fields, service), fields.flag("stream", False)
    given, suffix, echo = _given(fields), fields.text("suffix"), fields.flag("echo", False)
    if suffix and echo:
        raise InvalidParameter("echo would tear prompt and suffix apart; leave one of them out", param="echo")
    prompts = tuple(Prompt(tuple(_ids(one, suffix, service))) for one in given)
    logprobs, scores = fields.integer("logprobs", 0, MOST_LOGPROBS), prompt_logprobs(fields, stream=stream)
    stops, most = options.stop_strings(fields, "stop", service), limit(fields, "max_tokens")
    found = details(fields, service, stream=stream)
    base = options.request(
        fields,
        service,
        caller,
        stops=stops,
        choices=_choices(fields, service, len(prompts)),
        logprobs=logprobs,
        prediction=prediction(fields, service),
        salt=user_id(fields),
    )
    echoed = [value for value in (scores, logprobs if echo else None) if value is not None]
    base = replace(
        base,
        grammar=service.text.grammar(structure(fields), None),
        prompt_logprobs=max(echoed, default=None),
    )
    return Submission(
        id=caller.id,
        created=caller.created,
        model=model,
        requests=options.fitted(base, prompts, most, service, "prompt"),
        prompts=prompts,
        stops=stops,
        stream=stream,
        prefilled_only=most == 0,
        details=replace(
            found,
            logprobs=logprobs is not None,
            echo=tuple(_text(one, service) for one in given) if echo else (),
        ),
    )


def _choices(fields: Fields, service: Service, prompts: int) -> int:
    choices, best = options.choices(fields, service, prompts), fields.integer("best_of", 1)
    if best not in (None, choices):
        raise InvalidParameter(
            f"best_of is {best} and n is {choices}: answers are not ranked here; leave best_of out", param="best_of"
        )
    return choices


def _given(fields: Fields) -> Sequence[Given]:
    """One prompt or several, each text or token ids."""
    prompt = fields.get("prompt")
    if isinstance(prompt, str) or (ids(prompt) and prompt):
        return [prompt]
    several = prompt if isinstance(prompt, list) else []
    if several and (all(isinstance(item, str) for item in several) or all(ids(item) for item in several)):
        return several
    raise fields.wrong("prompt", "a string, an array of strings, an array of token ids, or an array of such arrays")


def _ids(prompt: Given, suffix: str | None, service: Service) -> Sequence[int]:
    if suffix:
        if not isinstance(prompt, str):
            raise InvalidParameter("suffix needs a prompt of text; send the prompt as a string", param="suffix")
        return service.text.infill(prompt, suffix)
    found = service.text.encode(prompt) if isinstance(prompt, str) else prompt
    if not found:
        raise InvalidParameter("prompt is empty; send at least one token", param="prompt")
    for token in found:
        if not 0 <= token < service.text.vocabulary:
            raise InvalidParameter(
                f"prompt holds the token id {token}; ids go from 0 to {service.text.vocabulary - 1}", param="prompt"
            )
    return found


def _text(prompt: Given, service: Service) -> str:
    """The prompt as the answer repeats it."""
    if isinstance(prompt, str):
        return prompt
    return b"".join(service.text.piece(token) for token in prompt).decode("utf-8", "replace")
