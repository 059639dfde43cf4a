"""An answer as it grows: tokens become words, thoughts and calls, however a format then writes them.

One `Choice` per continuation.  A step may make several things certain at once, a call's end and the next one's start
among them; they come in the order of the text.  Knows no wire format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from twostroke.errors import Draining, RunnerFailed, TwostrokeError
from twostroke.serve.service import Service, Text, TextStream
from twostroke.serve.submission import Submission
from twostroke.text.conversation import ToolCall
from twostroke.text.pieces import CallArguments, CallEnd, CallStart, Piece, Reader, Thought, Words
from twostroke.types import Delta, Done, FinishReason, Logprobs, Phases, Request


@dataclass(slots=True)
class WrittenCall:
    """A call as far as it was written.  `arguments` is JSON text, possibly cut off."""

    id: str
    name: str
    arguments: str = ""


@dataclass(slots=True)
class Choice:
    """One continuation of one prompt.  `place` is the prompt's, `index` counts over all prompts."""

    index: int
    place: int
    request: Request
    submission: Submission
    text_of: Text
    tokens: list[int] = field(default_factory=list)  # the end of text included
    words: str = ""
    thoughts: str = ""
    calls: list[WrittenCall] = field(default_factory=list)
    logprobs: list[Logprobs] = field(default_factory=list)  # of the tokens that are shown
    scores: list[Logprobs] = field(default_factory=list)  # of the prompt's tokens from the second on
    done: Done | None = None
    _stream: TextStream = field(init=False)
    _reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        self._stream = self.text_of.stream(self.submission.stops)
        self._reader = self.text_of.reader(self.submission.conversation)

    def grow(self, delta: Delta) -> tuple[Sequence[Piece], Sequence[Logprobs]]:
        """What `delta` makes certain, and the log-probabilities of its tokens but for the one that ends the text."""
        self.scores += delta.scores
        self.tokens += delta.tokens
        if self.submission.prefilled_only:
            return (), ()
        shown = [token not in self.request.stop_ids for token in delta.tokens]
        text = self._stream.feed([token for token, keep in zip(delta.tokens, shown, strict=True) if keep])
        logprobs = [entry for entry, keep in zip(delta.logprobs, shown, strict=False) if keep]
        self.logprobs += logprobs
        return self._keep(self._reader.feed(text)), logprobs

    def end(self, done: Done) -> Sequence[Piece]:
        """What was held back.  Raises `TwostrokeError` where the answer did not come to its end."""
        if done.reason in (FinishReason.ERROR, FinishReason.ABORT):
            raise failure(done)
        self.done = done
        if self.submission.prefilled_only:
            return ()
        rest = self._stream.flush()
        return self._keep([*self._reader.feed(rest), *self._reader.flush()])

    def _keep(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
        for piece in pieces:
            match piece:
                case Words(text):
                    self.words += text
                case Thought(text):
                    self.thoughts += text
                case CallStart(index, name):
                    self.calls.append(WrittenCall(call_id(self.submission.id, self.index, index), name))
                case CallArguments(index, text):
                    self.calls[index].arguments += text
                case CallEnd():
                    pass
        return pieces

    @property
    def stop_string(self) -> str | None:
        """The stop string that ended the answer."""
        return self._stream.hit

    @property
    def phases(self) -> Phases | None:
        return self.done.phases if self.done else None

    @property
    def written(self) -> int:
        """Tokens of the answer as usage counts them."""
        return 0 if self.submission.prefilled_only else len(self.tokens)

    @property
    def reason(self) -> str:
        """Why it ended: "stop", "length", "stop_string" or "tool_calls"."""
        assert self.done is not None
        if self.done.reason is FinishReason.LENGTH:
            return "length"
        if self.stop_string is not None:
            return "stop_string"
        return "tool_calls" if self.calls else "stop"

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(ToolCall(call.id, call.name, call.arguments) for call in self.calls)


def choices_of(submission: Submission, service: Service) -> list[Choice]:
    """One per continuation, in the order of their indices."""
    return [
        Choice(place * submission.choices + c, place, request, submission, service.text)
        for place, request in enumerate(submission.requests)
        for c in range(submission.choices)
    ]


def remember(choices: Sequence[Choice], service: Service) -> None:
    """Keep the ids of the answers, so that a client who sends them back gets the same ids in its prompt."""
    for choice in choices:
        conversation = choice.submission.conversation
        if conversation is not None and not choice.submission.prefilled_only:
            service.text.remember(
                choice.request.namespace, choice.words, choice.thoughts, choice.tool_calls, choice.tokens
            )


def call_id(answer: str, choice: int, index: int) -> str:
    """A name for a call that no other call of any answer has."""
    return f"call_{answer.rpartition('-')[2].rpartition('_')[2][:24]}{choice:x}{index:02x}"


def failure(done: Done) -> TwostrokeError:
    """The error that stands for an answer that did not come to its end."""
    if done.reason is FinishReason.ABORT:
        return Draining(done.error or "the answer was cut short because the server is shutting down; try again")
    return RunnerFailed(done.error or "the engine failed on this request; try again")
