"""Output items as they grow, and the events that tell of them.

An item is opened, grows and is closed: thoughts, a message, a call of a function, or a call of a free-text tool.  An
event is its name and its fields; who sends it numbers it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Protocol

from twostroke.serve.responses.items import sealed
from twostroke.serve.responses.tools import Known
from twostroke.serve.submission import Json

Told = tuple[str, Json]


class Item(Protocol):
    """One output item."""

    def open(self) -> Iterator[Told]:
        """The events that begin it."""
        ...

    def grow(self, text: str, logprobs: Sequence[Json] = ()) -> Iterator[Told]:
        """The events of more text."""
        ...

    def close(self, status: str) -> Iterator[Told]:
        """The events that end it, "completed" or "incomplete"."""
        ...

    def body(self) -> Json:
        """The item as it stands in the response."""
        ...


class Written:
    """What all items share: a place, a text, and the events around them."""

    def __init__(self, id: str, place: int) -> None:
        self.id, self.place = id, place
        self.text = ""
        self.status = "in_progress"

    def body(self) -> Json:
        raise NotImplementedError

    @property
    def at(self) -> Json:
        return {"item_id": self.id, "output_index": self.place}

    def added(self) -> Told:
        return "response.output_item.added", {"output_index": self.place, "item": self.body()}

    def done(self) -> Told:
        return "response.output_item.done", {"output_index": self.place, "item": self.body()}


class Message(Written):
    """Words: one message with one part of text."""

    def __init__(self, id: str, place: int) -> None:
        super().__init__(id, place)
        self.logprobs: list[Json] = []

    def open(self) -> Iterator[Told]:
        yield self.added()
        yield "response.content_part.added", {**self.at, "content_index": 0, "part": self._part()}

    def grow(self, text: str, logprobs: Sequence[Json] = ()) -> Iterator[Told]:
        self.text += text
        self.logprobs += logprobs
        told = {**self.at, "content_index": 0, "delta": text, "logprobs": list(logprobs)}
        yield "response.output_text.delta", told

    def close(self, status: str) -> Iterator[Told]:
        self.status = status
        told = {**self.at, "content_index": 0, "text": self.text, "logprobs": self.logprobs}
        yield "response.output_text.done", told
        yield "response.content_part.done", {**self.at, "content_index": 0, "part": self._part()}
        yield self.done()

    def body(self) -> Json:
        content = [] if self.status == "in_progress" else [self._part()]
        return {"id": self.id, "type": "message", "status": self.status, "role": "assistant", "content": content}

    def _part(self) -> Json:
        return {"type": "output_text", "text": self.text, "annotations": [], "logprobs": list(self.logprobs)}


class Reasoning(Written):
    """Thoughts, in the open; and sealed for clients that return only that."""

    def __init__(self, id: str, place: int, *, seal: bool) -> None:
        super().__init__(id, place)
        self._seal = seal

    def open(self) -> Iterator[Told]:
        yield self.added()
        yield "response.content_part.added", {**self.at, "content_index": 0, "part": self._part()}

    def grow(self, text: str, logprobs: Sequence[Json] = ()) -> Iterator[Told]:
        self.text += text
        yield "response.reasoning_text.delta", {**self.at, "content_index": 0, "delta": text}

    def close(self, status: str) -> Iterator[Told]:
        self.status = status
        yield "response.reasoning_text.done", {**self.at, "content_index": 0, "text": self.text}
        yield "response.content_part.done", {**self.at, "content_index": 0, "part": self._part()}
        yield self.done()

    def body(self) -> Json:
        over = self.status != "in_progress"
        content = [self._part()] if over else []
        body = {"id": self.id, "type": "reasoning", "summary": [], "content": content, "status": self.status}
        return body | {"encrypted_content": sealed(self.text) if over and self._seal else None}

    def _part(self) -> Json:
        return {"type": "reasoning_text", "text": self.text}


class FunctionCall(Written):
    """A call; its text is its arguments."""

    def __init__(self, id: str, place: int, call_id: str, known: Known) -> None:
        super().__init__(id, place)
        self._call_id, self._known = call_id, known

    def open(self) -> Iterator[Told]:
        yield self.added()

    def grow(self, text: str, logprobs: Sequence[Json] = ()) -> Iterator[Told]:
        self.text += text
        yield "response.function_call_arguments.delta", {**self.at, "delta": text}

    def close(self, status: str) -> Iterator[Told]:
        self.status = status
        told = {**self.at, "name": self._known.name, "arguments": self.text}
        yield "response.function_call_arguments.done", told
        yield self.done()

    def body(self) -> Json:
        call = {"call_id": self._call_id, "name": self._known.name, "arguments": self.text}
        return {"id": self.id, "type": "function_call", "status": self.status} | call | grouped(self._known)


class CustomCall(Written):
    """A call of a free-text tool.  Its text is JSON around the input, so that the input comes whole."""

    def __init__(self, id: str, place: int, call_id: str, known: Known) -> None:
        super().__init__(id, place)
        self._call_id, self._known = call_id, known

    def open(self) -> Iterator[Told]:
        yield self.added()

    def grow(self, text: str, logprobs: Sequence[Json] = ()) -> Iterator[Told]:
        self.text += text
        return iter(())

    def close(self, status: str) -> Iterator[Told]:
        self.status = status
        if self.input:
            yield "response.custom_tool_call_input.delta", {**self.at, "delta": self.input}
        yield "response.custom_tool_call_input.done", {**self.at, "input": self.input}
        yield self.done()

    def body(self) -> Json:
        text = "" if self.status == "in_progress" else self.input
        call = {"call_id": self._call_id, "name": self._known.name, "input": text}
        return {"id": self.id, "type": "custom_tool_call", "status": self.status} | call | grouped(self._known)

    @property
    def input(self) -> str:
        """The string inside; arguments that are none of ours (cut off, or another shape) as they are."""
        try:
            arguments = json.loads(self.text)
        except ValueError:
            return self.text
        given = arguments.get("input") if isinstance(arguments, dict) else None
        return given if isinstance(given, str) else self.text


def grouped(known: Known) -> Json:
    """The group of the called tool, where it has one."""
    return {"namespace": known.group} if known.group else {}
