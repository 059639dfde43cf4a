"""Conversations and tools as chat templates expect them, judged before they get there.

Templates expect content as one string, absent fields absent, and tool arguments as objects.  Invariant: what comes out
holds nothing the caller did not send; what cannot be made plain is refused with its path.  Knows nothing about
templates or tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from twostroke.errors import InvalidParameter
from twostroke.text.conversation import Message, Role, Tool, ToolCall

ROLES = ("system", "developer", "user", "assistant", "tool", "function")  # a template may write one into a token's name
_SAME_ROLES: Mapping[str, Role] = {"developer": "system", "function": "tool"}


def plain_messages(messages: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """The messages with content as a string, nulls left out and tool arguments parsed.

    Raises:
        InvalidParameter: there is no message, or one is malformed; `param` is its path.
    """
    if not messages:
        raise InvalidParameter("messages is empty; send at least one message", param="messages")
    return [_message(message, f"messages[{index}]") for index, message in enumerate(messages)]


def _message(message: object, path: str) -> dict[str, object]:
    if not isinstance(message, Mapping):
        raise InvalidParameter(f"{path} is {type(message).__name__}, not an object with role and content", param=path)
    role = message.get("role")
    if role not in ROLES:
        known = ", ".join(ROLES)
        raise InvalidParameter(f"{path}.role is {role!r}; it must be one of {known}", param=f"{path}.role")
    plain = {key: value for key, value in message.items() if value is not None}
    plain["content"] = _content(message.get("content"), f"{path}.content", optional=role == "assistant")
    if "tool_calls" in plain:
        plain["tool_calls"] = _tool_calls(plain["tool_calls"], f"{path}.tool_calls")
    return plain


def _content(content: object, path: str, *, optional: bool) -> str:
    """One text; several parts are separated by line breaks."""
    if isinstance(content, str):
        return content
    if content is None and optional:
        return ""
    if not isinstance(content, list | tuple):
        found = "missing" if content is None else type(content).__name__
        raise InvalidParameter(f"{path} is {found}; send a string or a list of text parts", param=path)
    return "\n".join(_part(part, f"{path}[{index}]") for index, part in enumerate(content))


def _part(part: object, path: str) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    if not isinstance(part, Mapping) or kind != "text":
        raise InvalidParameter(f"{path} is a part of type {kind!r}; only text is understood here", param=f"{path}.type")
    text = part.get("text")
    if not isinstance(text, str):
        raise InvalidParameter(f"{path}.text is {type(text).__name__}, not a string", param=f"{path}.text")
    return text


def _tool_calls(calls: object, path: str) -> list[object]:
    if not isinstance(calls, list | tuple):
        raise InvalidParameter(f"{path} is {type(calls).__name__}, not a list", param=path)
    return [_tool_call(call) for call in calls]


def _tool_call(call: object) -> object:
    """The call with its arguments as an object, where they are the JSON text of one."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping):
        return call
    return {**call, "function": {**function, "arguments": _parsed(function.get("arguments"))}}


def _parsed(arguments: object) -> object:
    try:
        parsed = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments
    return parsed if isinstance(parsed, dict) else arguments


def template_message(message: Message) -> dict[str, Any]:
    """The message as templates expect it; what it does not have is absent."""
    plain: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.reasoning:
        plain["reasoning_content"] = message.reasoning
    if message.calls:
        plain["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": _parsed(c.arguments)}}
            for c in message.calls
        ]
    named = {"tool_call_id": message.call_id, "name": message.name}
    return plain | {key: value for key, value in named.items() if value is not None}


def template_tool(tool: Tool) -> dict[str, Any]:
    """The tool as templates expect it, its keys in OpenAI's order, those that were not sent absent."""
    given = {"description": tool.description, "parameters": tool.parameters}
    return {
        "type": "function",
        "function": {"name": tool.name} | {key: value for key, value in given.items() if value is not None},
    }


def check_calls(messages: Sequence[Message], *, results_required: bool = False) -> None:
    """Judge that calls and their results belong together.

    Raises:
        InvalidParameter: a result answers a call that no earlier message made, a call's arguments are no JSON object,
            or, with `results_required`, a call has no result before the next message of another kind.
    """
    known: set[str] = set()
    open_calls: dict[str, str] = {}  # paths by id
    for message in messages:
        if message.role == "tool":
            _check_result(message, known)
            open_calls.pop(message.call_id or "", None)
        elif message.role != "system" and results_required:
            _check_answered(open_calls)
        for index, call in enumerate(message.calls):
            path = f"{message.path}.tool_calls[{index}]"
            _check_arguments(call, path)
            known.add(call.id)
            open_calls[call.id] = path
    if results_required:
        _check_answered(open_calls)


def _check_result(message: Message, known: Collection[str]) -> None:
    if message.call_id not in known:
        raise InvalidParameter(
            f"{message.path} is the result of the call {message.call_id!r}, which no message before it made; "
            "send the assistant's message with that call first",
            param=message.path,
        )


def _check_answered(open_calls: Mapping[str, str]) -> None:
    for own, path in open_calls.items():
        raise InvalidParameter(f"{path} is the call {own!r}, which has no result; send its result next", param=path)


def _check_arguments(call: ToolCall, path: str) -> None:
    if not isinstance(_parsed(call.arguments), dict):
        path = f"{path}.function.arguments"
        raise InvalidParameter(f"{path} is {call.arguments[:60]!r}; send the JSON text of an object", param=path)


def takes_late_systems(render: Callable[[list[dict[str, Any]]], str]) -> bool:
    """Whether a template writes system messages that stand between the others; `render` runs it."""
    roles: tuple[Role, ...] = ("system", "user", "assistant", "system", "user")
    try:
        text = render([{"role": role, "content": f"probe {index}"} for index, role in enumerate(roles)])
    except InvalidParameter:
        return False
    return "probe 3" in text


def late_systems_as_users(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages for a template that takes a system message in the first place only.

    A later one speaks as the user where it stands, so that a conversation's beginning stays as it was; user messages
    that then meet become one, since such templates want turns to alternate.
    """
    found: list[Message] = []
    for index, message in enumerate(messages):
        late = index > 0 and message.role == "system"
        spoken = replace(message, role="user") if late else message
        beside = late or (index > 1 and messages[index - 1].role == "system")
        if beside and spoken.role == found[-1].role == "user":
            found[-1] = replace(found[-1], parts=(*found[-1].parts, *spoken.parts))
        else:
            found.append(spoken)
    return tuple(found)
