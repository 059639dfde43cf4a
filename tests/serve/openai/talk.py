"""Bodies, events and a text of bytes that knows thoughts and calls: what the tests of this format share.

An answer's text marks thoughts as `[t]…[/t]` and calls as `[c NAME]ARGUMENTS[/c]`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.serve.scripted import ByteText, service
from twostroke.errors import InvalidParameter, RequestError
from twostroke.serve import openai
from twostroke.serve.fields import Fields
from twostroke.serve.format import Format, Writer
from twostroke.serve.service import Service
from twostroke.serve.submission import Caller, Submission
from twostroke.text.conversation import Conversation, ToolCall
from twostroke.text.formats import Format as Shape
from twostroke.text.pieces import CallArguments, CallEnd, CallStart, Piece, Thought, Words
from twostroke.text.prompt import PartEnd, Prompt
from twostroke.types import (
    DecodePhase,
    Delta,
    Done,
    Event,
    FinishReason,
    Logprobs,
    Phases,
    PrefillPhase,
    TokenLogprob,
)

CHAT, TEXT = openai.FORMATS
CALLER = Caller("chatcmpl-1", arrived_s=5.0, created=1700000000)
USER: list[Any] = [{"role": "user", "content": "hello"}]
TAGS = ("[t]", "[/t]", "[c ", "[/c]")


@dataclass
class TagReader:
    """Reads the marks above; a mark that is cut in two waits."""

    held: str = ""
    inside: str = ""  # "t", "c" or "": thought, call, words
    calls: int = 0

    def feed(self, text: str) -> Sequence[Piece]:
        self.held += text
        found: list[Piece] = []
        while (piece := self._next()) is not None:
            found += piece
        return found

    def flush(self) -> Sequence[Piece]:
        rest, self.held = self.held, ""
        ends = [CallEnd(self.calls - 1)] if self.inside == "c" else []
        return [*self._said(rest), *ends]

    def _next(self) -> Sequence[Piece] | None:
        at = self.held.find("[")
        if at:
            text = self.held if at < 0 else self.held[:at]
            self.held = self.held[len(text) :]
            return self._said(text) if text else None
        if not self.held:
            return None
        if self.held.startswith("[c "):
            return self._call()
        tag = next((tag for tag in TAGS if self.held.startswith(tag)), None)
        if tag is None and any(tag.startswith(self.held) for tag in TAGS):
            return None
        self.held = self.held[len(tag or "[") :]
        if tag is None:
            return self._said("[")
        ends = [CallEnd(self.calls - 1)] if tag == "[/c]" else []
        self.inside = "t" if tag == "[t]" else ""
        return ends

    def _call(self) -> Sequence[Piece] | None:
        name, closed, rest = self.held[3:].partition("]")
        if not closed:
            return None
        self.held, self.inside = rest, "c"
        self.calls += 1
        return [CallStart(self.calls - 1, name)]

    def _said(self, text: str) -> list[Piece]:
        if not text:
            return []
        said = {"t": Thought(text), "c": CallArguments(self.calls - 1, text), "": Words(text)}
        return [said[self.inside]]


class PlainReader:
    """Everything is words."""

    def feed(self, text: str) -> Sequence[Piece]:
        return [Words(text)] if text else []

    def flush(self) -> Sequence[Piece]:
        return []


@dataclass
class TaggedText(ByteText):
    """A conversation's prompt is the bytes of all its texts; grammars and answers are recorded."""

    shapes: list[tuple[Shape | None, Conversation | None]] = field(default_factory=list)
    kept: list[tuple[str, str, Sequence[ToolCall], tuple[int, ...]]] = field(default_factory=list)
    named: list[str] = field(default_factory=list)

    def prompt(self, conversation: Conversation, namespace: str) -> Prompt:
        self.named.append(namespace)
        ids, ends = b"", []
        for message in conversation.messages:
            for part in message.parts:
                ids += part.text.encode()
                ends.append(PartEnd(len(ids), part.path, part.ttl_s))
        return Prompt(tuple(ids), tuple(ends))

    def remember(
        self, namespace: str, words: str, thoughts: str, calls: Sequence[ToolCall], tokens: Sequence[int]
    ) -> None:
        self.kept.append((words, thoughts, calls, tuple(tokens)))

    def reader(self, conversation: Conversation | None) -> TagReader | PlainReader:
        return PlainReader() if conversation is None else TagReader()

    def grammar(self, format: Shape | None, conversation: Conversation | None) -> None:
        self.shapes.append((format, conversation))

    def infill(self, prefix: str, suffix: str) -> Sequence[int]:
        if "?" in prefix:
            raise InvalidParameter("suffix needs other tokens", param="suffix")
        return tuple(f"<{prefix}|{suffix}>".encode())


