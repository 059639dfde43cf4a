"""A conversation as plain values: what every wire format parses into and what prompts are rendered from.

Nothing here was judged against a model; paths say where the client wrote each thing, for errors and for the accounts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a message's text.  `ttl_s`: a cache breakpoint ends here, and asks for this lifetime."""

    text: str
    path: str = ""  # as in "messages[3].content[0]"
    ttl_s: float | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model made.  `arguments` is JSON text."""

    id: str
    name: str
    arguments: str
    ttl_s: float | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message.  Parts are joined by line breaks."""

    role: Role
    parts: tuple[Part, ...] = ()
    reasoning: str = ""  # assistant: what it thought before, sent back by the client
    calls: tuple[ToolCall, ...] = ()  # assistant
    call_id: str | None = None  # tool: the call this is the result of
    name: str | None = None
    path: str = ""  # as in "messages[3]"

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the model may call.  `parameters` is a JSON schema, None for no arguments."""

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] | None = None
    strict: bool = False
    path: str = ""  # as in "tools[2]"
    ttl_s: float | None = None


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether the model may, must or must not call; with `name` it must call that one."""

    mode: Literal["auto", "none", "required"] = "auto"
    name: str | None = None  # with "required"
    parallel: bool = True  # more than one call per answer
    allowed: tuple[str, ...] | None = None  # the tools that may be called; the others only stand in the prompt


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a prompt is rendered from."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    choice: ToolChoice = ToolChoice()
    thinking: bool | None = None  # whether the model should think first; None for the template's own default
    arguments: Mapping[str, Any] = field(default_factory=dict)  # more variables for the template
    continue_final: bool = False  # the last message is the beginning of the answer

    @property
    def callable_tools(self) -> tuple[Tool, ...]:
        """The tools this answer may call."""
        if self.choice.mode == "none":
            return ()
        named = (tool for tool in self.tools if self.choice.name in (None, tool.name))
        return tuple(tool for tool in named if self.choice.allowed is None or tool.name in self.choice.allowed)
