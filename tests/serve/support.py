"""The table in docs/http-api.md of what each format takes, made by asking the formats themselves.

`python -m tests.serve.support` writes it into the page; a test compares the page with the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.serve.scripted import service
from twostroke.errors import RequestError
from twostroke.serve.fields import Fields
from twostroke.serve.formats import formats
from twostroke.serve.responses import ResponseStore
from twostroke.serve.submission import Caller

PAGE = Path(__file__).parents[2] / "docs" / "http-api.md"
BEGIN, END = "<!-- generated: formats -->", "<!-- end of formats -->"
CHAT, TEXT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"
HELLO = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
LEAST: Mapping[str, dict[str, Any]] = {
    CHAT: {"messages": HELLO},
    TEXT: {"prompt": "hello"},
    RESPONSES: {"model": "echo", "input": "hello"},
    MESSAGES: {"model": "echo", "max_tokens": 9, "messages": HELLO},
}
FUNCTION = {"name": "f", "parameters": SCHEMA}
TOOLS: Mapping[str, list[dict[str, Any]]] = {
    CHAT: [{"type": "function", "function": FUNCTION}],
    RESPONSES: [{"type": "function", **FUNCTION}],
    MESSAGES: [{"name": "f", "input_schema": SCHEMA}],
}
IMAGES: Mapping[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
    RESPONSES: {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]}]},
    MESSAGES: {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
}


def everywhere(**fields: Any) -> dict[str, dict[str, Any]]:
    return dict.fromkeys(LEAST, fields)


def with_tools(**choices: Any) -> dict[str, dict[str, Any]]:
    return {path: {"tools": TOOLS[path], "tool_choice": choices[name]} for path, name in NAMES.items()}


NAMES = {CHAT: "chat", RESPONSES: "responses", MESSAGES: "messages"}
MARK = {"mode": "explicit"}
SYSTEM = {"role": "system", "content": "Be brief."}
FEATURES: Mapping[str, Mapping[str, dict[str, Any]]] = {  # by format: the fields that ask for it
    "streaming": everywhere(stream=True),
    "`temperature`, `top_p`, `top_k`, `seed`": everywhere(temperature=0.5, top_p=0.9, top_k=5, seed=1),
    "stop strings": {
        CHAT: {"stop": ["a"] * 5},
        TEXT: {"stop": ["a"]},
        RESPONSES: {"stop": ["a"]},
        MESSAGES: {"stop_sequences": ["a"]},
    },
    "penalties, `logit_bias`, `min_tokens`": everywhere(presence_penalty=1, logit_bias={"5": 1}, min_tokens=2),
    "several answers": {CHAT: {"n": 2}, TEXT: {"n": 2}},
    "log-probabilities": {
        CHAT: {"logprobs": True, "top_logprobs": 3},
        TEXT: {"logprobs": 3},
        RESPONSES: {"include": ["message.output_text.logprobs"], "top_logprobs": 3},
    },
    "log-probabilities of the prompt": {CHAT: {"prompt_logprobs": 1}, TEXT: {"echo": True, "logprobs": 1}},
    "fill in the middle": {TEXT: {"suffix": "end"}},
    "a system message between the others": {
        CHAT: {"messages": [*HELLO, SYSTEM]},
        RESPONSES: {"input": [*HELLO, SYSTEM]},
        MESSAGES: {"messages": [*HELLO, SYSTEM]},
    },
    "tools the model may call": with_tools(chat="auto", responses="auto", messages={"type": "auto"}),
    "tools the model must call": with_tools(chat="required", responses="required", messages={"type": "any"}),
    "one tool it must call": with_tools(
        chat={"type": "function", "function": {"name": "f"}},
        responses={"type": "function", "name": "f"},
        messages={"type": "tool", "name": "f"},
    ),
    "a JSON schema": {
        CHAT: {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}},
        TEXT: {"structured_outputs": {"json": SCHEMA}},
        RESPONSES: {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
        MESSAGES: {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    },
    "a regular expression, a choice, a grammar": {
        CHAT: {"structured_outputs": {"regex": "a+"}},
        TEXT: {"structured_outputs": {"choice": ["a", "b"]}},
    },
    "cache breakpoints with a lifetime": {
        CHAT: {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "a", "prompt_cache_breakpoint": MARK}],
                }
            ]
        },
        RESPONSES: {
            "input": [
                {
                    "role": "user",
                    "content": [{"type": "input_text", "text": "a", "prompt_cache_breakpoint": MARK}],
                }
            ]
        },
        MESSAGES: {"cache_control": {"type": "ephemeral", "ttl": "1h"}},
    },
    "reading a prompt ahead of time": {
        CHAT: {"max_tokens": 0},
        TEXT: {"max_tokens": 0},
        RESPONSES: {"prompt_cache_options": {"prewarm": True}},
        MESSAGES: {"max_tokens": 0},
    },
    "stored answers to go on from": {RESPONSES: {"store": True}},
    "text that is expected (`prediction`)": {
        CHAT: {"prediction": {"type": "content", "content": "a"}},
        TEXT: {"prediction": {"type": "content", "content": "a"}},
    },
    "`prefix_cache`, `speculate`, `draft_tokens`, `cache_salt`": everywhere(
        prefix_cache=False, speculate="off", draft_tokens=2, cache_salt="s"
    ),
    "images": IMAGES,
}


def cell(path: str, fields: dict[str, Any] | None) -> str:
    """What becomes of a body: taken, refused, or the format has no words for it."""
    if fields is None:
        return "–"
    over = replace(service(strict=True), models=("echo",))
    wire = next(each for each in formats(ResponseStore()) if each.path == path)
    try:
        wire.parse(Fields({**LEAST[path], **fields}), over, Caller(f"{wire.prefix}1"))
    except RequestError as problem:
        return f"{problem.status}"
    return "yes"


def table() -> str:
    """The whole table."""
    head = ["| | chat completions | completions | Responses | Messages |", "|---|---|---|---|---|"]
    rows = [
        f"| {name} | " + " | ".join(cell(p, asked.get(p)) for p in LEAST) + " |" for name, asked in FEATURES.items()
    ]
    return "\n".join([*head, *rows])


def main() -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
