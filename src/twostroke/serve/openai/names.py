"""The fields each endpoint knows, by what comes of them.

A field is read, or accepted because it says nothing to a model, or refused unless its value asks for nothing.  Any
other is unknown: see `options.judge_names`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from twostroke.errors import InvalidParameter
from twostroke.serve import options
from twostroke.serve.fields import Fields, shown
from twostroke.serve.service import Service

STRUCTURE = frozenset(
    {
        "response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
        "grammar", "json_schema",
    }
)  # fmt: skip
COMMON = (
    options.READ
    | STRUCTURE
    | {
        "max_tokens", "n", "stop", "stream", "stream_options", "logprobs", "prediction", "return_token_ids",
        "prompt_logprobs", "user_id",
    }
)  # fmt: skip
CHAT = COMMON | {
    "messages", "max_completion_tokens", "top_logprobs", "tools", "tool_choice", "parallel_tool_calls", "functions",
    "function_call", "reasoning_effort", "thinking", "chat_template_kwargs", "continue_final_message",
    "add_generation_prompt", "prompt_cache_options",
}  # fmt: skip
TEXT = COMMON | {"prompt", "echo", "best_of", "suffix"}
ACCEPTED = frozenset(
    {
        "guided_decoding_backend", "metadata", "prompt_cache_key", "prompt_cache_retention", "request_id",
        "safety_identifier", "service_tier", "session_id", "store", "user", "verbosity",
    }
)  # fmt: skip


def _only(*values: Any) -> Callable[[Any], bool]:
    return lambda value: any(value == v and isinstance(value, bool) == isinstance(v, bool) for v in values)


REFUSED: Mapping[str, Callable[[Any], bool]] = {  # the values of each that ask for nothing
    "allowed_token_ids": _only([]),
    "audio": _only(),
    "bad_words": _only([]),
    "chat_template": _only(),
    "documents": _only([]),
    "guided_whitespace_pattern": _only(),
    "include_stop_str_in_output": _only(False),
    "length_penalty": _only(1),
    "logits_processors": _only([]),
    "mirostat": _only(0),
    "modalities": _only(["text"]),
    "moderation": _only(),
    "return_tokens_as_token_ids": _only(False),
    "skip_special_tokens": _only(True),
    "truncate_prompt_tokens": _only(),
    "typical_p": _only(1),
    "use_beam_search": _only(False),
    "web_search_options": _only(),
}
RETENTIONS = ("in_memory", "in-memory", "24h")


def judge(fields: Fields, read: frozenset[str], service: Service) -> None:
    """Raises `InvalidParameter` for a field that cannot be honoured, or is unknown under `--strict`."""
    for name, asks_nothing in REFUSED.items():
        value = fields.get(name)
        if value is not None and not asks_nothing(value):
            raise InvalidParameter(f"{name} = {shown(value)} is not supported here; leave {name} out", param=name)
    options.judge_names(fields, read | ACCEPTED | REFUSED.keys(), service)
    if fields.get("prompt_cache_retention") not in (None, *RETENTIONS):
        raise fields.wrong("prompt_cache_retention", "one of " + ", ".join(RETENTIONS))
