"""Writes events as a message, whole or as a stream.

A stream is: `message_start` with the first event, a ping, the blocks one after another, then `message_delta` with why
the answer ended and the final counts, then `message_stop`.  The whole message is what the stream adds up to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from twostroke.observe.phases import as_json
from twostroke.serve.accounts import thought_tokens
from twostroke.serve.answer import choices_of, remember
from twostroke.serve.anthropic.content import Content
from twostroke.serve.anthropic.diagnostics import memory
from twostroke.serve.anthropic.parse import Details
from twostroke.serve.anthropic.usage import usage
from twostroke.serve.format import named
from twostroke.serve.service import Service
from twostroke.serve.submission import Json, Submission
from twostroke.text.prompt import Prompt
from twostroke.types import Delta, Event

PING = named("ping", {"type": "ping"})
REASONS = {"stop": "end_turn", "stop_string": "stop_sequence", "tool_calls": "tool_use"}


class MessageWriter:
    """Writes the one choice of a submission."""

    def __init__(self, submission: Submission, service: Service) -> None:
        self._submission = submission
        self._service = service
        self._details: Details = submission.details
        self._choice = choices_of(submission, service)[0]
        self._content = Content(self._call_id, thoughts=self._details.thoughts)
        self._begun = False
        self._diagnostics = self._compared()

    def begin(self) -> Iterable[bytes]:
        """Nothing: `message_start` comes with the first event, when what was reused may be known."""
        return ()

    def take(self, place: int, event: Event) -> Iterator[bytes]:
        """The events of the blocks that grow.  Raises `TwostrokeError` where the answer did not come to its end."""
        if isinstance(event, Delta):
            pieces, _ = self._choice.grow(event)
            cached = event.cached  # told with the first tokens
        else:
            pieces = self._choice.end(event)
            cached = event.phases.prefill.cached_tokens if event.phases else None
        yield from self._begin(cached)
        for piece in pieces:
            yield from map(_event, self._content.add(piece))
        if not isinstance(event, Delta):
            yield from map(_event, self._content.end())

    def finish(self) -> Iterator[bytes]:
        """Why it ended and the final counts."""
        remember([self._choice], self._service)
        ending = {"type": "message_delta", "delta": self._ending(), "usage": self._usage()}
        yield _event(ending | self._edits() | {"phases": as_json(self._choice.phases)})
        yield _event({"type": "message_stop"})

    def whole(self) -> Json:
        """The message."""
        remember([self._choice], self._service)
        content, ending = self._content.blocks, self._ending()
        message = self._message(content, ending["stop_reason"], ending["stop_sequence"], self._usage())
        return message | self._edits() | {"phases": as_json(self._choice.phases)}

    def _begin(self, cached: int | None) -> Iterator[bytes]:
        """`message_start`, once.  What was reused may not be known yet: the whole prompt is plain input then."""
        if self._begun:
            return
        self._begun = True
        prompt = self._prompt if cached is not None else Prompt(self._prompt.ids)
        counts = usage(prompt, cached or 0, 0, 0, publishes=self._publishes)
        yield _event({"type": "message_start", "message": self._message([], None, None, counts)})
        yield PING

    def _message(self, content: list[Json], reason: str | None, stop: str | None, counts: Json) -> Json:
        return {
            "id": self._submission.id,
            "type": "message",
            "role": "assistant",
            "model": self._submission.model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": stop,
            "stop_details": None,
            "usage": counts,
            "diagnostics": self._diagnostics,
        }

    def _ending(self) -> Json:
        stop = self._choice.stop_string if self._choice.reason == "stop_string" else None
        return {"stop_reason": self._stop_reason(), "stop_sequence": stop}

    def _stop_reason(self) -> str:
        reason = self._choice.reason
        if self._submission.prefilled_only:
            return "max_tokens"
        if reason == "length":
            context = self._choice.request.max_tokens < self._details.limit
            return "model_context_window_exceeded" if context else "max_tokens"
        return REASONS[reason]

    def _usage(self) -> Json:
        phases = self._choice.phases
        cached = phases.prefill.cached_tokens if phases else 0
        thought = thought_tokens(self._choice, self._service.text)
        return usage(self._prompt, cached, self._choice.written, thought, publishes=self._publishes)

    def _edits(self) -> Json:
        return {"context_management": {"applied_edits": []}} if self._details.edits else {}

    def _compared(self) -> Json | None:
        """How the prompt begins beside the one before, where the client asked; from now on this one is known too."""
        made_of, namespace = self._details.made_of, self._choice.request.namespace
        if made_of is None:
            return None
        known, previous = memory(self._service), self._details.previous
        found = known.compare(namespace, previous, made_of) if previous is not None else None
        known.add(namespace, self._submission.id, made_of)
        return found

    def _call_id(self, index: int) -> str:
        return "toolu_" + self._choice.calls[index].id.removeprefix("call_")

    @property
    def _prompt(self) -> Prompt:
        return self._submission.prompts[0]

    @property
    def _publishes(self) -> bool:
        return self._choice.request.prefix_cache


def _event(value: Json) -> bytes:
    return named(value["type"], value)
