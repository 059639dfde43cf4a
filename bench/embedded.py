"""An engine driven by hand: several can stand on one loaded model, which is how settings are compared fairly.

One thread, no server: a request is submitted, steps are run until its end, and what came is timed from outside.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from twostroke.assemble import Assembly
from twostroke.runtime.draft import ModelDrafter
from twostroke.speculate.auto import Auto
from twostroke.types import Done, Event, FinishReason, Phases, Request, Sampling


@dataclass(frozen=True, slots=True)
class Outcome:
    """One finished answer, timed from outside the engine; seconds since the request was submitted."""

    tokens: tuple[int, ...]
    reason: FinishReason
    first_s: float
    last_s: float
    phases: Phases

    @property
    def decode_s(self) -> float:
        """From the first token to the last."""
        return self.last_s - self.first_s

    @property
    def per_token_s(self) -> float:
        """Mean time between tokens after the first."""
        return self.decode_s / max(1, len(self.tokens) - 1)

    @property
    def tokens_per_pass(self) -> float:
        """Tokens that one pass of the target gave, the first token left out (prefill gives it)."""
        return (len(self.tokens) - 1) / max(1, self.phases.decode.steps - 1)


class Session:
    """One engine and its requests."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self._requests = 0
        self.running: list[str] = []  # ids that a measurement keeps running

    def request(self, prompt: Sequence[int], max_tokens: int, **fields: object) -> Request:
        """A greedy request with a fresh id; `fields` are those of `Request`."""
        self._requests += 1
        base = Request(f"bench-{self._requests}", tuple(prompt), max_tokens, Sampling())
        return replace(base, **fields)  # type: ignore[arg-type]

    def submit(self, request: Request) -> deque[tuple[float, Event]]:
        """Queue a request; its events will appear in the answer, each with the seconds since now.

        An event counts from when it is handed out, as for a client: a step goes on to guess about the next one.
        """
        request = replace(request, arrived_s=time.monotonic())
        began = time.perf_counter()
        events: deque[tuple[float, Event]] = deque()

        def take(batch: Sequence[Event]) -> None:
            now = time.perf_counter() - began
            events.extend((now, event) for event in batch)

        self.assembly.accounts.accept(request)
        self.assembly.delivery.accept(request, take)
        self.assembly.engine.add(request)
        return events

    def step(self) -> None:
        """One forward pass for whatever is running."""
        self.assembly.engine.step()

    def run(self, request: Request) -> Outcome:
        """One request from beginning to end, alone.  Raises RuntimeError where the engine failed it."""
        events = self.submit(request)
        tokens: list[int] = []
        first = last = 0.0
        while True:
            self.step()
            while events:
                now, event = events.popleft()
                if isinstance(event, Done):
                    return Outcome(tuple(tokens), event.reason, first, last, accounted(event))
                tokens.extend(event.tokens)
                first, last = first or now, now

    def hear(self, request: Request, most: int) -> float:
        """A request that is given up once `most` tokens have come; the seconds to the first of them."""
        events = self.submit(request)
        heard, first = 0, 0.0
        while heard < most and not self.assembly.engine.idle:
            self.step()
            while events:
                now, event = events.popleft()
                if not isinstance(event, Done):
                    heard, first = heard + len(event.tokens), first or now
        self.assembly.engine.abort(request.id)
        while not self.assembly.engine.idle:
            self.step()
        return first


@contextmanager
def patient(session: Session) -> Iterator[None]:
    """Meanwhile its draft model, if there is one, reads whatever it lacks."""
    drafters = session.assembly.drafter.drafters.values()
    models = {drafter.model for drafter in drafters if isinstance(drafter, Auto) and drafter.model is not None}
    with ExitStack() as restored:
        for model in models:
            assert isinstance(model, ModelDrafter)
            restored.callback(setattr, model, "repays", model.repays)
            model.repays = lambda behind, remaining, survival, hoped: True
        yield


def accounted(done: Done) -> Phases:
    """The accounts of an answer that ended.  Raises RuntimeError where the engine failed it."""
    if done.phases is None or done.reason is FinishReason.ERROR:
        raise RuntimeError(f"the engine failed a request: {done.error}")
    return done.phases
