"""Input items become messages.

Items that follow each other from the assistant (reasoning, message, calls) are one answer and become one message, so
that the prompt repeats what was generated.  A call must be answered, and an output must answer a call.  Reasoning that
another server sealed says nothing here and is left out; ours carries its text.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from twostroke.errors import InvalidParameter
from twostroke.serve.caching import Caching, lifetime_s
from twostroke.serve.fields import Fields, check_text, shown
from twostroke.serve.responses.tools import Toolbox
from twostroke.text.conversation import Message, Part, ToolCall

SEAL = "twostroke:"  # our reasoning begins with it
TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}  # part -> its field
ROLES: Mapping[Any, Literal["system", "user"]] = {"user": "user", "system": "system", "developer": "system"}


def sealed(thoughts: str) -> str:
    """Reasoning as `encrypted_content`: opaque to the client, who sends it back as it is."""
    return SEAL + base64.b64encode(thoughts.encode("utf-8")).decode("ascii")


def unsealed(content: str | None) -> str:
    """The reasoning that `sealed` sealed, "" for anything else."""
    if content is None or not content.startswith(SEAL):
        return ""
    try:
        return base64.b64decode(content.removeprefix(SEAL), validate=True).decode("utf-8")
    except ValueError:
        return ""


def messages(items: Iterable[tuple[str, Any]], box: Toolbox, cache: Caching) -> tuple[Message, ...]:
    """The messages that items under their paths make.

    `cache` has the lifetime of a breakpoint that names none.  Raises `InvalidParameter`.
    """
    turns = Turns(box, cache)
    for path, value in items:
        turns.add(path, value)
    turns.close()
    return tuple(turns.messages)


@dataclass(slots=True)
class Answer:
    """An assistant's message as its items come."""

    path: str
    parts: list[Part] = field(default_factory=list)
    reasoning: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    after_call: bool = False  # the last item was a call

    def say(self, part: Part) -> None:
        """Another message item.  Text after a call belongs to the text before it: the model wrote them in one go."""
        if self.after_call and self.parts:
            last = self.parts.pop()
            part = Part(last.text + part.text, last.path, part.ttl_s or last.ttl_s)
        self.parts.append(part)
        self.after_call = False

    def message(self) -> Message:
        return Message("assistant", tuple(self.parts), self.reasoning, tuple(self.calls), path=self.path)


@dataclass(slots=True)
class Turns:
    """Messages as items add to them."""

    box: Toolbox
    cache: Caching
    messages: list[Message] = field(default_factory=list)
    answer: Answer | None = None
    waiting: dict[str, tuple[str, str]] = field(default_factory=dict)  # calls without an output: name and path

    def add(self, path: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise InvalidParameter(f"{path} must be an object, not {shown(value)}", param=path)
        item = Fields(value, path)
        kind = item.get("type") or ("message" if "role" in value else None)
        read = READERS.get(kind) if isinstance(kind, str) else None
        if read is None:
            raise InvalidParameter(
                f"{item.at('type')} {shown(kind)} is no item this server reads; send {', '.join(READERS)}",
                param=item.at("type"),
            )
        read(self, item)

    def speaking(self, path: str) -> Answer:
        """The assistant's message that is being put together."""
        if self.answer is None:
            self._answered()
            self.answer = Answer(path)
        return self.answer

    def interrupt(self) -> None:
        """Whatever follows is not the assistant's."""
        if self.answer is not None:
            self.messages.append(self.answer.message())
            self.answer = None

    def close(self) -> None:
        """There are no more items."""
        self.interrupt()
        self._answered()

    def heard(self, message: Message) -> None:
        """A message that is neither the assistant's nor a tool's."""
        self.interrupt()
        self._answered()
        self.messages.append(message)

    def _answered(self) -> None:
        for call, (_, path) in self.waiting.items():
            raise InvalidParameter(
                f"{path} calls {shown(call)} and no output follows; send its function_call_output", param=path
            )

    def message(self, item: Fields) -> None:
        role, parts = item.text("role"), self.parts(item, "content")
        if role == "assistant":
            self.speaking(item.path).say(_joined(parts, item.path))
        elif role in ROLES:
            self.heard(Message(ROLES[role], parts, path=item.path))
        else:
            raise item.wrong("role", "user, assistant, system or developer")

    def reasoning(self, item: Fields) -> None:
        thoughts = "".join(part.text for part in _thoughts(item)) or unsealed(item.text("encrypted_content"))
        if thoughts:
            self.speaking(item.path).reasoning += check_text(thoughts, item.path)

    def function_call(self, item: Fields) -> None:
        self._call(item, _text(item, "arguments"))

    def custom_tool_call(self, item: Fields) -> None:
        self._call(item, json.dumps({"input": _text(item, "input")}, ensure_ascii=False))

    def _call(self, item: Fields, arguments: str) -> None:
        call_id, name = _text(item, "call_id"), _text(item, "name")
        name = self.box.find(name, item.text("namespace")) or name
        answer = self.speaking(item.path)
        answer.calls.append(ToolCall(call_id, name, arguments))
        answer.after_call = True
        self.waiting[call_id] = name, item.path

    def output(self, item: Fields) -> None:
        call_id = _text(item, "call_id")
        if call_id not in self.waiting:
            raise InvalidParameter(
                f"{item.path} is an output of the call {shown(call_id)}, which no item before it makes; "
                "send the function_call first, and one output for each",
                param=item.at("call_id"),
            )
        name, _ = self.waiting.pop(call_id)
        parts = self.parts(item, "output")
        self.interrupt()
        self.messages.append(Message("tool", parts, call_id=call_id, name=name, path=item.path))

    def parts(self, item: Fields, name: str) -> tuple[Part, ...]:
        value = item.get(name)
        if isinstance(value, str):
            return (Part(value, item.at(name)),)
        if not isinstance(value, list):
            raise item.wrong(name, "a string or an array of text parts")
        return tuple(self._part(part, f"{item.at(name)}[{i}]") for i, part in enumerate(value))

    def _part(self, value: Any, path: str) -> Part:
        part = Fields(value if isinstance(value, dict) else {}, path)
        kind = part.get("type")
        if not isinstance(kind, str) or kind not in TEXTS:
            raise InvalidParameter(
                f"{part.at('type')} {shown(kind)} cannot be read by this model; send input_text", param=part.at("type")
            )
        text = part.text(TEXTS[kind])
        if text is None:
            raise part.wrong(TEXTS[kind], "a string")
        mark = part.object("prompt_cache_breakpoint")
        return Part(text, path, None if mark is None else lifetime_s(mark) or self.cache.lifetime_s)


def _text(item: Fields, name: str) -> str:
    value = item.text(name)
    if value is None:
        raise item.wrong(name, "a string")
    return value


def _joined(parts: tuple[Part, ...], path: str) -> Part:
    """The text of one assistant item: its parts were written without a break."""
    return Part(
        "".join(part.text for part in parts),
        parts[-1].path if parts else path,
        next((part.ttl_s for part in reversed(parts) if part.ttl_s), None),
    )


def _thoughts(item: Fields) -> Iterable[Part]:
    for index, value in enumerate(item.array("content") or ()):
        part = Fields(value if isinstance(value, dict) else {}, f"{item.at('content')}[{index}]")
        yield Part(_text(part, "text"), part.path)


READERS: Mapping[str, Callable[[Turns, Fields], None]] = {
    "message": Turns.message,
    "reasoning": Turns.reasoning,
    "function_call": Turns.function_call,
    "function_call_output": Turns.output,
    "custom_tool_call": Turns.custom_tool_call,
    "custom_tool_call_output": Turns.output,
}
