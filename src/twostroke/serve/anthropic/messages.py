"""Messages of a body become a conversation's: thoughts, calls and results go to their own places.

A user message with results becomes one tool message per result, in the order sent, then what the user says.  Knows
nothing about templates or tokens.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from twostroke.errors import InvalidParameter
from twostroke.serve.anthropic.blocks import blocks, needed, part, parts, unreadable
from twostroke.serve.anthropic.markers import Markers
from twostroke.serve.fields import Fields, shown
from twostroke.text.conversation import Message, Part, ToolCall

ROLES = ("user", "assistant", "system")
SYSTEM = "system"  # the path of the body's own system prompt
BILLING = "x-anthropic-billing-header:"  # begins a block for Anthropic's accounts: it varies and tells a model nothing


def system(fields: Fields, markers: Markers) -> tuple[Message, ...]:
    """The system prompt as the first message; none where it says nothing."""
    found = [part(block, markers) for block in blocks(fields, "system") if not _billing(block)]
    said = tuple(item for item in found if item is not None)
    return (Message("system", said, path=SYSTEM),) if said else ()


def _billing(block: Fields) -> bool:
    text = block.get("text")
    return isinstance(text, str) and text.startswith(BILLING)


def messages(fields: Fields, markers: Markers) -> tuple[Message, ...]:
    """The messages.  Raises `InvalidParameter` with the path of what is wrong, results without calls included."""
    given = fields.array("messages")
    if not given:
        raise InvalidParameter("messages must hold at least one message", param="messages")
    found = [one for i, value in enumerate(given) for one in _message(value, f"messages[{i}]", markers)]
    check_calls(found)
    return tuple(found)


def _message(value: object, path: str, markers: Markers) -> Sequence[Message]:
    if not isinstance(value, dict):
        raise InvalidParameter(f"{path} must be an object with role and content, not {shown(value)}", param=path)
    message = Fields(value, path)
    role = message.get("role")
    if role not in ROLES:
        raise message.wrong("role", "one of " + ", ".join(ROLES))
    if message.get("content") is None:
        raise message.wrong("content", "a string or an array of content blocks")
    if role == "assistant":
        return (_assistant(message, markers),)
    if role == "system":
        return (Message("system", parts(message, "content", markers), path=path),)
    return _user(message, markers)


def _user(message: Fields, markers: Markers) -> Sequence[Message]:
    results: list[Message] = []
    said: list[Part] = []
    for block in blocks(message, "content"):
        if block.get("type") == "tool_result":
            results.append(_result(block, markers))
        elif (item := part(block, markers)) is not None:
            said.append(item)
    spoken = [Message("user", tuple(said), path=message.path)] if said or not results else []
    return [*results, *spoken]


def _result(block: Fields, markers: Markers) -> Message:
    """A result; of one that is an error the text says so."""
    found = parts(block, "content", markers) or (Part("", block.path),)
    ttl_s = markers.read(block)
    if ttl_s is not None:
        found = (*found[:-1], replace(found[-1], ttl_s=ttl_s))
    if block.flag("is_error", False):
        found = (replace(found[0], text=f"Error: {found[0].text}".rstrip()), *found[1:])
    return Message("tool", found, call_id=needed(block, "tool_use_id"), path=block.path)


def _assistant(message: Fields, markers: Markers) -> Message:
    said: list[Part] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    before = ""  # the kind of the block before
    for block in blocks(message, "content"):
        kind = block.get("type")
        if kind in ("thinking", "redacted_thinking"):
            thoughts += _thought(block)
        elif kind == "tool_use":
            calls.append(_call(block, markers))
        elif kind == "text":
            _say(part(block, markers), said, cut=before not in ("", "text"))
        else:
            raise unreadable(block)
        before = str(kind)
    return Message("assistant", tuple(said), "".join(thoughts), tuple(calls), path=message.path)


def _say(item: Part | None, said: list[Part], *, cut: bool) -> None:
    """Add text; what a call or a thought cut in two is one text again, as it was written."""
    if item is not None and cut and said:
        said[-1] = replace(item, text=said[-1].text + item.text, ttl_s=item.ttl_s or said[-1].ttl_s)
    elif item is not None:
        said.append(item)


def _thought(block: Fields) -> Sequence[str]:
    """The text of a thinking block; its signature and what is redacted say nothing to a model."""
    if block.get("cache_control") is not None:
        path = block.at("cache_control")
        raise InvalidParameter(f"{path} is not allowed on a thinking block; set it on the block after", param=path)
    return () if block.get("type") == "redacted_thinking" else (needed(block, "thinking"),)


def _call(block: Fields, markers: Markers) -> ToolCall:
    given = block.object("input")
    if given is None:
        raise block.wrong("input", "an object")
    arguments = json.dumps(given.values, ensure_ascii=False)
    return ToolCall(needed(block, "id"), needed(block, "name"), arguments, markers.read(block))


def check_calls(messages: Sequence[Message]) -> None:
    """Every call has its result in the next user message, every result its call in the assistant message before.

    Raises `InvalidParameter` with the path and the id of one that has not.
    """
    unanswered: dict[str, str] = {}  # path of the message by the id of its call
    for message in messages:
        if message.role == "tool":
            _answer(message, unanswered)
        elif message.role != "system":
            _check_answered(unanswered)
            for call in message.calls:
                _open(call, message, unanswered)
    _check_answered(unanswered)


def _answer(result: Message, unanswered: dict[str, str]) -> None:
    if unanswered.pop(result.call_id or "", None) is None:
        path = f"{result.path}.tool_use_id"
        raise InvalidParameter(
            f"{path} is {shown(result.call_id)}, which no unanswered tool_use of the message before has; "
            "send every result once, right after its call",
            param=path,
        )


def _open(call: ToolCall, message: Message, unanswered: dict[str, str]) -> None:
    if call.id in unanswered:
        raise InvalidParameter(
            f"{message.path} holds two tool_use blocks with the id {shown(call.id)}; ids must differ",
            param=message.path,
        )
    unanswered[call.id] = message.path


def _check_answered(unanswered: dict[str, str]) -> None:
    for name, path in unanswered.items():
        raise InvalidParameter(
            f"{path} holds the tool_use {shown(name)} without a tool_result in the next user message; send its result",
            param=path,
        )
