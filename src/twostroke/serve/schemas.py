"""The JSON schemas of request and response bodies, as plain data for the OpenAPI document.

They describe what the wire formats read and write; nothing is judged by them.  An absent field and a null are the same,
so every field that may be left out may be null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twostroke.config import OPTIONS
from twostroke.serve.options import MAX_CHOICES, MAX_SALT, MIN_REPETITION

Schema = dict[str, Any]
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
INT64 = {"minimum": -(2**63), "maximum": 2**63 - 1}

# -- words of the language ----------------------------------------------------------------------------------------


def text(about: str = "", **more: Any) -> Schema:
    """A string."""
    return _said({"type": "string", **more}, about)


def whole(about: str = "", low: int | None = None, high: int | None = None) -> Schema:
    """An integer in a range."""
    return _said({"type": "integer", **_range(low, high)}, about)


def number(about: str = "", low: float | None = None, high: float | None = None, **more: Any) -> Schema:
    """A number in a range."""
    return _said({"type": "number", **_range(low, high), **more}, about)


def flag(about: str = "") -> Schema:
    """True or false."""
    return _said({"type": "boolean"}, about)


def word(*values: str, about: str = "") -> Schema:
    """One of some strings."""
    return _said({"type": "string", "enum": list(values)}, about)


def array(items: Schema, about: str = "", **more: Any) -> Schema:
    """An array of `items`."""
    return _said({"type": "array", "items": items, **more}, about)


def one_of(*schemas: Schema, about: str = "") -> Schema:
    """Any of several."""
    return _said({"anyOf": list(schemas)}, about)


def thing(fields: dict[str, Schema] | None = None, needs: Sequence[str] = (), about: str = "") -> Schema:
    """An object with `fields`, of which those in `needs` must be there and the others may be null."""
    fields = fields or {}
    shapes = {name: shape if name in needs else optional(shape) for name, shape in fields.items()}
    found: Schema = {"type": "object"} | ({"properties": shapes} if shapes else {})
    return _said(found | ({"required": list(needs)} if needs else {}), about)


def optional(shape: Schema) -> Schema:
    """The schema, or null."""
    if "anyOf" in shape:
        return {**shape, "anyOf": [*shape["anyOf"], {"type": "null"}]}
    if not isinstance(shape.get("type"), str):
        return {"anyOf": [shape, {"type": "null"}]}
    nulls = {"enum": [*shape["enum"], None]} if "enum" in shape else {}
    return {**shape, "type": [shape["type"], "null"], **nulls}


def named(name: str) -> Schema:
    """A schema of the document's own list."""
    return {"$ref": f"#/components/schemas/{name}"}


def _range(low: float | None, high: float | None) -> Schema:
    ends = {"minimum": low, "maximum": high}
    return {name: end for name, end in ends.items() if end is not None}


def _said(shape: Schema, about: str) -> Schema:
    return {**shape, "description": about} if about else shape


# -- fields that several formats share ----------------------------------------------------------------------------

