"""A sequence without an engine: what a drafter may read, and a loop that verifies against a known answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from twostroke.types import Proposal, Report, Sampling, SequenceReport


@dataclass
class Text:
    """Implements `SequenceView`; `tokens` grows as the test commits."""

    id: int = 1
    tokens: list[int] = field(default_factory=list)
    prompt_length: int = 0
    remaining: int = 1000
    ready: bool = True
    cached: int = 0
    namespace: str = ""
    prefix_cache: bool = True
    sampling: Sampling = field(default_factory=Sampling)
    choice: int = 0
    speculate: str | None = None
    draft_tokens: int | None = None
    prediction: Sequence[int] = ()

    def grow(self, *tokens: int) -> None:
        self.tokens.extend(tokens)
        self.remaining -= len(tokens)


def row(text: Text, emitted: Sequence[int] = (), drafted: int = 0, finished=None, source: str = "") -> SequenceReport:
    """The report's line for a step that verified `drafted` drafts and emitted `emitted`."""
    return SequenceReport(
        sequence=text.id,
        request=f"request-{text.id}",
        choice=text.choice,
        namespace=text.namespace,
        start=len(text.tokens) - len(emitted) - 1,
        computed=1 + drafted,
        context=len(text.tokens) + drafted,
        drafted=drafted,
        accepted=max(0, len(emitted) - 1),
        source=source,
        emitted=tuple(emitted),
        logprobs=(),
        finished=finished,
        reason="",
    )


def report(*rows: SequenceReport, seconds: float = 0.1, **fields) -> Report:
    return Report(started_s=0.0, planned_s=0.0, executed_s=seconds, ended_s=seconds, rows=tuple(rows), **fields)


def agreed(drafts: Sequence[int], answer: Sequence[int]) -> int:
    """How many leading drafts are the answer's tokens."""
    return next((i for i, d in enumerate(drafts) if i >= len(answer) or d != answer[i]), len(drafts))


def run(drafter, text: Text, answer: Sequence[int]) -> list[tuple[Proposal, int]]:
    """Verify the drafter's proposals against `answer` until it is written; each proposal with how much was accepted."""
    history, done = [], 0
    while done < len(answer):
        (proposal,) = drafter.propose([text])
        kept = agreed(proposal.tokens, answer[done:])
        emitted = answer[done : done + kept + 1]
        text.grow(*emitted)
        done += len(emitted)
        history.append((proposal, min(kept, len(emitted))))
        drafter.observe(report(row(text, emitted, len(proposal.tokens), source=proposal.source)))
    return history
