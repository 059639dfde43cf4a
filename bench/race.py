"""Several engines write the same answer by turns, so that a machine whose speed drifts treats them alike.

Each writes `STRIDE` tokens, then the next, in an order that changes.  The time of an answer is that of its own steps,
from its first token on: what a drafter does after a token was handed out counts, as it delays the next.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from bench.embedded import Session, accounted, patient
from twostroke.types import Done, Event, Phases

STRIDE = 16  # tokens
HEARD = 64  # tokens of an answer after which a text is read by everyone


@dataclass(slots=True)
class Writer:
    """One engine, how it is asked, and the answer that it is writing."""

    session: Session
    fields: Mapping[str, object]  # of every request
    written: list[int] = field(default_factory=list)
    phases: Phases | None = None  # once the answer is over
    first_s: float = 0.0
    decode_s: float = 0.0
    _events: deque[tuple[float, Event]] = field(default_factory=deque)

    @property
    def done(self) -> bool:
        """Whether the answer is over."""
        return self.phases is not None

    def read(self, text: Sequence[int]) -> None:
        """Read a text beforehand, as an earlier request would; a draft model too, whatever that repays."""
        with patient(self.session):
            self.session.hear(self.session.request(text, HEARD + 1, **self.fields), HEARD)

    def begin(self, prompt: Sequence[int], max_tokens: int) -> None:
        """Read the prompt, to the first token."""
        self.written, self.phases, self.first_s = [], None, 0.0
        began = perf_counter()
        self._events = self.session.submit(self.session.request(prompt, max_tokens, **self.fields))
        while not self.written and not self.done:
            self._step()
        self.decode_s = perf_counter() - began - self.first_s

    def advance(self) -> None:
        """Write `STRIDE` tokens more, or to the end."""
        enough = len(self.written) + STRIDE
        began = perf_counter()
        while not self.done and len(self.written) < enough:
            self._step()
        self.decode_s += perf_counter() - began

    def _step(self) -> None:
        self.session.step()
        while self._events:
            now, event = self._events.popleft()
            if isinstance(event, Done):
                self.phases = accounted(event)
            else:
                self.first_s = self.first_s or now
                self.written.extend(event.tokens)


def race(writers: Iterable[Writer], prompt: Sequence[int], max_tokens: int, seed: int = 1) -> None:
    """Every writer's answer to one prompt.  Raises AssertionError where two of them differ."""
    order = list(writers)
    shuffle = random.Random(seed).shuffle
    shuffle(order)
    for writer in order:
        writer.begin(prompt, max_tokens)
    while not all(writer.done for writer in order):
        shuffle(order)
        for writer in order:
            writer.advance()
    answers = {tuple(writer.written) for writer in order}
    assert len(answers) == 1, f"{len(order)} settings gave {len(answers)} different answers"
