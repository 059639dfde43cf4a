"""Everything that is no answer of a model: what is served, how it is, tokens of a text, pages for people.

An endpoint is a function from what was asked to a reply; HTTP is the application's business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from twostroke.config import ANY_MODEL
from twostroke.errors import InvalidParameter, UnknownModel
from twostroke.serve import anthropic, openai, pages, responses
from twostroke.serve.fields import Fields, ids, shown
from twostroke.serve.formats import speaks_anthropic
from twostroke.serve.openapi import document
from twostroke.serve.responses import ResponseStore
from twostroke.serve.service import Service
from twostroke.serve.submission import Caller, Json

DIGITS = 9  # of a number in a query


@dataclass(frozen=True, slots=True)
class Asked:
    """A request without a model's answer."""

    service: Service
    store: ResponseStore
    key: str  # the API key, "" where none is required
    path: Mapping[str, str]  # parameters in the path …
    query: Mapping[str, str]  # … and behind it
    headers: Mapping[str, str]
    body: Fields

    @property
    def caller(self) -> Caller:
        return Caller("asked", self.key, headers=self.headers)

    @property
    def namespace(self) -> str:
        """Where the caller's responses are stored."""
        return self.service.tenants.namespace(self.key, self.body.text("cache_salt"), None)


@dataclass(frozen=True, slots=True)
class Reply:
    """A JSON object, or text of `media_type`."""

    body: Json | str
    status: int = 200
    media_type: str = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    answer: Callable[[Asked], Reply | Awaitable[Reply]]
    needs_key: bool = True

    @property
    def reads_body(self) -> bool:
        return self.method == "POST" and self.answer is not reset_prefix_cache


def routes() -> tuple[Route, ...]:
    """All of them."""
    return (
        Route("GET", "/v1/models", models),
        Route("GET", "/v1/models/{name:path}", model),
        Route("POST", "/v1/chat/completions/input_tokens", chat_tokens),
        Route("POST", "/v1/responses/input_tokens", response_tokens),
        Route("GET", "/v1/responses/{id}", response),
        Route("GET", "/v1/responses/{id}/input_items", response_items),
        Route("DELETE", "/v1/responses/{id}", forget_response),
        Route("POST", "/v1/messages/count_tokens", count_tokens),
        Route("POST", "/tokenize", tokenize),
        Route("POST", "/detokenize", detokenize),
        Route("POST", "/reset_prefix_cache", reset_prefix_cache),
        Route("GET", "/health", health, needs_key=False),
        Route("GET", "/metrics", metrics, needs_key=False),
        Route("GET", "/version", version, needs_key=False),
        Route("GET", "/", index, needs_key=False),
        Route("GET", "/docs", docs, needs_key=False),
        Route("GET", "/openapi.json", openapi, needs_key=False),
    )


def names(service: Service) -> tuple[str, ...]:
    """The names clients may use, without the one that stands for all."""
    return tuple(name for name in service.models if name != ANY_MODEL)


def models(asked: Asked) -> Reply:
    service = asked.service
    if speaks_anthropic(asked.headers):
        return Reply(anthropic.models(names(service), service.created, service.context))
    cards = [openai.card(name, service.created, service.context) for name in names(service)]
    return Reply({"object": "list", "data": cards})


def model(asked: Asked) -> Reply:
    """One model.  Raises `UnknownModel`."""
    service, name = asked.service, asked.path["name"]
    if name not in service.models and ANY_MODEL not in service.models:
        have = ", ".join(names(service))
        raise UnknownModel(f"the model {shown(name)} does not exist here; available: {have}", param="model")
    card = anthropic.model_card if speaks_anthropic(asked.headers) else openai.card
    return Reply(card(name, service.created, service.context))


def count_tokens(asked: Asked) -> Reply:
    return Reply(anthropic.count(asked.body, asked.service, asked.caller))


def chat_tokens(asked: Asked) -> Reply:
    """llama.cpp's count of a chat's prompt."""
    prompt = asked.service.text.prompt(openai.conversation(asked.body), asked.namespace)
    return Reply({"object": "response.input_tokens", "input_tokens": len(prompt.ids)})


def response_tokens(asked: Asked) -> Reply:
    return Reply(responses.input_tokens(asked.body, asked.service, asked.caller, asked.store))


def response(asked: Asked) -> Reply:
    return Reply(responses.get(asked.path["id"], asked.namespace, asked.store))


def response_items(asked: Asked) -> Reply:
    """A page of a stored response's input.  Raises `InvalidParameter`."""
    limit = asked.query.get("limit", str(responses.PAGE))
    if not limit.isdecimal() or len(limit) > DIGITS:
        raise InvalidParameter(f"limit must be a number, not {shown(limit)}", param="limit")
    page = responses.input_items(
        asked.path["id"],
        asked.namespace,
        asked.store,
        after=asked.query.get("after"),
        limit=int(limit),
        order=asked.query.get("order", "desc"),
    )
    return Reply(page)


def forget_response(asked: Asked) -> Reply:
    return Reply(responses.delete(asked.path["id"], asked.namespace, asked.store))


def tokenize(asked: Asked) -> Reply:
    """vLLM's `/tokenize`: a prompt, or the messages of a chat."""
    text, prompt = asked.service.text, asked.body.text("prompt")
    if prompt is not None:
        tokens = text.encode(prompt, bos=asked.body.flag("add_special_tokens", True))
    else:
        tokens = text.prompt(openai.conversation(asked.body), asked.namespace).ids
    return Reply({"tokens": list(tokens), "count": len(tokens), "max_model_len": asked.service.context})


def detokenize(asked: Asked) -> Reply:
    """vLLM's `/detokenize`.  Raises `InvalidParameter`."""
    tokens, size = asked.body.get("tokens"), asked.service.text.vocabulary
    if not ids(tokens) or not all(0 <= token < size for token in tokens):
        raise InvalidParameter(f"tokens must be an array of token ids of 0 to {size - 1}", param="tokens")
    return Reply({"prompt": asked.service.text.decode(tokens)})


async def reset_prefix_cache(asked: Asked) -> Reply:
    """vLLM's `/reset_prefix_cache`: forget every cached prefix that nobody is using."""
    return Reply({"success": await asked.service.host.run(asked.service.clear_cache)})


def health(asked: Asked) -> Reply:
    host = asked.service.host
    state = "draining" if host.draining else "ok" if host.alive else "failed"
    return Reply({"status": state}, 200 if state == "ok" else 503)


def metrics(asked: Asked) -> Reply:
    return Reply(asked.service.metrics().decode(), media_type="text/plain; version=0.0.4; charset=utf-8")


def version(asked: Asked) -> Reply:
    return Reply({"version": asked.service.version})


def index(asked: Asked) -> Reply:
    return Reply(pages.index(asked.service))


def docs(asked: Asked) -> Reply:
    return Reply(pages.docs(document(asked.service.version)))


def openapi(asked: Asked) -> Reply:
    return Reply(document(asked.service.version))
