"""A model of bytes and an engine that echoes: everything a server needs, without a model.

Token ids 0…255 are bytes and 256 ends an answer.  The engine writes the prompt back, token by token, then the end.
"""

from __future__ import annotations

import codecs
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence

from twostroke.config import Settings
from twostroke.observe.delivery import Delivery
from twostroke.observe.phases import Accounts
from twostroke.observe.prometheus import Metrics
from twostroke.observe.rates import MeasuredRates
from twostroke.serve.host import Host
from twostroke.serve.service import Service
from twostroke.serve.tenants import Tenants
from twostroke.text.conversation import Conversation, ToolCall
from twostroke.text.formats import Format
from twostroke.text.pieces import Reader
from twostroke.text.prompt import Prompt
from twostroke.text.tools.hermes import HERMES
from twostroke.types import (
    Admission,
    End,
    FinishReason,
    Logprobs,
    Report,
    Request,
    SequenceReport,
    TokenLogprob,
)

END = 256


class ByteStream:
    """Whole characters only, and nothing that may begin a stop string."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stops = stops
        self._held = ""
        self.hit: str | None = None

    def feed(self, tokens: Sequence[int]) -> str:
        return "".join(self._one(token) for token in tokens if self.hit is None)

    def _one(self, token: int) -> str:
        self._held += self._decoder.decode(bytes([token]))
        for stop in self._stops:
            if (at := self._held.find(stop)) >= 0:
                self.hit, text, self._held = stop, self._held[:at], ""
                return text
        keep = max((n for s in self._stops for n in range(len(s)) if self._held.endswith(s[:n])), default=0)
        text, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return text

    def flush(self) -> str:
        return "" if self.hit is not None else self._held + self._decoder.decode(b"", final=True)


class ByteText:
    """UTF-8 bytes as tokens; a conversation is its last message."""

    vocabulary = 257
    end_ids = frozenset({END})

    def encode(self, text: str, *, bos: bool = True) -> Sequence[int]:
        return tuple(text.encode("utf-8"))

    def prompt(self, conversation: Conversation, namespace: str) -> Prompt:
        return Prompt(tuple(self.encode(conversation.messages[-1].text)))

    def remember(
        self, namespace: str, words: str, thoughts: str, calls: Sequence[ToolCall], tokens: Sequence[int]
    ) -> None:
        pass

    def reader(self, conversation: Conversation | None) -> Reader:
        return HERMES.reader(conversation.callable_tools if conversation else ())

    def grammar(self, format: Format | None, conversation: Conversation | None) -> None:
        return None

    def infill(self, prefix: str, suffix: str) -> Sequence[int]:
        return self.encode(f"{prefix}|{suffix}")

    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(token for token in tokens if token < END).decode("utf-8", "replace")

    def piece(self, token: int) -> bytes:
        return b"<end>" if token == END else bytes([token])

    def stream(self, stops: Sequence[str]) -> ByteStream:
        return ByteStream(stops)

    def stop(self, stops: Sequence[str]) -> Callable[[], Callable[[int], bool]] | None:
        return (lambda: StopAt(stops)) if stops else None


class StopAt:
    """Ends an answer once its bytes hold one of the stop strings."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop.encode("utf-8") for stop in stops]
        self._text = b""

    def __call__(self, token: int) -> bool:
        self._text += bytes([token]) if token < END else b""
        return any(stop in self._text for stop in self._stops)


class Running:
    """One choice of one request on its way."""

    def __init__(self, sequence: int, request: Request, choice: int) -> None:
        self.sequence, self.request, self.choice = sequence, request, choice
        self.script = deque((*request.prompt, END))
        self.output: list[int] = []
        self.stop = request.stop() if request.stop else None


