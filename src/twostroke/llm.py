"""The engine in your own process: `with LLM("smollm2-135m") as llm: print(llm.generate("Once").text)`.

The engine runs in the caller's thread and only while somebody wants tokens; several answers may be read at once, and
each step serves all of them.  One thread at a time.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from twostroke.assemble import Assembly, Progress, assemble, open_model, quiet
from twostroke.config import Settings
from twostroke.errors import InternalError, InvalidParameter
from twostroke.speculate.prediction import check_prediction
from twostroke.speculate.table import check_draft_tokens, check_drafter
from twostroke.text.codec import Codec
from twostroke.types import Done, Event, FinishReason, Phases, Request, Sampling

Prompt = str | Sequence[int] | Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Answer:
    """One finished continuation."""

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    prompt_tokens: int
    phases: Phases

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens whose KV was reused."""
        return self.phases.prefill.cached_tokens


class Stream:
    """An answer as it is written: iterate for its text; `answer` holds the whole once it has ended.

    Leaving it early (`close`) aborts the answer and frees its memory.
    """

    def __init__(self, llm: LLM, request: Request, stops: Sequence[str]) -> None:
        self.answer: Answer | None = None
        self._llm, self._request = llm, request
        self._events: deque[Event] = deque()
        self._text = llm.codec.stream(stops)
        self._pieces: list[str] = []
        self._tokens: list[int] = []
        llm.submit(request, self._events)

    def __iter__(self) -> Iterator[str]:
        while self.answer is None:
            piece = self._read(self._next())
            if piece:
                self._pieces.append(piece)
                yield piece

    def result(self) -> Answer:
        """Run to the end.  Raises `InternalError` when the engine failed."""
        for _ in self:
            pass
        assert self.answer is not None
        return self.answer

    def close(self) -> None:
        """Give up an answer that is not wanted any more."""
        if self.answer is None:
            self._llm.abort(self._request.id)

    def _next(self) -> Event:
        while not self._events:
            self._llm.step()
        return self._events.popleft()

    def _read(self, event: Event) -> str:
        if not isinstance(event, Done):
            self._tokens.extend(event.tokens)
            return self._text.feed(event.tokens)
        if event.phases is None or event.reason is FinishReason.ERROR:
            raise InternalError(event.error or "the answer was aborted")
        rest = self._text.flush()
        text = "".join(self._pieces) + rest
        self.answer = Answer(text, tuple(self._tokens), event.reason, len(self._request.prompt), event.phases)
        return rest


