"""Reads `messages` into a conversation's messages, every part with its path and its cache breakpoint.

A tool's result needs a call before it, and a call a result after it: what a model would misread is refused by path.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from twostroke.errors import InvalidParameter
from twostroke.serve.caching import Caching
from twostroke.serve.fields import Fields, shown
from twostroke.text.conversation import Message, Part, Role, ToolCall
from twostroke.text.messages import check_calls

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
KNOWN = frozenset(
    {
        "role", "content", "name", "refusal", "tool_calls", "tool_call_id", "function_call", "reasoning_content",
        "reasoning", "audio", "annotations", "id",
    }
)  # fmt: skip
MEDIA = {"image_url": "images", "input_audio": "audio", "audio_url": "audio", "file": "files", "video_url": "videos"}


def messages(fields: Fields, caching: Caching) -> tuple[Message, ...]:
    """The messages in order.  Raises `InvalidParameter` with the path of what is wrong."""
    values = fields.array("messages")
    if not values:
        raise InvalidParameter("messages must hold at least one message", param="messages")
    read = [_message(fields, i, value, caching) for i, value in enumerate(values)]
    found = tuple(_with_call_id(message, read[:i]) for i, message in enumerate(read))
    legacy = any(not call.id for message in read for call in message.calls)  # a function_call needs no result
    check_calls(found, results_required=not legacy)
    return found


def text(holder: Fields) -> str:
    """A `content` that may only be text, its parts joined by nothing."""
    return "".join(part.text for part in _content(holder, Caching()))


def _message(fields: Fields, index: int, value: Any, caching: Caching) -> Message:
    path = f"{fields.at('messages')}[{index}]"
    if not isinstance(value, dict):
        raise InvalidParameter(f"{path} must be an object with role and content, not {shown(value)}", param=path)
    message = Fields(value, path)
    role = message.text("role")
    if role not in ROLES:
        raise message.wrong("role", "one of " + ", ".join(ROLES))
    if message.get("audio") is not None:
        raise InvalidParameter(f"{path}.audio is not supported here; send the text it says", param=f"{path}.audio")
    if role == "assistant":
        return _assistant(message, path, caching)
    return Message(
        ROLES[role],
        _content(message, caching),
        call_id=_call_id(message, role),
        name=message.text("name"),
        path=path,
    )


def _assistant(message: Fields, path: str, caching: Caching) -> Message:
    calls = _tool_calls(message)
    refusal = message.text("refusal")
    parts: tuple[Part, ...] = ()
    if message.get("content") is not None:
        parts = _content(message, caching)
    elif refusal is not None:
        parts = (Part(refusal, f"{path}.refusal"),)
    elif not calls:
        raise message.wrong("content", "a string or an array of text parts where there are no tool_calls")
    thought = message.text("reasoning_content") or message.text("reasoning") or ""
    return Message("assistant", parts, thought, calls, name=message.text("name"), path=path)


def _content(holder: Fields, caching: Caching) -> tuple[Part, ...]:
    content = holder.get("content")
    if isinstance(content, str):
        return (Part(content, holder.at("content")),)
    if not isinstance(content, list):
        raise holder.wrong("content", "a string or an array of text parts")
    return tuple(_part(value, f"{holder.at('content')}[{i}]", caching) for i, value in enumerate(content))


def _part(value: Any, path: str, caching: Caching) -> Part:
    if not isinstance(value, dict):
        raise InvalidParameter(f'{path} must be {{"type": "text", "text": …}}, not {shown(value)}', param=path)
    part = Fields(value, path)
    kind = part.text("type")
    if kind in MEDIA:
        raise InvalidParameter(
            f"{path}.type is {shown(kind)}: this model reads no {MEDIA[kind]}; send text", param=f"{path}.type"
        )
    if kind not in ("text", "refusal"):
        raise part.wrong("type", '"text" or "refusal"')
    said = part.text(kind)
    if said is None:
        raise part.wrong(kind, "a string")
    return Part(said, path, caching.ttl_s(part))


def _tool_calls(message: Fields) -> tuple[ToolCall, ...]:
    if (legacy := message.object("function_call")) is not None:
        return (ToolCall("", _name(legacy), _arguments(legacy)),)
    values = message.array("tool_calls") or ()
    return tuple(_tool_call(value, f"{message.at('tool_calls')}[{i}]") for i, value in enumerate(values))


def _tool_call(value: Any, path: str) -> ToolCall:
    call = Fields(value if isinstance(value, dict) else {}, path)
    if call.get("type") not in (None, "function"):
        raise call.wrong("type", '"function"')
    function = call.object("function")
    if function is None:
        raise InvalidParameter(f"{path} must hold id, type and function, not {shown(value)}", param=path)
    name = call.text("id")
    if not name:
        raise call.wrong("id", "the id of the call")
    return ToolCall(name, _name(function), _arguments(function))


def _name(function: Fields) -> str:
    name = function.text("name")
    if not name:
        raise function.wrong("name", "the name of a function")
    return name


def _arguments(function: Fields) -> str:
    """JSON text; some clients send the object itself, or nothing where there are no arguments."""
    value = function.get("arguments")
    if value is None or value == "":
        return "{}"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        raise function.wrong("arguments", "a string of JSON")
    return value


def _call_id(message: Fields, role: str) -> str | None:
    if role == "tool":
        given = message.text("tool_call_id")
        if not given:
            raise message.wrong("tool_call_id", "the id of the call this is the result of")
        return given
    if role == "function" and not message.text("name"):
        raise message.wrong("name", "the name of the function this is the result of")
    return "" if role == "function" else None


def _with_call_id(message: Message, before: Sequence[Message]) -> Message:
    """The message with an id for a legacy `function_call`, or for the result of one: both have none of their own."""
    if any(not call.id for call in message.calls):
        calls = tuple(replace(call, id=_legacy_id(message)) for call in message.calls)
        return replace(message, calls=calls)
    if message.role != "tool" or message.call_id:
        return message
    for other in reversed(before):
        if any(call.name == message.name and not call.id for call in other.calls):
            return replace(message, call_id=_legacy_id(other))
    raise InvalidParameter(
        f"{message.path}.name is {shown(message.name)}, and no message before it called that function; send the "
        "assistant's message with the function_call first",
        param=f"{message.path}.name",
    )


def _legacy_id(message: Message) -> str:
    return f"call_{message.path}"
