"""Pages for a person who opens the server in a browser: what this is, and what it understands.

Whole and self-contained: no script, no style sheet or font from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from twostroke.config import ANY_MODEL
from twostroke.serve.service import Service

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, td:first-child { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .2rem 1rem .2rem 0; vertical-align: top; }
summary { cursor: pointer; padding: .3rem 0; } h2 { margin-top: 2rem; }
"""
PATHS = {
    "/docs": "what each endpoint understands",
    "/openapi.json": "the same for programs",
    "/v1/models": "the models served",
    "/health": "whether it answers",
    "/metrics": "counters for Prometheus",
}
METHODS = ("get", "head", "post", "delete")


def index(service: Service) -> str:
    """The page at `/`."""
    facts = {
        "model": ", ".join("any other name" if name == ANY_MODEL else name for name in service.models),
        "context": service.context_reason or f"{service.context} tokens",
        "version": service.version,
    }
    links = "".join(f'<li><a href="{path}"><code>{path}</code></a>: {what}</li>' for path, what in PATHS.items())
    return _page(
        "Twostroke",
        "<p>An LLM serving engine in which prefix caching and speculative decoding stack, exactly. "
        "It speaks the formats of OpenAI (chat completions, completions, responses) and Anthropic (messages): "
        "point a client here, with <code>/v1</code> at the end where it is one of OpenAI's.</p>",
        _table(facts.items()),
        f"<ul>{links}</ul>",
        "<p>The project's documentation is in the folder <code>docs</code> of its source.</p>",
    )


def docs(document: Mapping[str, Any]) -> str:
    """An OpenAPI document as a page.  Raises KeyError for a reference that leads nowhere."""
    schemas = document["components"]["schemas"]
    operations = [
        _operation(method, path, item[method], schemas)
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    ]
    return _page(f"{document['info']['title']} {document['info']['version']}", *operations)


def _operation(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    fields = _fields(_resolved(body["schema"], schemas)) if body else ""
    statuses = _table((status, answer["description"]) for status, answer in operation["responses"].items())
    head = f"<summary><code>{method.upper()} {escape(path)}</code> {escape(operation['summary'])}</summary>"
    return f"<details>{head}{fields}<h4>Statuses</h4>{statuses}</details>"


def _fields(schema: Mapping[str, Any]) -> str:
    """The fields of an object, or of each of the shapes it may have."""
    rows = [
        (name + (" (required)" if name in one.get("required", ()) else ""), _said(shape))
        for one in schema.get("anyOf", (schema,))
        for name, shape in one.get("properties", {}).items()
    ]
    return f"<h4>Fields</h4>{_table(rows)}"


def _said(shape: Mapping[str, Any]) -> str:
    return ". ".join(filter(None, (kind(shape), _about(shape))))


def kind(schema: Mapping[str, Any]) -> str:
    """A schema in a few words: its type, range and values."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(part) for part in schema["anyOf"] if part.get("type") != "null"))
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"] if value is not None)
    types: str | Sequence[str] = schema.get("type", "anything")
    plain = types if isinstance(types, str) else next(name for name in types if name != "null")
    if plain == "array":
        return f"array of {kind(schema['items'])}"
    return " ".join([plain, *_limits(schema)])


def _limits(schema: Mapping[str, Any]) -> Iterable[str]:
    for name, sign in (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤")):
        if name in schema:
            yield f"{sign} {schema[name]}"


def _about(schema: Mapping[str, Any]) -> str:
    return str(schema.get("description", ""))


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return found


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><td>{escape(name)}</td><td>{escape(said)}</td></tr>" for name, said in rows)
    return f"<table>{cells}</table>"


def _page(title: str, *parts: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1>{''.join(parts)}</body></html>"
    )