STOPS = one_of(text(minLength=1), array(text(minLength=1)), about="Text that ends an answer.")
SHARED: dict[str, Schema] = {
    "model": text("A served name; the preferred one if left out."),
    "temperature": number("0 is greedy; the default is 1.", 0, 100),
    "top_k": whole("Sample among the k likeliest tokens; 0 or -1 is all.", -1),
    "top_p": number("Sample among the likeliest tokens that make up this probability.", 0, 1),
    "min_p": number("Drop tokens less likely than this share of the likeliest.", 0, 1),
    "seed": {"type": "integer", **INT64, "description": "Makes sampling repeatable."},
    "presence_penalty": number("Subtracted from the logits of tokens of the answer.", -2, 2),
    "frequency_penalty": number("The same, times how often the token is there.", -2, 2),
    "repetition_penalty": number("Divides the logits of tokens of prompt and answer.", MIN_REPETITION, 100),
    "logit_bias": {
        "type": "object",
        "additionalProperties": number("", -100, 100),
        "propertyNames": {"pattern": "^[0-9]+$"},
        "description": "By token id, what is added to its logit.",
    },
    "min_tokens": whole("Tokens before which the answer does not end.", 0),
    "stop_token_ids": array(whole("", 0), "Tokens that end an answer."),
    "ignore_eos": flag("The model's own end of text does not end the answer."),
    "prefix_cache": flag("False: read and leave nothing in the prefix cache."),
    "cache_prompt": flag("The same under another name."),
    "speculate": text("The drafter, or off."),
    "draft_tokens": whole("Guesses verified in one step, at most.", 0, int(OPTIONS["draft_tokens"].high or 0)),
    "cache_salt": text(
        "Requests with different salts share no cache and no draft history.", minLength=1, maxLength=MAX_SALT
    ),
    "priority": {"type": "integer", **INT64, "description": "Lower is admitted earlier."},
    "stream": flag("Answer with server-sent events."),
}
OPENAI: dict[str, Schema] = {
    **SHARED,
    "n": whole("Answers per prompt.", 1, MAX_CHOICES),
    "stop": STOPS,
    "stream_options": thing({"include_usage": flag(), "include_obfuscation": flag()}, about="Needs stream."),
    "prediction": thing(
        {"type": word("content"), "content": one_of(text(), array(named("TextPart")))},
        ("type", "content"),
        "Text that the answer may repeat: a source of drafts, never part of a cache key.",
    ),
    "structured_outputs": thing(
        {
            "json": one_of(thing(), text()),
            "regex": text(),
            "choice": array(text()),
            "grammar": text(),
            "json_object": flag(),
        },
        about="What shape the answer has; one of them.",
    ),
    "prompt_logprobs": whole("Alternatives to report for each token of the prompt.", 0, 20),
    "return_token_ids": flag("Report the ids of prompt and answer."),
    "prompt_cache_key": text("Accepted; reuse needs no key."),
    "user": text("Accepted; changes nothing."),
}
SCHEMA = thing(about="A JSON schema.")
CHAT_TEXT = one_of(text(), array(named("TextPart")))
TOOL_NAME = text(pattern="^[A-Za-z0-9_.:/-]{1,128}$")
ITEM_TEXT = one_of(text(), array(thing({"type": word("input_text"), "text": text()}, ("type", "text"))))
ANSWER_TEXT = one_of(text(), array(thing({"type": word("output_text"), "text": text()}, ("type", "text"))))


def blocks(*others: str) -> Schema:
    """Text, or blocks of text and `others`."""
    kinds = [named(name) for name in ("TextBlock", *others)]
    return one_of(text(), array(one_of(*kinds) if others else kinds[0]))


# -- requests -----------------------------------------------------------------------------------------------------

