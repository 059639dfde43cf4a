"""Writes events as a `Response`, whole or as a stream of numbered events.

A stream is: `response.created`, `response.in_progress`, the items one after another, then `response.completed`,
`response.incomplete` (the limit came first) or `response.failed`.  The response that ends a stream is the whole body.
Tokens are read one by one, so that counts and log-probabilities do not depend on how many a step brought; what a step
brought is told together.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from twostroke.errors import TwostrokeError
from twostroke.observe.phases import as_json
from twostroke.serve.answer import choices_of, remember
from twostroke.serve.format import encoded, named
from twostroke.serve.responses.content import Content
from twostroke.serve.responses.diagnostics import diagnostics
from twostroke.serve.responses.output import Told
from twostroke.serve.responses.parse import Details
from twostroke.serve.responses.store import ResponseStore, Stored
from twostroke.serve.service import Service
from twostroke.serve.submission import Json, Submission
from twostroke.text.pieces import Piece, Thought
from twostroke.types import Delta, Done, Event, Logprobs, TokenLogprob

LEAST_LOGPROB = -9999.0  # what OpenAI writes for one too small: JSON has no infinity
PAD = 32  # bytes; the size of an obfuscated delta is a multiple


class ResponseWriter:
    """Writes the one choice of a submission, and stores it when it has ended."""

    def __init__(self, submission: Submission, service: Service, store: ResponseStore) -> None:
        self._submission, self._service, self._store = submission, service, store
        self._details: Details = submission.details
        self._choice = choices_of(submission, service)[0]
        name = submission.id.rpartition("_")[2]
        self._content = Content(
            name, lambda index: self._choice.calls[index].id, self._details.box, seal=self._details.sealed
        )
        self._number = 0
        self._thinking = 0  # tokens until the first that was no thought
        self._thought_over = False

    def begin(self) -> Iterator[bytes]:
        yield self._event(("response.created", {"response": self._response("in_progress")}))
        yield self._event(("response.in_progress", {"response": self._response("in_progress")}))

    def take(self, place: int, event: Event) -> Iterator[bytes]:
        """The events of what became certain; `response.failed` before it raises `TwostrokeError`."""
        try:
            told = self._grow(event) if isinstance(event, Delta) else self._end(event)
        except TwostrokeError as problem:
            failed = self._response("failed") | {"error": {"code": "server_error", "message": problem.message}}
            yield self._event(("response.failed", {"response": failed}))
            raise
        yield from map(self._event, told)

    def finish(self) -> Iterator[bytes]:
        whole = self.whole()
        yield self._event((f"response.{whole['status']}", {"response": whole}))

    def whole(self) -> Json:
        """The response.  It is stored, where the client wants that, before anybody can read it."""
        body = self._finished()
        if self._details.store:
            prompt = array("i", self._choice.request.prompt)
            namespace = self._choice.request.namespace
            self._store.put(Stored(namespace, body, self._details.items, prompt))
        remember([self._choice], self._service)
        return body

    def _grow(self, delta: Delta) -> Sequence[Told]:
        told: list[Told] = []
        for index, token in enumerate(delta.tokens):
            one = replace(delta, tokens=(token,), logprobs=delta.logprobs[index : index + 1], scores=())
            pieces, logprobs = self._choice.grow(one)
            self._count(pieces)
            told += self._content.add(pieces, self._shown(logprobs))
        return joined(told)

    def _end(self, done: Done) -> Sequence[Told]:
        pieces = self._choice.end(done)
        if self._submission.prefilled_only:
            return ()
        status = "incomplete" if self._choice.reason == "length" else "completed"
        return joined([*self._content.add(pieces, (), status), *self._content.end(status)])

    def _count(self, pieces: Sequence[Piece]) -> None:
        """Tokens belong to the thoughts until something else is written."""
        self._thought_over = self._thought_over or any(not isinstance(piece, Thought) for piece in pieces)
        self._thinking += not self._thought_over

    def _shown(self, logprobs: Sequence[Logprobs]) -> list[Json]:
        if not self._details.logprobs:
            return []
        return [self._token(e.chosen) | {"top_logprobs": [self._token(t) for t in e.top]} for e in logprobs]

    def _token(self, item: TokenLogprob) -> Json:
        piece = self._service.text.piece(item.token)
        logprob = max(item.logprob, LEAST_LOGPROB)
        return {"token": piece.decode("utf-8", "replace"), "bytes": list(piece), "logprob": logprob}

    def _event(self, told: Told) -> bytes:
        name, fields = told
        body = {"type": name, "sequence_number": self._number, **fields}
        self._number += 1
        if self._details.obfuscated and "delta" in fields:
            size = len(encoded(fields["delta"]))
            body["obfuscation"] = "0" * (-size % PAD)
        return named(name, body)

    def _finished(self) -> Json:
        cut = self._choice.reason == "length" and not self._submission.prefilled_only
        body = self._response("incomplete" if cut else "completed")
        body |= {"output": self._content.bodies, "usage": self._usage(), "phases": as_json(self._choice.phases)}
        if cut:
            body["incomplete_details"] = {"reason": "max_output_tokens"}
        comparison, phases = self._details.comparison, self._choice.phases
        if comparison is not None:
            other = self._store.get(comparison, self._choice.request.namespace)
            cached = phases.prefill.cached_tokens if phases else None
            body["prompt_cache_diagnostics"] = diagnostics(body, self._choice.request.prompt, cached, other)
        return body

    def _response(self, status: str) -> Json:
        head = {"id": self._submission.id, "object": "response", "created_at": self._submission.created}
        empty: Json = {"error": None, "incomplete_details": None, "output": [], "usage": None}
        return head | {"status": status, "model": self._submission.model} | empty | self._details.echo

    def _usage(self) -> Json:
        phases, request = self._choice.phases, self._choice.request
        prompt, cached = len(request.prompt), phases.prefill.cached_tokens if phases else 0
        written = self._choice.written
        thought = self._thinking if self._choice.thoughts else 0
        return {
            "input_tokens": prompt,
            "input_tokens_details": {
                "cached_tokens": cached,
                "cache_write_tokens": prompt - cached if request.prefix_cache else 0,
            },
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": prompt + written,
        }


def joined(told: Iterable[Told]) -> Sequence[Told]:
    """Events with neighbouring deltas of one item as one."""
    found: list[Told] = []
    for name, fields in told:
        if found and "delta" in fields and found[-1][0] == name:
            before = found[-1][1]
            more = {"logprobs": before["logprobs"] + fields["logprobs"]} if "logprobs" in fields else {}
            found[-1] = name, {**before, "delta": before["delta"] + fields["delta"], **more}
        else:
            found.append((name, fields))
    return found
