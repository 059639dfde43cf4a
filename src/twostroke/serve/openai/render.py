"""Writes events as OpenAI bodies, whole or chunk by chunk.

A stream is: the role (chat), the text as it becomes certain, an empty piece with the finish reason of each choice, then
the usage where asked for.  `usage`, `phases` and `metrics` stand on the whole body, or on that last chunk.  For one
choice `phases` is its account; for several it is their sum, and each choice of a whole body carries its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from twostroke.errors import Draining, RunnerFailed, TwostrokeError
from twostroke.observe.phases import as_json, total
from twostroke.serve.openai.parse import Ask
from twostroke.serve.service import Text
from twostroke.types import Delta, Done, Event, FinishReason, Logprobs, Phases, Request, TokenLogprob

Json = dict[str, Any]
LEAST_LOGPROB = -9999.0


class Choice:
    """One answer as it grows."""

    def __init__(self, index: int, request: Request, ask: Ask, text: Text) -> None:
        self.index = index
        self.request = request
        self.tokens = 0
        self.done: Done | None = None
        self.parts: list[str] = []
        self.logprobs: list[Logprobs] = []
        self._stream = text.stream(ask.stops)

    def grow(self, delta: Delta) -> tuple[str, Sequence[Logprobs]]:
        """The text and log-probabilities that `delta` makes certain; the token that ends an answer has neither."""
        shown = [token not in self.request.stop_ids for token in delta.tokens]
        text = self._stream.feed([token for token, keep in zip(delta.tokens, shown, strict=True) if keep])
        logprobs = [entry for entry, keep in zip(delta.logprobs, shown, strict=False) if keep]
        self.tokens += len(delta.tokens)
        self.parts.append(text)
        self.logprobs += logprobs
        return text, logprobs

    def end(self, done: Done) -> str:
        """The text that was held back."""
        self.done = done
        self.parts.append(rest := self._stream.flush())
        return rest

    @property
    def phases(self) -> Phases | None:
        return self.done.phases if self.done else None

    @property
    def finish_reason(self) -> str | None:
        return self.done.reason.value if self.done else None


class Answer:
    """All choices of one ask; turns events into chunks, and itself into a whole body."""

    def __init__(self, ask: Ask, text: Text) -> None:
        self.ask = ask
        self._text = text
        self.choices = [
            Choice(place * ask.choices + c, request, ask, text)
            for place, request in enumerate(ask.requests)
            for c in range(ask.choices)
        ]

    def take(self, place: int, event: Event) -> Iterator[Json]:
        """The chunks that an event of the `place`-th request makes.

        Raises `TwostrokeError` when the engine failed or the server stopped: there is no answer then.
        """
        choice = self.choices[place * self.ask.choices + event.choice]
        if isinstance(event, Delta):
            text, logprobs = choice.grow(event)
            if text or logprobs:
                yield self._chunk(choice, text, logprobs)
            return
        if event.reason in (FinishReason.ERROR, FinishReason.ABORT):
            raise failure(event)
        if rest := choice.end(event):
            yield self._chunk(choice, rest, ())
        yield self._chunk(choice, "", (), finish=True)

    def begin(self) -> Iterator[Json]:
        """The chunks before any token: who speaks, or the echoed prompt."""
        for choice in self.choices:
            echo = self._echo(choice)
            if self.ask.chat:
                yield self._chunk(choice, "", (), role=True)
            elif echo:
                yield self._chunk(choice, echo, ())

    def finish(self) -> Iterator[Json]:
        """The usage chunk, where asked for."""
        if self.ask.include_usage:
            yield self._head(".chunk") | {"choices": []} | self._account()

    def whole(self) -> Json:
        """The body of an answer that is not streamed."""
        return self._head("") | {"choices": [self._written(choice) for choice in self.choices]} | self._account()

    def _head(self, chunk: str) -> Json:
        kind = "chat.completion" + chunk if self.ask.chat else "text_completion"
        return {"id": self.ask.id, "object": kind, "created": self.ask.created, "model": self.ask.model}

    def _chunk(
        self, choice: Choice, text: str, logprobs: Sequence[Logprobs], *, role: bool = False, finish: bool = False
    ) -> Json:
        body: Json = {"index": choice.index}
        if self.ask.chat:
            speaker = {"role": "assistant"} if role else {}
            body["delta"] = speaker | ({} if finish else {"content": text})
        else:
            body["text"] = text
        body["logprobs"] = self._logprobs(logprobs) if logprobs else None
        body["finish_reason"] = choice.finish_reason if finish else None
        usage = {"usage": None} if self.ask.include_usage else {}
        return self._head(".chunk") | {"choices": [body]} | usage

    def _written(self, choice: Choice) -> Json:
        text = self._echo(choice) + "".join(choice.parts)
        body: Json = {"index": choice.index}
        if self.ask.chat:
            body["message"] = {"role": "assistant", "content": text, "refusal": None}
        else:
            body["text"] = text
        body["logprobs"] = self._logprobs(choice.logprobs) if self.ask.logprobs is not None else None
        body["finish_reason"] = choice.finish_reason
        return body | ({"phases": as_json(choice.phases)} if len(self.choices) > 1 else {})

    def _echo(self, choice: Choice) -> str:
        return self.ask.echo[choice.index // self.ask.choices]

    def _account(self) -> Json:
        phases = [choice.phases for choice in self.choices if choice.phases]
        whole = total(phases) if phases else None
        return {
            "usage": usage(self.choices, self.ask.choices),
            "phases": as_json(whole),
            "metrics": metrics(phases[0]) if len(self.choices) == 1 and phases else None,
        }

    def _logprobs(self, entries: Sequence[Logprobs]) -> Json:
        if self.ask.chat:
            return {
                "content": [self._token(e.chosen) | {"top_logprobs": [self._token(t) for t in e.top]} for e in entries]
            }
        tokens = [self._string(e.chosen.token) for e in entries]
        return {
            "tokens": tokens,
            "token_logprobs": [finite(e.chosen.logprob) for e in entries],
            "top_logprobs": [self._likely(e) for e in entries],
            "text_offset": offsets(tokens),
        }

    def _likely(self, entry: Logprobs) -> Mapping[str, float]:
        """The alternatives and the chosen token, by text; the likelier of two with the same text."""
        found: dict[str, float] = {}
        for item in (*entry.top, entry.chosen):
            found.setdefault(self._string(item.token), finite(item.logprob))
        return found

    def _token(self, item: TokenLogprob) -> Json:
        piece = self._text.piece(item.token)
        return {"token": piece.decode("utf-8", "replace"), "logprob": finite(item.logprob), "bytes": list(piece)}

    def _string(self, token: int) -> str:
        return self._text.piece(token).decode("utf-8", "replace")


def finite(logprob: float) -> float:
    """The log-probability, or what OpenAI writes for one too small: JSON has no infinity."""
    return max(logprob, LEAST_LOGPROB)


def offsets(tokens: Sequence[str]) -> list[int]:
    """Where each token's text begins."""
    found, at = [], 0
    for token in tokens:
        found.append(at)
        at += len(token)
    return found