def tagged(**settings: object) -> Service:
    """A service whose text knows thoughts and calls."""
    return replace(service(**settings), text=TaggedText())  # type: ignore[arg-type]


SERVICE = tagged()


def chat(over: Service | None = None, caller: Caller = CALLER, **fields: Any) -> Submission:
    return CHAT.parse(Fields({"messages": USER, **fields}), over or tagged(), caller)


def text(over: Service | None = None, **fields: Any) -> Submission:
    return TEXT.parse(Fields({"prompt": "hello", **fields}), over or tagged(), replace(CALLER, id="cmpl-1"))


def refused(read: Callable[..., Submission], **fields: Any) -> RequestError:
    """The error of a body, which names the field it is about."""
    with pytest.raises(RequestError) as caught:
        read(**fields)
    error = caught.value
    assert not isinstance(error, InvalidParameter) or (error.param or "").split(".")[-1] in error.message
    return error


def writer(wire: Format = CHAT, over: Service | None = None, **fields: Any) -> Writer:
    over = over or tagged()
    return wire.writer(chat(over, **fields) if wire is CHAT else text(over, **fields), over)


def phases(
    *, drafted: int = 0, accepted: tuple[int, ...] = (), steps: int = 1, cached: int = 2, miss: str | None = None
) -> Phases:
    """The account of an answer to a prompt of 5 tokens."""
    return Phases(
        queue_ms=1.0,
        ttft_ms=3.0,
        tpot_ms=4.0,
        prefill=PrefillPhase(5, cached, 5 - cached, 2.0, 2.0, 0.5, miss),
        decode=DecodePhase(
            output_tokens=steps + sum(accepted), steps=steps, drafted=drafted, accepted=sum(accepted),
            accepted_per_position=accepted, ms=8.0, own_ms=8.0, draft_ms=0.0, saved_ms=0.0,
            drafted_steps=steps if drafted else 0, accepted_by={"prediction": sum(accepted)},
        ),
    )  # fmt: skip


def done(choice: int = 0, reason: FinishReason = FinishReason.STOP, account: Phases | None = None) -> Done:
    return Done(choice, reason, account or phases())


def delta(said: str, choice: int = 0, **more: Any) -> Delta:
    return Delta(choice, tuple(said.encode()), **more)


def logprob(token: int, *others: int) -> Logprobs:
    """The token at -0.5, and alternatives at -1, -2, …"""
    top = tuple(TokenLogprob(other, -1.0 - i) for i, other in enumerate(others))
    return Logprobs(TokenLogprob(token, -0.5), top)


def events(wire: Writer, *given: Event, place: int = 0) -> bytes:
    """A whole stream."""
    return b"".join([*wire.begin(), *(line for event in given for line in wire.take(place, event)), *wire.finish()])


def chunks(stream: bytes) -> list[Any]:
    """The JSON of a stream's chunks, which ends as it must."""
    *found, last = stream.decode().removesuffix("\n\n").split("\n\n")
    assert last == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in found]


def whole(wire: Writer, *given: Event, place: int = 0) -> dict[str, Any]:
    """A whole body."""
    for event in given:
        list(wire.take(place, event))
    return json.loads(json.dumps(wire.whole(), allow_nan=False))


def cut(raw: Iterable[int], cuts: Sequence[int]) -> list[Delta]:
    """The tokens as deltas that end at `cuts`."""
    tokens = tuple(raw)
    edges = sorted(min(at, len(tokens)) for at in cuts)
    return [Delta(0, tokens[a:b]) for a, b in zip([0, *edges], [*edges, len(tokens)], strict=True)]
