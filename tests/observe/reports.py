"""Reports of made-up steps, for the accounts to fold."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st

from twostroke.types import Admission, End, FinishReason, Logprobs, Report, Request, SequenceReport


def request(name: str = "r", *, prompt: int = 10, choices: int = 1, arrived_s: float = 100.0) -> Request:
    return Request(id=name, prompt=tuple(range(prompt)), max_tokens=64, choices=choices, arrived_s=arrived_s)


def admission(
    name: str = "r", *, choice: int = 0, prompt: int = 10, cached: int = 4, resumed: bool = False
) -> Admission:
    return Admission(choice, name, choice, "", prompt, cached, "cold" if cached < prompt - 1 else None, resumed)


def row(
    name: str = "r",
    *,
    choice: int = 0,
    computed: int = 1,
    emitted: int = 1,
    drafted: int = 0,
    accepted: int = 0,
    source: str = "ngram",
    reason: str = "",
    finished: FinishReason | None = None,
    logprobs: tuple[Logprobs, ...] = (),
) -> SequenceReport:
    return SequenceReport(
        sequence=choice,
        request=name,
        choice=choice,
        namespace="",
        start=0,
        computed=computed,
        context=computed,
        drafted=drafted,
        accepted=accepted,
        source=source if drafted else "",
        emitted=tuple(range(emitted)),
        logprobs=logprobs,
        finished=finished,
        reason=reason,
    )


def report(
    *rows: SequenceReport,
    at_s: float = 100.0,
    took_s: float = 1.0,
    admitted: tuple[Admission, ...] = (),
    ended: tuple[End, ...] = (),
    draft_s: float = 0.0,
    running: int = 1,
    waiting: int = 0,
    preempted: tuple[int, ...] = (),
    evicted: int = 0,
    kv_used: int = 0,
    kv_capacity: int = 0,
) -> Report:
    return Report(
        started_s=at_s,
        planned_s=at_s,
        executed_s=at_s + took_s,
        ended_s=at_s + took_s,
        rows=rows,
        admitted=admitted,
        ended=ended,
        draft_s=draft_s,
        running=running,
        waiting=waiting,
        preempted=preempted,
        evicted=evicted,
        kv_used=kv_used,
        kv_capacity=kv_capacity,
    )


@dataclass
class Run:
    """A whole made-up history: the requests, and the reports that end each of their choices exactly once."""

    requests: list[Request] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)


def runs() -> st.SearchStrategy[Run]:
    """Several answers side by side, each a prefill in chunks and then steps with or without drafts."""
    return st.integers(0, 2**32).map(lambda seed: _run(Random(seed)))


def _run(dice: Random) -> Run:
    run = Run()
    plans: dict[str, list[SequenceReport]] = {}
    for number in range(dice.randint(1, 4)):
        asked = request(f"r{number}", prompt=dice.randint(1, 30))
        run.requests.append(asked)
        plans[asked.id] = _rows(dice, asked.id)
    at_s, admitted = 100.0, tuple(admission(r.id, prompt=len(r.prompt), cached=0) for r in run.requests)
    while any(plans.values()):
        rows = [rest.pop(0) for rest in plans.values() if rest and dice.random() < 0.7]
        at_s, took_s = at_s + dice.uniform(0, 0.1), dice.uniform(0.001, 2)
        run.reports.append(report(*rows, at_s=at_s, took_s=took_s, admitted=admitted, draft_s=dice.choice([0.0, 0.01])))
        at_s, admitted = at_s + took_s, ()
    return run


def _rows(dice: Random, name: str) -> list[SequenceReport]:
    chunks = [row(name, computed=dice.randint(1, 16), emitted=0) for _ in range(dice.randint(0, 3))]
    steps = dice.randint(1, 8)
    return chunks + [_step(dice, name, first=i == 0, last=i == steps - 1) for i in range(steps)]


def _step(dice: Random, name: str, *, first: bool, last: bool) -> SequenceReport:
    drafted = 0 if first else dice.randint(0, 5)
    accepted = dice.randint(0, drafted)
    stop_inside = accepted > 0 and dice.random() < 0.3  # the stop cuts off what would have followed the drafts
    return row(
        name,
        computed=1 + drafted,
        emitted=accepted if stop_inside else accepted + 1,
        drafted=drafted,
        accepted=accepted,
        source=dice.choice(["ngram", "suffix"]),
        reason="" if drafted else dice.choice(["", "no_match", "load"]),
        finished=FinishReason.STOP if last else None,
    )
