"""An engine without an engine: what a governor may read, and reports of its steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from twostroke.types import FinishReason, Grammar, Proposal, Report, Sampling, SequenceReport


@dataclass
class FakeSequence:
    """Implements `SequenceView`; a context is a number here, its tokens are all 0."""

    id: int = 1
    context: int = 100
    prompt_length: int = 50
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
    grammar: Grammar | None = None

    @property
    def tokens(self) -> range:
        return range(self.context)


@dataclass
class Engine:
    """Implements `View`."""

    running: Collection[FakeSequence] = ()
    prefilling: int = 0
    entering: int = 0


def draft(sequence: int = 1, *survival: float, source: str = "ngram") -> Proposal:
    """A proposal of as many tokens as survivals."""
    return Proposal(sequence, tuple(range(1, len(survival) + 1)), survival, source)


def line(
    sequence: int = 1,
    drafted: int = 0,
    accepted: int = 0,
    *,
    context: int = 100,
    computed: int | None = None,
    emitted: int | None = None,
    source: str = "ngram",
    finished: FinishReason | None = None,
) -> SequenceReport:
    count = accepted + 1 if emitted is None else emitted
    return SequenceReport(
        sequence=sequence,
        request=f"request-{sequence}",
        choice=0,
        namespace="",
        start=context - 1,
        computed=1 + drafted if computed is None else computed,
        context=context,
        drafted=drafted,
        accepted=accepted,
        source=source if drafted else "",
        emitted=(0,) * count,
        logprobs=(),
        finished=finished,
        reason="",
    )


def step(*rows: SequenceReport, seconds: float = 0.06, **fields) -> Report:
    return Report(started_s=1.0, planned_s=1.0, executed_s=1.0 + seconds, ended_s=1.0 + seconds, rows=rows, **fields)