def usage(choices: Sequence[Choice], per_prompt: int) -> Json:
    """Token counts as OpenAI names them; a prompt and what was reused of it count once for all its continuations."""
    firsts = choices[::per_prompt]
    prompt = sum(len(choice.request.prompt) for choice in firsts)
    written = sum(choice.tokens for choice in choices)
    cached = sum(choice.phases.prefill.cached_tokens for choice in firsts if choice.phases)
    body: Json = {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    predicted = sum(len(choice.request.prediction) for choice in choices)
    if predicted:
        kept = sum(choice.phases.decode.accepted_by.get("prediction", 0) for choice in choices if choice.phases)
        body["completion_tokens_details"] = {
            "accepted_prediction_tokens": kept,
            "rejected_prediction_tokens": max(predicted - kept, 0),
        }
    return body


def metrics(phases: Phases) -> Json:
    """The `metrics` object of vLLM, field by field; `speculative_decoding` is null where nothing was drafted."""
    decode = phases.decode
    return {
        "time_to_first_token_ms": round(phases.ttft_ms, 3),
        "generation_time_ms": round(decode.ms, 3),
        "queue_time_ms": round(phases.queue_ms, 3),
        "mean_itl_ms": round(phases.tpot_ms, 3),
        "tokens_per_second": round(1000 / phases.tpot_ms, 3) if phases.tpot_ms > 0 else 0.0,
        "speculative_decoding": speculative_decoding(phases) if decode.drafted_steps else None,
    }


def speculative_decoding(phases: Phases) -> Json:
    """vLLM's account of one answer's drafts; `acceptance_histogram[j]` counts steps that kept j drafts."""
    decode = phases.decode
    reached = (decode.drafted_steps, *decode.accepted_per_position, 0)  # steps that kept at least j drafts
    return {
        "mean_acceptance_length": round(1 + decode.accepted / decode.drafted_steps, 6),
        "draft_acceptance_rate": round(decode.accepted / decode.drafted, 6),
        "acceptance_histogram": [here - beyond for here, beyond in pairwise(reached)],
        "num_spec_steps": decode.drafted_steps,
        "num_accepted_draft_tokens": decode.accepted,
        "num_draft_tokens": decode.drafted,
        "num_spec_tokens": len(decode.accepted_per_position),
    }


def failure(done: Done) -> TwostrokeError:
    """The error that stands for an answer that did not come to its end."""
    if done.reason is FinishReason.ABORT:
        return Draining(done.error or "the answer was cut short because the server is shutting down; try again")
    return RunnerFailed(done.error or "the engine failed on this request; try again")


def error(problem: TwostrokeError) -> Json:
    """An error in OpenAI's shape."""
    kinds = {400: "invalid_request_error", 401: "authentication_error", 413: "invalid_request_error"}
    kinds |= {404: "invalid_request_error", 405: "invalid_request_error", 415: "invalid_request_error"}
    kinds |= {429: "rate_limit_error", 503: "service_unavailable_error"}
    kind = kinds.get(problem.status, "server_error")
    return {"error": {"message": problem.message, "type": kind, "param": problem.param, "code": problem.code}}


def card(name: str, created: int, context: int) -> Json:
    """One entry of the list of models."""
    return {"id": name, "object": "model", "created": created, "owned_by": "twostroke", "max_model_len": context}
