"""What became of drafts, without a cache (cold) and on cache hits (warm): a hit should change nothing."""

from __future__ import annotations

from itertools import zip_longest

from twostroke.study.analysis.estimate import Sample, ratio
from twostroke.study.analysis.result import Acceptance, WarmCold
from twostroke.study.analysis.table import Table
from twostroke.study.arms import BOTH, SPECULATION
from twostroke.study.records import Record


def warm_and_cold(table: Table, sample: Sample) -> WarmCold:
    """Tokens per step are compared inside each call; None where the server reports neither steps nor acceptances."""
    outcomes = {arm.name: table.values(arm.name, tokens_per_step) for arm in (BOTH, SPECULATION)}
    return WarmCold(
        cold=_acceptance(SPECULATION.name, table),
        warm=_acceptance(BOTH.name, table),
        tokens_per_step_ratio=ratio(outcomes, {BOTH.name: 1, SPECULATION.name: -1}, sample),
    )


def steps(record: Record) -> int | None:
    """Target passes that emitted tokens, the first included: each gives its accepted drafts and one token more."""
    if record.account is not None and record.account.steps > 0:
        return record.account.steps
    return record.output_tokens - record.accepted if record.accepted is not None else None


def tokens_per_step(record: Record) -> float | None:
    """Output tokens over `steps`; None where steps are unknown."""
    passes = steps(record)
    return record.output_tokens / passes if passes and passes > 0 and record.output_tokens else None


def _acceptance(arm: str, table: Table) -> Acceptance | None:
    known = [record for record in table.by_arm.get(arm, {}).values() if record.accepted is not None]
    if not known:
        return None
    drafted, accepted = (
        sum(values) for values in zip(*((r.drafted or 0, r.accepted or 0) for r in known), strict=True)
    )
    passes = sum(steps(record) or 0 for record in known)
    columns = zip_longest(*(record.accepted_per_position for record in known), fillvalue=0)
    return Acceptance(
        arm=arm,
        drafted=drafted,
        accepted=accepted,
        rate=accepted / drafted if drafted else None,
        tokens_per_step=sum(record.output_tokens for record in known) / passes if passes else None,
        by_position=tuple(sum(column) / passes for column in columns) if passes else (),
    )