class EchoEngine:
    """Runs up to `slots` answers; each step writes `1 + drafts` tokens of each."""

    def __init__(self, *, slots: int = 4, drafts: int = 0, pause_s: float = 0.0) -> None:
        self.slots, self.drafts, self.pause_s = slots, drafts, pause_s
        self.observers: tuple[Callable[[Report], None], ...] = ()
        self.waiting: deque[Running] = deque()
        self.running: list[Running] = []
        self.aborted: set[str] = set()
        self.requests: list[Request] = []
        self.fail_next: Exception | None = None
        self.faults: Counter[str] = Counter()
        self.last_fault = ""
        self.steps = 0

    @property
    def idle(self) -> bool:
        return not self.waiting and not self.running

    def add(self, request: Request) -> None:
        self.requests.append(request)
        for choice in range(request.choices):
            self.waiting.append(Running(len(self.requests) * 1000 + choice, request, choice))

    def abort(self, request: str) -> None:
        self.aborted.add(request)

    def step(self) -> Report:
        started_s = time.monotonic()
        self.steps += 1
        ended = self._leave()
        if self.fail_next is not None:
            problem, self.fail_next = self.fail_next, None
            raise problem
        admitted = self._admit()
        if self.pause_s:
            time.sleep(self.pause_s)
        rows = tuple(self._write(one) for one in self.running)
        self.running = [one for one, row in zip(self.running, rows, strict=True) if row.finished is None]
        report = Report(
            started_s=started_s, planned_s=started_s, executed_s=time.monotonic(), ended_s=time.monotonic(),
            rows=rows, admitted=admitted, ended=ended, waiting=len(self.waiting), running=len(self.running),
            kv_used=8, kv_capacity=64,
        )  # fmt: skip
        for observe in self.observers:
            observe(report)
        return report

    def _leave(self) -> tuple[End, ...]:
        gone = [one for one in (*self.waiting, *self.running) if one.request.id in self.aborted]
        self.waiting = deque(one for one in self.waiting if one not in gone)
        self.running = [one for one in self.running if one not in gone]
        self.aborted.clear()
        return tuple(End(one.sequence, one.request.id, one.choice, FinishReason.ABORT) for one in gone)

    def _admit(self) -> tuple[Admission, ...]:
        new = []
        while self.waiting and len(self.running) < self.slots:
            one = self.waiting.popleft()
            self.running.append(one)
            prompt = len(one.request.prompt)
            new.append(
                Admission(
                    one.sequence, one.request.id, one.choice, one.request.namespace, prompt, prompt // 2, "cold", False
                )
            )
        return tuple(new)

    def _write(self, one: Running) -> SequenceReport:
        first = not one.output
        drafts = 0 if first else min(self.drafts, len(one.script) - 1, one.request.max_tokens - len(one.output) - 1)
        emitted, finished = [], None
        while len(emitted) <= drafts and finished is None:
            token = one.script.popleft()
            emitted.append(token)
            one.output.append(token)
            if token in one.request.stop_ids or (one.stop and one.stop(token)):
                finished = FinishReason.STOP
            elif len(one.output) >= one.request.max_tokens or not one.script:
                finished = FinishReason.LENGTH
        prompt = len(one.request.prompt)
        return SequenceReport(
            sequence=one.sequence, request=one.request.id, choice=one.choice, namespace=one.request.namespace,
            start=prompt // 2 if first else prompt, computed=(prompt - prompt // 2 if first else 1) + drafts,
            context=prompt, drafted=drafts, accepted=min(drafts, len(emitted)), source="ngram" if drafts else "",
            emitted=tuple(emitted), logprobs=_logprobs(one.request, emitted),
            finished=finished, reason="" if drafts else "no_match",
        )  # fmt: skip


def _logprobs(request: Request, tokens: Sequence[int]) -> tuple[Logprobs, ...]:
    """The chosen token is always the likeliest, its successors follow."""
    count = request.sampling.logprobs
    if count is None:
        return ()
    return tuple(
        Logprobs(TokenLogprob(t, -0.5), tuple(TokenLogprob((t + i) % 256, -0.5 - i) for i in range(count)))
        for t in tokens
    )


def service(
    engine: EchoEngine | None = None, *, context: int = 256, keys: Sequence[str] = (), **settings: object
) -> Service:
    """A service over an echoing engine; `service.engine` is not part of it, so keep the engine yourself."""
    engine = engine or EchoEngine()
    chosen = Settings(**{"served_model_name": "echo", **settings})
    rates, metrics = MeasuredRates(), Metrics("echo")
    accounts = Accounts(rates, sinks=(metrics.finished,))
    delivery = Delivery(accounts.phases)
    engine.observers = (rates, accounts, metrics, delivery)
    return Service(
        host=Host(engine, delivery, max_queue=chosen.max_queue, accept=accounts.accept),
        text=ByteText(),
        models=("echo", "echo-alias"),
        context=context,
        settings=chosen,
        tenants=Tenants(tuple(keys)),
        drafters=frozenset({"off", "ngram"}),
        metrics=metrics.exposition,
        rejected=metrics.rejected,
        created=1700000000,
        version="1.2.3",
    )
