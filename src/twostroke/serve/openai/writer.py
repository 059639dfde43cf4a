"""Writes events as OpenAI bodies, whole or chunk by chunk; what a chat and a text have in common.

A stream is: an opening of each choice, what becomes certain, an empty piece with the finish reason of each choice, the
usage where asked for, and `[DONE]`.  The account of an answer (`phases`, `timings`, `metrics`) stands on the whole
body, on the usage chunk, or else on the last chunk of the last choice.  A stream's pieces add up to the whole body.
"""

from __future__ import annotations

import random
import string
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from twostroke.serve.accounts import account, phases, summed
from twostroke.serve.answer import Choice, choices_of, remember
from twostroke.serve.format import data, encoded
from twostroke.serve.openai.details import Details
from twostroke.serve.openai.logprobs import of_prompt
from twostroke.serve.openai.timings import metrics, timings
from twostroke.serve.openai.usage import counts, usage
from twostroke.serve.service import Service
from twostroke.serve.submission import Json, Submission
from twostroke.text.pieces import Piece
from twostroke.types import Delta, Event, Logprobs

DONE = b"data: [DONE]\n\n"
BLOCK = 256  # bytes; the size of an obfuscated chunk is a multiple of this
LETTERS = string.ascii_letters + string.digits


class AnswerWriter(ABC):
    """Writes one submission's answer; subclasses know the shape of a choice."""

    body_object: str
    chunk_object: str

    def __init__(self, submission: Submission, service: Service) -> None:
        self.submission, self.text, self._service = submission, service.text, service
        self.details: Details = submission.details
        self.choices = choices_of(submission, service)

    def begin(self) -> Iterator[bytes]:
        """What each choice opens with."""
        for choice in self.choices:
            for body in self.opening(choice):
                yield self.chunk(body, {} if choice.index else self.first())

    def take(self, place: int, event: Event) -> Iterable[bytes]:
        """The chunks that an event of the `place`-th request makes.

        Raises `TwostrokeError` when the engine failed or the server stopped: there is no answer then.
        """
        choice = self.choices[place * self.submission.choices + event.choice]
        if isinstance(event, Delta):
            yield from map(self.chunk, self._grown(choice, *choice.grow(event), event.tokens))
            return
        rest = choice.end(event)
        remember([choice], self._service)
        yield from map(self.chunk, self._grown(choice, rest, (), ()))
        last = all(other.done for other in self.choices) and not self.details.include_usage
        yield self.chunk(self._ended(choice), self._account() if last else {})

    def finish(self) -> Iterator[bytes]:
        """The usage chunk, where asked for, and the end."""
        if self.details.include_usage:
            yield data(self._head(self.chunk_object) | {"choices": []} | self._usage() | self._account())
        yield DONE

    def whole(self) -> Json:
        """The body of an answer that is not streamed."""
        choices = [self._written(choice) for choice in self.choices]
        return self._head(self.body_object) | {"choices": choices} | self.extra() | self._usage() | self._account()

    @abstractmethod
    def opening(self, choice: Choice) -> Iterable[Json]:
        """What a streamed choice begins with, before any token."""

    @abstractmethod
    def parts(self, choice: Choice, pieces: Sequence[Piece]) -> Sequence[Json]:
        """The fields of the chunks that `pieces` make."""

    @abstractmethod
    def nothing(self) -> Json:
        """The field of a chunk that holds no text."""

    @abstractmethod
    def message(self, choice: Choice) -> Json:
        """The fields of a whole choice."""

    @abstractmethod
    def logprobs(self, choice: Choice, entries: Sequence[Logprobs]) -> Json | None:
        """Of a chunk, in order; None where there is nothing to tell."""

    @abstractmethod
    def all_logprobs(self, choice: Choice) -> Json | None:
        """Of a whole choice."""

    def extra(self) -> Json:
        """More fields of the whole body."""
        return {}

    def first(self) -> Json:
        """More fields of a stream's first chunk."""
        return {}

    def finish_reason(self, choice: Choice) -> str:
        """Why the choice ended, in OpenAI's words."""
        reason = "length" if self.submission.prefilled_only else choice.reason
        return {"stop_string": "stop", "tool_calls": "function_call" if self.details.legacy else "tool_calls"}.get(
            reason, reason
        )

    def body(self, choice: Choice, fields: Json, logprobs: Json | None = None, tokens: Sequence[int] = ()) -> Json:
        """A choice's place in a chunk."""
        found = {"index": choice.index, **fields, "logprobs": logprobs, "finish_reason": None}
        return found | ({"token_ids": list(tokens)} if self.details.token_ids else {})

    def scores(self, choice: Choice) -> Sequence[Logprobs]:
        """The log-probabilities of the choice's prompt, which may have come with another of its continuations."""
        first = choice.place * self.submission.choices
        found = (other.scores for other in self.choices[first : first + self.submission.choices])
        return max(found, key=len)

    def prompt_logprobs(self, choice: Choice) -> Json:
        """vLLM's field, where asked for."""
        return {"prompt_logprobs": of_prompt(self.scores(choice), self.text)} if self.details.prompt_logprobs else {}

    def _grown(
        self, choice: Choice, pieces: Sequence[Piece], entries: Sequence[Logprobs], tokens: Sequence[int]
    ) -> Iterator[Json]:
        tokens = () if self.submission.prefilled_only or not self.details.token_ids else tokens
        logprobs = self.logprobs(choice, entries)
        parts = self.parts(choice, pieces) or ([self.nothing()] if logprobs or tokens else [])
        for i, part in enumerate(parts):
            yield self.body(choice, part, None if i else logprobs, () if i else tokens)

    def _ended(self, choice: Choice) -> Json:
        return self.body(choice, self.nothing_more()) | {
            "finish_reason": self.finish_reason(choice),
            "stop_reason": stop_reason(choice, self.text.end_ids),
        }

    def nothing_more(self) -> Json:
        """The field of a choice's last chunk."""
        return self.nothing()

    def _written(self, choice: Choice) -> Json:
        found = {
            "index": choice.index,
            **self.message(choice),
            "logprobs": self.all_logprobs(choice),
            "finish_reason": self.finish_reason(choice),
            "stop_reason": stop_reason(choice, self.text.end_ids),
        }
        if self.details.token_ids:
            found["token_ids"] = [] if self.submission.prefilled_only else list(choice.tokens)
        return found | ({"phases": phases(choice)} if len(self.choices) > 1 else {})

    def _head(self, kind: str) -> Json:
        given = self.submission
        return {
            "id": given.id,
            "object": kind,
            "created": given.created,
            "model": given.model,
            "system_fingerprint": fingerprint(self._service),
        }

    def chunk(self, body: Json, more: Json | None = None) -> bytes:
        """The event of a choice's place in a chunk, with `more` beside it."""
        found = self._head(self.chunk_object) | {"choices": [body]} | (more or {})
        if self.details.include_usage:
            found["usage"] = counts(self.choices) if self.details.every_usage else None
        return data(obfuscated(found) if self.details.obfuscation else found)

    def _usage(self) -> Json:
        return {"usage": usage(self.choices, self.text, explicit=self.details.explicit)}

    def _account(self) -> Json:
        whole = summed(self.choices)
        return account(self.choices) | {
            "timings": timings(whole) if whole else None,
            "metrics": metrics(whole) if whole and len(self.choices) == 1 else None,
        }


def fingerprint(service: Service) -> str | None:
    """A name for what computes the answers: the same name and seed give the same answer."""
    if not service.weights:
        return None
    return "fp_" + sha256(f"{service.weights}\n{service.version}".encode()).hexdigest()[:12]


def stop_reason(choice: Choice, end_ids: frozenset[int]) -> str | int | None:
    """vLLM's: the stop string or the stop token that ended the answer; null for an end of text or a limit."""
    if choice.stop_string is not None or choice.submission.prefilled_only or not choice.tokens:
        return choice.stop_string
    last = choice.tokens[-1]
    return last if last in choice.request.stop_ids - end_ids else None


def obfuscated(chunk: Json) -> Json:
    """The chunk with letters that fill its JSON up to a multiple of `BLOCK` bytes: its size tells little of its text.

    The letters are random, so that compression does not undo them.
    """
    size = len(encoded(chunk | {"obfuscation": ""}))
    return chunk | {"obfuscation": "".join(random.choices(LETTERS, k=-size % BLOCK))}
