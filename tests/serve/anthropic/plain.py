"""A model of bytes whose prompts are whole conversations, and whose answers mark thoughts and calls with one character.

\\x01 … \\x02 is a thought; \\x03 NAME \\x04 ARGUMENTS \\x05 is a call; anything else is words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tests.serve.scripted import END, ByteText, service
from twostroke.serve import anthropic
from twostroke.serve.fields import Fields
from twostroke.serve.service import Service
from twostroke.serve.submission import Caller, Submission
from twostroke.text.conversation import Conversation, Message, ToolCall
from twostroke.text.formats import Format
from twostroke.text.pieces import CallArguments, CallEnd, CallStart, Piece, Thought, Words
from twostroke.text.prompt import PartEnd, Prompt
from twostroke.types import DecodePhase, Delta, Done, Event, FinishReason, Grammar, Phases, PrefillPhase

(FORMAT,) = anthropic.FORMATS
CALLER = Caller("msg_1", created=17)
ASK = {"model": "echo", "max_tokens": 64, "messages": [{"role": "user", "content": "hello"}]}
TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}


def joined(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Neighbours of one kind as one piece."""
    found: list[Piece] = []
    for piece in pieces:
        match found[-1:], piece:
            case [Words(before)], Words(text):
                found[-1] = Words(before + text)
            case [Thought(before)], Thought(text):
                found[-1] = Thought(before + text)
            case [CallArguments(index, before)], CallArguments(_, text):
                found[-1] = CallArguments(index, before + text)
            case _:
                found.append(piece)
    return found


class MarkedReader:
    """Every character is certain at once."""

    def __init__(self) -> None:
        self._kind, self._name, self._calls = "words", "", 0

    def feed(self, text: str) -> Sequence[Piece]:
        return joined([piece for character in text for piece in self._one(character)])

    def _one(self, character: str) -> Sequence[Piece]:
        if character == "\x03":
            self._kind, self._name = "name", ""
        elif character == "\x04":
            self._kind = "arguments"
            self._calls += 1
            return [CallStart(self._calls - 1, self._name)]
        elif character in "\x01\x02\x05":
            self._kind = "thought" if character == "\x01" else "words"
            return [CallEnd(self._calls - 1)] if character == "\x05" else []
        elif self._kind == "name":
            self._name += character
        elif self._kind == "arguments":
            return [CallArguments(self._calls - 1, character)]
        else:
            return [Thought(character) if self._kind == "thought" else Words(character)]
        return []

    def flush(self) -> Sequence[Piece]:
        return [CallEnd(self._calls - 1)] if self._kind == "arguments" else []


class PlainText(ByteText):
    """Bytes of everything a conversation says, one part after another."""

    def __init__(self) -> None:
        self.remembered: list[tuple[str, str, Sequence[ToolCall], Sequence[int]]] = []
        self.formats: list[Format | None] = []

    def prompt(self, conversation: Conversation, namespace: str) -> Prompt:
        ids: list[int] = []
        parts: list[PartEnd] = []
        for path, text, ttl_s in written(conversation):
            ids += text.encode()
            parts.append(PartEnd(len(ids), path, ttl_s))
        return Prompt((*ids, 10), tuple(parts))

    def remember(
        self, namespace: str, words: str, thoughts: str, calls: Sequence[ToolCall], tokens: Sequence[int]
    ) -> None:
        self.remembered.append((words, thoughts, calls, tuple(tokens)))

    def reader(self, conversation: Conversation | None) -> MarkedReader:
        return MarkedReader()

    def grammar(self, format: Format | None, conversation: Conversation | None) -> Callable[[], Grammar] | None:
        self.formats.append(format)
        return None


def written(conversation: Conversation) -> list[tuple[str, str, float | None]]:
    """What the prompt holds: path, text and lifetime of each part."""
    tools = [(t.path, json.dumps([t.name, t.parameters]), t.ttl_s) for t in conversation.tools]
    return tools + [part for message in conversation.messages for part in _said(message)]


def _said(message: Message) -> list[tuple[str, str, float | None]]:
    parts = [(part.path or message.path, part.text, part.ttl_s) for part in message.parts]
    return parts + [(message.path, call.name + call.arguments, call.ttl_s) for call in message.calls]


def serving(**settings: Any) -> Service:
    return replace(service(**{"context": 4096, **settings}), text=PlainText())


SERVICE = serving()


def parsed(base: Service = SERVICE, caller: Caller = CALLER, **fields: Any) -> Submission:
    return FORMAT.parse(Fields({**ASK, **fields}), base, caller)


def tokens(text: str, *, ends: bool = True) -> tuple[int, ...]:
    return (*text.encode(), *((END,) if ends else ()))


def done(
    submission: Submission, answer: Sequence[int], reason: FinishReason = FinishReason.STOP, *, cached: int = 0
) -> Done:
    prompt = len(submission.prompts[0].ids)
    return Done(
        0,
        reason,
        Phases(
            1.0, 3.0, 4.0,
            PrefillPhase(prompt, cached, prompt - cached, 2.0, 2.0, 0.5, None),
            DecodePhase(len(answer), len(answer), 0, 0, (), 8.0, 8.0, 0.0, 0.0),
        ),
    )  # fmt: skip


def events(
    submission: Submission,
    answer: Sequence[int],
    cuts: Sequence[int] = (),
    reason: FinishReason = FinishReason.STOP,
    *,
    cached: int = 0,
) -> list[Event]:
    """The answer in deltas that end before each of `cuts`, and its end."""
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(answer)}), len(answer)]
    deltas: list[Event] = [Delta(0, tuple(answer[a:b])) for a, b in pairwise(edges) if b > a]
    return [*deltas, done(submission, answer, reason, cached=cached)]


def streamed(submission: Submission, happened: Sequence[Event], base: Service = SERVICE) -> bytes:
    writer = FORMAT.writer(submission, base)
    found = list(writer.begin())
    for event in happened:
        found += writer.take(0, event)
    return b"".join([*found, *writer.finish()])


def whole(submission: Submission, happened: Sequence[Event], base: Service = SERVICE) -> dict[str, Any]:
    writer = FORMAT.writer(submission, base)
    for event in happened:
        for _ in writer.take(0, event):
            pass
    return writer.whole()


def payloads(stream: bytes) -> list[dict[str, Any]]:
    """The events of a stream; each one's name is its type."""
    found = []
    for event in stream.decode().removesuffix("\n\n").split("\n\n"):
        name, data = event.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    return found