REQUESTS: dict[str, Schema] = {
    "TextPart": thing({"type": word("text"), "text": text()}, ("type", "text")),
    "ChatMessage": one_of(
        thing({"role": word("system", "developer", "user"), "content": CHAT_TEXT, "name": text()}, ("role", "content")),
        thing({"role": word("assistant"), "content": CHAT_TEXT, "name": text()}, ("role", "content")),
        thing(
            {"role": word("assistant"), "content": CHAT_TEXT, "tool_calls": array(named("ToolCall"), minItems=1)},
            ("role", "tool_calls"),
        ),
        thing(
            {
                "role": word("tool"),
                "content": CHAT_TEXT,
                "tool_call_id": text("The call that this is the result of.", minLength=1),
            },
            ("role", "content", "tool_call_id"),
        ),
        about="Every call needs its result after it, and every result its call before it.",
    ),
    "ToolCall": thing(
        {
            "id": text(minLength=1),
            "type": word("function"),
            "function": thing({"name": text(minLength=1), "arguments": text("JSON text.")}, ("name", "arguments")),
        },
        ("id", "type", "function"),
    ),
    "ChatTool": thing(
        {
            "type": word("function"),
            "function": thing(
                {"name": TOOL_NAME, "description": text(), "parameters": SCHEMA, "strict": flag()}, ("name",)
            ),
        },
        ("type", "function"),
    ),
    "ChatRequest": thing(
        {
            "messages": array(named("ChatMessage"), minItems=1),
            **OPENAI,
            "max_tokens": whole("An upper bound; the context bounds the answer too.", 0),
            "max_completion_tokens": whole("The same under its newer name.", 0),
            "logprobs": flag("Report log-probabilities."),
            "top_logprobs": whole("Alternatives per token; needs logprobs.", 0, 20),
            "tools": array(named("ChatTool")),
            "tool_choice": one_of(
                word("none", "auto", "required"),
                thing({"type": word("function"), "function": thing({"name": text()}, ("name",))}, ("type", "function")),
            ),
            "parallel_tool_calls": flag("Whether an answer may have several calls."),
            "response_format": one_of(
                thing({"type": word("text", "json_object")}, ("type",)),
                thing(
                    {
                        "type": word("json_schema"),
                        "json_schema": thing({"name": text(), "schema": SCHEMA, "strict": flag()}, ("name",)),
                    },
                    ("type", "json_schema"),
                ),
            ),
            "reasoning_effort": word(*EFFORTS),
            "chat_template_kwargs": thing(about="More variables for the chat template."),
            "continue_final_message": flag("The last message is the beginning of the answer."),
            "prompt_cache_options": thing({"mode": word("implicit", "explicit"), "ttl": text()}),
        },
        ("messages",),
    ),
    "CompletionRequest": thing(
        {
            "prompt": one_of(
                text(),
                array(text(), minItems=1),
                array(whole("", 0), minItems=1),
                array(array(whole("", 0), minItems=1), minItems=1),
            ),
            **OPENAI,
            "max_tokens": whole("An upper bound; the context bounds the answer too.", 0),
            "logprobs": whole("Alternatives to report per token.", 0, 20),
            "echo": flag("Put the prompt before the answer."),
            "suffix": text("What follows the answer, where the model can fill in."),
            "best_of": whole("May only repeat n.", 1),
        },
        ("prompt",),
    ),
    "InputItem": one_of(
        thing({"role": word("user", "system", "developer"), "content": ITEM_TEXT}, ("role", "content")),
        thing({"role": word("assistant"), "content": ANSWER_TEXT}, ("role", "content")),
        thing(
            {
                "type": word("reasoning"),
                "content": array(thing({"type": word("reasoning_text"), "text": text()}, ("type", "text"))),
                "encrypted_content": text("As it was sent to the client."),
            },
            ("type",),
        ),
        thing(
            {"type": word("function_call"), "call_id": text(), "name": text(), "arguments": text("JSON text.")},
            ("type", "call_id", "name", "arguments"),
        ),
        thing(
            {"type": word("custom_tool_call"), "call_id": text(), "name": text(), "input": text()},
            ("type", "call_id", "name", "input"),
        ),
        thing(
            {
                "type": word("function_call_output", "custom_tool_call_output"),
                "call_id": text("The call that this is the result of."),
                "output": ITEM_TEXT,
            },
            ("type", "call_id", "output"),
        ),
        about="Every call needs its output after it, and every output its call before it.",
    ),
    "ResponsesRequest": thing(
        {
            **SHARED,
            "input": one_of(text(minLength=1), array(named("InputItem"), minItems=1)),
            "instructions": text("The system message."),
            "max_output_tokens": whole("An upper bound.", 1),
            "tools": array(thing({"type": text(), "name": text(), "parameters": SCHEMA, "strict": flag()}, ("type",))),
            "tool_choice": one_of(
                word("none", "auto", "required"),
                thing({"type": word("function", "custom"), "name": text()}, ("type", "name")),
                thing(
                    {"type": word("allowed_tools"), "mode": word("auto", "required"), "tools": array(thing())},
                    ("type", "mode", "tools"),
                ),
            ),
            "parallel_tool_calls": flag(),
            "previous_response_id": text("A stored response that this one continues."),
            "store": flag("Keep the response in memory; the default."),
            "reasoning": thing({"effort": word(*EFFORTS), "summary": word("auto", "concise", "detailed")}),
            "text": thing({"format": thing({"type": word("text", "json_object", "json_schema")}, ("type",))}),
            "include": array(word("message.output_text.logprobs", "reasoning.encrypted_content")),
            "top_logprobs": whole("", 0, 20),
            "stream_options": thing({"include_obfuscation": flag()}),
            "stop": STOPS,
            "metadata": thing() | {"additionalProperties": text()},
            "truncation": word("auto", "disabled"),
        },
        ("input",),
    ),
    "CacheControl": thing({"type": word("ephemeral"), "ttl": word("5m", "1h")}, ("type",)),
    "TextBlock": thing(
        {"type": word("text"), "text": text(), "cache_control": named("CacheControl")}, ("type", "text")
    ),
    "ToolUseBlock": thing(
        {
            "type": word("tool_use"),
            "id": text(),
            "name": text(),
            "input": thing(about="The arguments."),
            "cache_control": named("CacheControl"),
        },
        ("type", "id", "name", "input"),
    ),
    "ToolResultBlock": thing(
        {
            "type": word("tool_result"),
            "tool_use_id": text("The tool_use of the message before that this answers."),
            "content": one_of(text(), array(named("TextBlock"))),
            "is_error": flag(),
            "cache_control": named("CacheControl"),
        },
        ("type", "tool_use_id"),
    ),
    "ThinkingBlock": thing({"type": word("thinking"), "thinking": text(), "signature": text()}, ("type", "thinking")),
    "MessagesTool": thing(
        {
            "name": TOOL_NAME,
            "description": text(),
            "input_schema": thing({"type": word("object")}, ("type",), "A JSON schema."),
            "strict": flag(),
            "cache_control": named("CacheControl"),
        },
        ("name", "input_schema"),
    ),
    "MessagesRequest": thing(
        {
            **SHARED,
            "max_tokens": whole("An upper bound; 0 only fills the cache.", 0),
            "messages": array(
                one_of(
                    thing({"role": word("user"), "content": blocks("ToolResultBlock")}, ("role", "content")),
                    thing(
                        {"role": word("assistant"), "content": blocks("ToolUseBlock", "ThinkingBlock")},
                        ("role", "content"),
                    ),
                    thing({"role": word("system"), "content": blocks()}, ("role", "content")),
                ),
                minItems=1,
            ),
            "system": blocks(),
            "stop_sequences": STOPS,
            "tools": array(named("MessagesTool")),
            "tool_choice": thing(
                {"type": word("auto", "any", "tool", "none"), "name": text(), "disable_parallel_tool_use": flag()},
                ("type",),
            ),
            "thinking": thing(
                {"type": word("adaptive", "enabled", "disabled"), "budget_tokens": whole("", 1)}, ("type",)
            ),
            "output_config": thing(
                {
                    "effort": word(*EFFORTS[2:]),
                    "format": thing({"type": word("json_schema"), "schema": SCHEMA}, ("type", "schema")),
                }
            ),
            "cache_control": named("CacheControl"),
            "metadata": thing({"user_id": text()}),
            "diagnostics": thing({"previous_message_id": text()}),
        },
        ("max_tokens", "messages"),
    ),
    "TokenizeRequest": one_of(
        thing({"model": text(), "prompt": text(), "add_special_tokens": flag()}, ("prompt",)),
        thing({"model": text(), "messages": array(named("ChatMessage"), minItems=1)}, ("messages",)),
        about="A prompt, or the messages of a chat.",
    ),
    "DetokenizeRequest": thing({"model": text(), "tokens": array(whole("", 0))}, ("tokens",)),
}
REQUESTS["CountRequest"] = {**REQUESTS["MessagesRequest"], "required": ["messages"]}

