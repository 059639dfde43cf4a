"""A model of bytes whose prompts are whole conversations and whose answers are read as Qwen's are."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from tests.serve.scripted import END, ByteText, service
from twostroke.serve import responses
from twostroke.serve.fields import Fields
from twostroke.serve.format import Format as WireFormat
from twostroke.serve.responses import ResponseStore
from twostroke.serve.service import Service
from twostroke.serve.submission import Caller, Submission
from twostroke.text.conversation import Conversation, ToolCall
from twostroke.text.formats import Format
from twostroke.text.pieces import Reader
from twostroke.text.prompt import PartEnd, Prompt
from twostroke.text.reasoning import ThinkReader
from twostroke.text.tools.hermes import HERMES
from twostroke.types import (
    DecodePhase,
    Delta,
    Done,
    Event,
    FinishReason,
    Grammar,
    Logprobs,
    Phases,
    PrefillPhase,
    TokenLogprob,
)

TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}
PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Patches.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}
GROUP = {
    "type": "namespace",
    "name": "agents",
    "description": "Other agents.",
    "tools": [
        {"type": "function", "name": "spawn", "description": "Starts one."},
        {"type": "function", "name": "wait"},
    ],
}


def call(name: str, **arguments: Any) -> str:
    """A call as the model writes it."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


class PlainText(ByteText):
    """Bytes of everything a conversation says, one part after another."""

    def __init__(self) -> None:
        self.remembered: list[tuple[str, str, str, Sequence[ToolCall], Sequence[int]]] = []
        self.formats: list[Format | None] = []

    def prompt(self, conversation: Conversation, namespace: str) -> Prompt:
        ids: list[int] = []
        parts: list[PartEnd] = []
        for tool in conversation.tools:
            ids += json.dumps([tool.name, tool.description, tool.parameters]).encode()
            parts.append(PartEnd(len(ids), tool.path))
        for message in conversation.messages:
            ids += (message.reasoning + "".join(c.name + c.arguments for c in message.calls)).encode()
            for part in message.parts:
                ids += part.text.encode()
                parts.append(PartEnd(len(ids), part.path, part.ttl_s))
        return Prompt((*ids, 10), tuple(parts))

    def remember(
        self, namespace: str, words: str, thoughts: str, calls: Sequence[ToolCall], tokens: Sequence[int]
    ) -> None:
        self.remembered.append((namespace, words, thoughts, calls, tuple(tokens)))

    def reader(self, conversation: Conversation | None) -> Reader:
        inner = HERMES.reader(conversation.callable_tools if conversation else ())
        return ThinkReader(inner, opened=False, begin="<think>", end="</think>")

    def grammar(self, format: Format | None, conversation: Conversation | None) -> Callable[[], Grammar] | None:
        self.formats.append(format)
        return None


@dataclass
class Served:
    """A service, a store and the one format over both; answers are given, not computed."""

    service: Service = field(default_factory=lambda: replace(service(context=4096), text=PlainText()))
    store: ResponseStore = field(default_factory=ResponseStore)
    caller: Caller = field(default_factory=lambda: Caller("resp_ab1", created=17))

    @property
    def format(self) -> WireFormat:
        return responses.formats(self.store)[0]

    @property
    def text(self) -> PlainText:
        assert isinstance(self.service.text, PlainText)
        return self.service.text

    def parsed(self, input: Any = "hello", **fields: Any) -> Submission:
        body = {"model": "echo", **({} if input is None else {"input": input}), **fields}
        return self.format.parse(Fields(body), self.service, self.caller)

    def talk(self, input: Any = "hello", **fields: Any) -> Conversation:
        found = self.parsed(input, **fields).conversation
        assert found is not None
        return found

    def streamed(self, submission: Submission, happened: Sequence[Event]) -> bytes:
        writer = self.format.writer(submission, self.service)
        found = list(writer.begin())
        for event in happened:
            found += writer.take(0, event)
        return b"".join([*found, *writer.finish()])

    def whole(self, submission: Submission, happened: Sequence[Event]) -> dict[str, Any]:
        writer = self.format.writer(submission, self.service)
        for event in happened:
            for _ in writer.take(0, event):
                pass
        return writer.whole()

    def answered(self, answer: str, id: str = "resp_ab1", input: Any = "hello", **fields: Any) -> dict[str, Any]:
        """The whole response to a body."""
        self.caller = replace(self.caller, id=id)
        submission = self.parsed(input, **fields)
        return self.whole(submission, events(submission, answer))


def tokens(text: str, *, ends: bool = True) -> tuple[int, ...]:
    return (*text.encode(), *((END,) if ends else ()))


def events(
    submission: Submission,
    answer: str,
    cuts: Sequence[int] = (),
    reason: FinishReason = FinishReason.STOP,
    *,
    cached: int = 0,
) -> list[Event]:
    """The answer in deltas that end before each of `cuts`, and its end."""
    written = tokens(answer, ends=reason is FinishReason.STOP)
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(written)}), len(written)]
    deltas: list[Event] = [
        Delta(0, written[a:b], _logprobs(submission, written[a:b])) for a, b in pairwise(edges) if b > a
    ]
    return [*deltas, Done(0, reason, phases(submission, len(written), cached))]


def phases(submission: Submission, written: int, cached: int) -> Phases:
    prompt = len(submission.prompts[0].ids)
    return Phases(
        1.0, 3.0, 4.0,
        PrefillPhase(prompt, cached, prompt - cached, 2.0, 2.0, 0.5, None),
        DecodePhase(written, written, 0, 0, (), 8.0, 8.0, 0.0, 0.0),
    )  # fmt: skip


def _logprobs(submission: Submission, written: Sequence[int]) -> tuple[Logprobs, ...]:
    count = submission.requests[0].sampling.logprobs
    if count is None:
        return ()
    return tuple(
        Logprobs(TokenLogprob(t, -0.5), tuple(TokenLogprob((t + i) % 256, -0.5 - i) for i in range(count)))
        for t in written
    )


def payloads(stream: bytes) -> list[dict[str, Any]]:
    """The events of a stream; each one's name is its type, and they are numbered from 0."""
    found = []
    for event in stream.decode().removesuffix("\n\n").split("\n\n"):
        name, data = event.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    assert [one["sequence_number"] for one in found] == list(range(len(found)))
    return found
