"""Turns step reports into each request's events, and sees to it that every choice ends in exactly one `Done`.

A sink is whatever wants one request's events: a queue, a list, a coroutine's inbox.  All calls come from the engine's
thread; where the events go from there is the business of `post`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twostroke.types import Delta, Done, Event, FinishReason, Phases, Report, Request, SequenceReport

Sink = Callable[[Sequence[Event]], None]
Batch = Sequence[tuple[Sink, Sequence[Event]]]


def directly(batch: Batch) -> None:
    """Call each sink on the spot."""
    for sink, events in batch:
        sink(events)


class Delivery:
    """The observer that hands out events, one batch per step.

    `phases` gives the account of a choice that the report at hand closed; put the accounts before the delivery among
    the engine's observers.
    """

    def __init__(
        self,
        phases: Callable[[str, int], Phases | None] = lambda request, choice: None,
        post: Callable[[Batch], None] = directly,
    ) -> None:
        self._phases = phases
        self.post = post
        self._sinks: dict[str, Sink] = {}
        self._cached: dict[tuple[str, int], int] = {}  # prompt tokens reused, of choices that have no token yet
        self._open: dict[str, set[int]] = {}  # choices not yet done, by request

    @property
    def open(self) -> tuple[str, ...]:
        """Requests with a choice that has not ended."""
        return tuple(self._open)

    def accept(self, request: Request, sink: Sink) -> None:
        """From now on the request's events go to `sink`."""
        self._sinks[request.id] = sink
        self._open[request.id] = set(range(request.choices))

    def forget(self, request: str) -> None:
        """Drop a request that the engine did not take; its sink gets nothing."""
        self._open.pop(request, None)
        self._sinks.pop(request, None)

    def __call__(self, report: Report) -> None:
        events: dict[str, list[Event]] = {}
        for admission in report.admitted:
            if not admission.resumed and admission.choice in self._open.get(admission.request, ()):
                self._cached[admission.request, admission.choice] = admission.cached
        for row in report.rows:
            if row.choice not in self._open.get(row.request, ()):
                continue
            if row.emitted or row.scores:
                events.setdefault(row.request, []).append(self._delta(row))
            if row.finished is not None:
                done = self._done(row.request, row.choice, row.finished, row.error)
                events.setdefault(row.request, []).append(done)
        for end in report.ended:
            if end.choice in self._open.get(end.request, ()):
                events.setdefault(end.request, []).append(self._done(end.request, end.choice, end.reason, end.error))
        self._send(events)

    def fail(self, request: str, error: str, reason: FinishReason = FinishReason.ERROR) -> None:
        """End every open choice of a request; does nothing when all have ended."""
        choices = sorted(self._open.get(request, ()))
        self._send({request: [self._done(request, choice, reason, error) for choice in choices]} if choices else {})

    def _delta(self, row: SequenceReport) -> Delta:
        cached = self._cached.pop((row.request, row.choice), None) if row.emitted else None
        return Delta(row.choice, row.emitted, row.logprobs, row.scores, cached)

    def _done(self, request: str, choice: int, reason: FinishReason, error: str | None = None) -> Done:
        self._open[request].discard(choice)
        self._cached.pop((request, choice), None)
        return Done(choice, reason, self._phases(request, choice), error)

    def _send(self, events: dict[str, list[Event]]) -> None:
        batch = [(self._sinks[request], tuple(items)) for request, items in events.items()]
        for request in events:
            if not self._open[request]:
                del self._open[request], self._sinks[request]
        if batch:
            self.post(batch)