class LLM:
    """A model and its engine.  Settings are those of `twostroke serve`, by name (see `twostroke.config.Settings`)."""

    def __init__(self, model: str | None = None, *, progress: Progress = quiet, **settings: Any) -> None:
        """Loads the model, fetching it first if need be.  Raises `ConfigError`, `ModelError`."""
        chosen: dict[str, Any] = {**settings, "model": model} if model else settings
        self.settings = Settings(**chosen)
        self._assembly: Assembly | None = assemble(open_model(self.settings, progress), self.settings)
        self._requests = 0

    # -- asking -------------------------------------------------------------------------------------------------------

    def generate(self, prompt: Prompt, sampling: Sampling | None = None, **options: Any) -> Answer:
        """The whole answer; arguments are those of `stream`."""
        return self.stream(prompt, sampling, **options).result()

    def stream(
        self,
        prompt: Prompt,
        sampling: Sampling | None = None,
        *,
        max_tokens: int | None = None,
        stop: str | Sequence[str] = (),
        prefix_cache: bool = True,
        speculate: str | None = None,
        draft_tokens: int | None = None,
        namespace: str = "",
        prediction: str = "",
        ignore_eos: bool = False,
    ) -> Stream:
        """An answer as it is written.

        `prompt` is plain text, token ids, or a conversation of {"role", "content"} messages.  Without `max_tokens`
        (here or in the settings) the answer may fill the context.  Raises `RequestError` naming what is wrong.
        """
        tokens = self.encode(prompt)
        stops = (stop,) if isinstance(stop, str) else tuple(stop) or self.settings.stop
        self._requests += 1
        request = Request(
            id=f"local-{self._requests}",
            prompt=tokens,
            max_tokens=self._max_tokens(max_tokens, len(tokens)),
            sampling=judged(sampling or self._sampling()),
            stop_ids=frozenset() if ignore_eos else self.codec.end_ids,
            stop=self.codec.stop(stops),
            namespace=namespace,
            prefix_cache=prefix_cache,
            speculate=None if speculate is None else check_drafter(speculate, sorted(self.assembly.drafters)),
            draft_tokens=None if draft_tokens is None else check_draft_tokens(draft_tokens),
            prediction=self._prediction(prediction),
        )
        return Stream(self, request, stops)

    def encode(self, prompt: Prompt) -> tuple[int, ...]:
        """The prompt as token ids."""
        if isinstance(prompt, str):
            return self.codec.encode(prompt)
        if prompt and isinstance(prompt[0], Mapping):
            return self.codec.chat([message for message in prompt if isinstance(message, Mapping)])
        if all(isinstance(token, int) for token in prompt):
            return tuple(token for token in prompt if isinstance(token, int))
        raise InvalidParameter("the prompt is neither text, nor token ids, nor a list of messages", param="prompt")

    def _prediction(self, text: str) -> tuple[int, ...]:
        if not isinstance(text, str):
            raise InvalidParameter(f"prediction is {text!r}; give the text you expect", param="prediction")
        return check_prediction(self.codec.encode(text, bos=False), self.assembly.engine.context)

    # -- the engine ---------------------------------------------------------------------------------------------------

    @property
    def assembly(self) -> Assembly:
        """The parts; raises `InvalidParameter` after `close`."""
        if self._assembly is None:
            raise InvalidParameter("this LLM is closed; make another one")
        return self._assembly

    @property
    def codec(self) -> Codec:
        """The model's text: encode, decode, chat."""
        return self.assembly.model.codec

    def submit(self, request: Request, events: deque[Event]) -> None:
        """Queue a request whose events go to `events`."""
        parts = self.assembly
        parts.accounts.accept(request)
        parts.delivery.accept(request, events.extend)
        try:
            parts.engine.add(request)
        except Exception:
            parts.accounts.forget(request)
            parts.delivery.forget(request.id)
            raise

    def step(self) -> None:
        """One forward pass for everything that is running."""
        self.assembly.engine.step()

    def abort(self, request: str) -> None:
        """End a request and free its memory now."""
        self.assembly.engine.abort(request)
        self.assembly.engine.step()

    def close(self) -> None:
        """Give back the memory."""
        self._assembly = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _sampling(self) -> Sampling:
        chosen = self.settings
        return Sampling(
            temperature=chosen.temperature or 0.0,
            top_k=chosen.top_k,
            top_p=chosen.top_p,
            min_p=chosen.min_p,
            seed=secrets.randbits(63) if chosen.seed is None else chosen.seed,
        )

    def _max_tokens(self, asked: int | None, prompt: int) -> int:
        room = max(1, self.assembly.engine.context - prompt)
        wanted = asked if asked is not None else self.settings.max_tokens
        if wanted is not None and wanted < 1:
            raise InvalidParameter(f"max_tokens is {wanted}; ask for at least 1", param="max_tokens")
        return room if wanted is None else min(wanted, room)


def judged(sampling: Sampling) -> Sampling:
    """The values, seed wrapped to 64 bits.  Raises `InvalidParameter` naming the first that is out of range."""
    ranges: Mapping[str, tuple[float, bool]] = {
        "temperature": (sampling.temperature, 0.0 <= sampling.temperature <= 100.0),
        "top_k": (sampling.top_k, sampling.top_k >= 0),
        "top_p": (sampling.top_p, 0.0 < sampling.top_p <= 1.0),
        "min_p": (sampling.min_p, 0.0 <= sampling.min_p <= 1.0),
        "logprobs": (sampling.logprobs or 0, 0 <= (sampling.logprobs or 0) <= 100),
        "presence_penalty": (sampling.presence_penalty, -2.0 <= sampling.presence_penalty <= 2.0),
        "frequency_penalty": (sampling.frequency_penalty, -2.0 <= sampling.frequency_penalty <= 2.0),
        "repetition_penalty": (sampling.repetition_penalty, 0.0 < sampling.repetition_penalty <= 100.0),
        "min_tokens": (sampling.min_tokens, sampling.min_tokens >= 0),
    }
    for name, (value, fits) in ranges.items():
        if not fits:
            raise InvalidParameter(f"{name} is {value!r}, out of its range; see twostroke.Sampling", param=name)
    return replace(sampling, seed=sampling.seed & (2**64 - 1))