# -- responses ----------------------------------------------------------------------------------------------------

COUNT = whole("", 0)
USAGE = thing({"prompt_tokens": COUNT, "completion_tokens": COUNT, "total_tokens": COUNT}, ("prompt_tokens",))
REASONS = ("stop", "length", "tool_calls")
RESPONSES: dict[str, Schema] = {
    "ChatCompletion": thing(
        {
            "id": text(),
            "object": word("chat.completion"),
            "created": COUNT,
            "model": text(),
            "choices": array(
                thing(
                    {"index": COUNT, "message": thing(), "finish_reason": word(*REASONS), "logprobs": thing()},
                    ("index", "message", "finish_reason"),
                )
            ),
            "usage": USAGE,
            "phases": thing(about="What reading and writing took, reused, guessed and saved."),
        },
        ("id", "object", "created", "model", "choices", "usage"),
    ),
    "Completion": thing(
        {
            "id": text(),
            "object": word("text_completion"),
            "created": COUNT,
            "model": text(),
            "choices": array(
                thing({"index": COUNT, "text": text(), "finish_reason": word(*REASONS)}, ("index", "text"))
            ),
            "usage": USAGE,
            "phases": thing(),
        },
        ("id", "object", "created", "model", "choices", "usage"),
    ),
    "Response": thing(
        {
            "id": text(),
            "object": word("response"),
            "created_at": number(),
            "model": text(),
            "status": word("completed", "failed", "in_progress", "cancelled", "queued", "incomplete"),
            "output": array(thing()),
            "usage": thing({"input_tokens": COUNT, "output_tokens": COUNT, "total_tokens": COUNT}),
        },
        ("id", "object", "model", "output"),
    ),
    "InputItems": thing(
        {"object": word("list"), "data": array(thing()), "first_id": text(), "last_id": text(), "has_more": flag()},
        ("object", "data", "has_more"),
    ),
    "DeletedResponse": thing({"id": text(), "object": text(), "deleted": flag()}, ("id", "deleted")),
    "Message": thing(
        {
            "id": text(),
            "type": word("message"),
            "role": word("assistant"),
            "model": text(),
            "content": array(thing({"type": text()}, ("type",))),
            "stop_reason": text(),
            "stop_sequence": text(),
            "usage": thing(
                {
                    "input_tokens": COUNT,
                    "output_tokens": COUNT,
                    "cache_creation_input_tokens": COUNT,
                    "cache_read_input_tokens": COUNT,
                },
                ("input_tokens", "output_tokens"),
            ),
        },
        ("id", "type", "role", "model", "content", "usage"),
    ),
    "InputTokens": thing({"object": text(), "input_tokens": COUNT}, ("input_tokens",)),
    "Model": thing(
        {"id": text(), "object": text(), "type": text(), "created": COUNT, "owned_by": text(), "max_model_len": COUNT},
        ("id",),
        "In Anthropic's shape where the request names an anthropic-version.",
    ),
    "Models": thing({"object": text(), "data": array(named("Model"))}, ("data",)),
    "Health": thing({"status": word("ok", "draining", "failed")}, ("status",)),
    "Version": thing({"version": text()}, ("version",)),
    "Tokens": thing({"count": COUNT, "max_model_len": COUNT, "tokens": array(COUNT)}, ("count", "tokens")),
    "Text": thing({"prompt": text()}, ("prompt",)),
    "Reset": thing({"success": flag()}, ("success",)),
    "Error": thing(
        {
            "error": thing(
                {"message": text(), "type": text(), "param": text(), "code": text()},
                ("message", "type"),
                "OpenAI's shape.",
            )
        },
        ("error",),
    ),
    "AnthropicError": thing(
        {
            "type": word("error"),
            "error": thing({"type": text(), "message": text()}, ("type", "message")),
            "request_id": text(),
        },
        ("type", "error"),
        "Anthropic's shape.",
    ),
}
