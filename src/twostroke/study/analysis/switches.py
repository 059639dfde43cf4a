"""Whether each arm did what its switches say: a server may ignore a switch, or claim what it did not do.

Two witnesses are heard.  The server's counters must be above zero where a switch is on and zero where it is off.  And
the client's clock must agree: reused tokens need no prefill, so the time to the first token must fall.  Claimed hits
without that are no hits, or hits that save nothing, and the arm is of no use either way.

Accepted drafts are different: verifying them costs time, and an honest engine may lose by it as much as it wins.
Accepted drafts that change the time per token by less than the margin are therefore a warning, not the end of the arm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from twostroke.study.analysis.estimate import Sample, ratio
from twostroke.study.analysis.result import Estimate, Finding
from twostroke.study.analysis.table import PHASES, Measure, Table
from twostroke.study.analysis.words import interval, number
from twostroke.study.arms import BOTH, BY_NAME, CACHE, DIFFERENT_PREFIX, NEITHER, SPECULATION, Arm
from twostroke.study.records import Record

STRAY_SHARE = 0.01  # of an arm's tokens: below, hits with the cache off are odd, and change no result
TEMPLATE_SHARE = 0.05  # what prompts that begin differently may share all the same: the chat template's opening
CLAIM_SHARE = 0.2  # of tokens: claims below it are too small for the clock to contradict

COMPARED_WITH = {CACHE.name: NEITHER.name, BOTH.name: SPECULATION.name}
DRAFTING_COMPARED_WITH = {SPECULATION.name: NEITHER.name, BOTH.name: CACHE.name}


def switches(table: Table, sample: Sample, margin: float) -> Iterator[Finding]:
    """What is wrong with each arm, in the order of the arms."""
    for arm in BY_NAME.values():
        if records := tuple(table.by_arm.get(arm.name, {}).values()):
            yield from _hits(arm, records)
            yield from _drafts(arm, records)
            yield from _time_of_hits(arm, table, sample)
            yield from _time_of_drafts(arm, table, sample, margin)


def total(records: tuple[Record, ...], count: Callable[[Record], int | None]) -> int | None:
    """The sum over the records that know it; None where none does."""
    known = [value for record in records if (value := count(record)) is not None]
    return sum(known) if known else None


def cached(record: Record) -> int | None:
    return record.cached_tokens


def prompt(record: Record) -> int | None:
    return record.prompt_tokens


def accepted(record: Record) -> int | None:
    return record.accepted


def drafted(record: Record) -> int | None:
    return record.drafted


def _hits(arm: Arm, records: tuple[Record, ...]) -> Iterator[Finding]:
    hits = total(records, cached)
    if hits is None:
        yield Finding(
            "note",
            arm.name,
            f"{arm.name}: the server reports no cached tokens, so the hit rate is unknown and hits are not checked; "
            "only the time to the first token can show that the cache did anything.",
        )
    elif arm.reuses and hits == 0:
        yield Finding(
            "invalid",
            arm.name,
            f"{arm.name}: the cache is on, and no prompt token was reused; the server ignores the switch, or the "
            "workload shares no text.",
        )
    elif not arm.cache and hits > 0:
        share = hits / max(total(records, prompt) or 0, 1)
        yield Finding(
            "invalid" if share > STRAY_SHARE else "warning",
            arm.name,
            f"{arm.name}: the cache is off, and {hits} prompt tokens were reused; the server ignores the switch.",
        )
    elif arm.name == DIFFERENT_PREFIX.name and hits > TEMPLATE_SHARE * (total(records, prompt) or 0):
        yield Finding(
            "invalid",
            arm.name,
            f"{arm.name}: {hits} prompt tokens were reused though every prompt begins differently; the control shows "
            "nothing.",
        )


def _drafts(arm: Arm, records: tuple[Record, ...]) -> Iterator[Finding]:
    kept, made = total(records, accepted), total(records, drafted)
    if kept is None and made is None:
        if arm.speculation:
            yield Finding(
                "note",
                arm.name,
                f"{arm.name}: the server reports no drafts, so acceptance is unknown and not checked; only the time "
                "per token can show that speculation did anything.",
            )
    elif arm.speculation and not made and all(record.output_tokens <= 1 for record in records):
        yield Finding("note", arm.name, f"{arm.name}: answers of one token leave nothing to draft.")
    elif arm.speculation and not kept:
        done = f"{made} drafts were made and none was accepted" if made else "no draft was made"
        yield Finding(
            "invalid",
            arm.name,
            f"{arm.name}: speculation is on, and {done}; the server ignores the switch, or its drafter finds nothing "
            "in this workload.",
        )
    elif not arm.speculation and (kept or made):
        yield Finding(
            "invalid",
            arm.name,
            f"{arm.name}: speculation is off, and {made or kept} drafts were made; the server ignores the switch.",
        )


def _time_of_hits(arm: Arm, table: Table, sample: Sample) -> Iterator[Finding]:
    over = COMPARED_WITH.get(arm.name)
    found = _over(arm.name, over, table, sample, PHASES["prefill"], _may_have_hit)
    if found is None:
        return
    hit = tuple(record for record in table.by_arm[arm.name].values() if record.cached_tokens)
    said = f"first token {number(found.value)} times that of {over}, {interval(found)}"
    if not hit:
        if total(tuple(table.by_arm[arm.name].values()), cached) is None and found.high >= 1:
            yield Finding(
                "warning",
                arm.name,
                f"{arm.name}: no hits reported, no time saved ({said}); the switch may do nothing.",
            )
        return
    share = (total(hit, cached) or 0) / max(total(hit, prompt) or 0, 1)
    half = 1 - share / 2
    if share < CLAIM_SHARE or found.high < half:
        return
    claim = f"{100 * share:.0f} % of the prompt reused"
    if found.high >= 1 and found.low > half:
        yield Finding(
            "invalid",
            arm.name,
            f"{arm.name}: hits claimed, no time saved ({claim}, {said}); the hits are not real, or prefill is too "
            "small a part of the time to the first token for this study.",
        )
    elif found.high >= 1:
        yield Finding(
            "warning",
            arm.name,
            f"{arm.name}: hits claimed, and no gain shown so far ({claim}, {said}); more requests would tell.",
        )
    elif found.low > half:
        yield Finding(
            "warning",
            arm.name,
            f"{arm.name}: less than half of what the hits promise was saved ({claim}, {said}).",
        )


def _may_have_hit(record: Record) -> bool:
    return record.cached_tokens is None or record.cached_tokens > 0


def _time_of_drafts(arm: Arm, table: Table, sample: Sample, margin: float) -> Iterator[Finding]:
    over = DRAFTING_COMPARED_WITH.get(arm.name)
    found = _over(arm.name, over, table, sample, PHASES["decode"], lambda record: True)
    if found is None or found.low_90 < 1 / (1 + margin) or found.high_90 > 1 + margin:
        return
    records = tuple(table.by_arm[arm.name].values())
    said = f"time per token {number(found.value)} times that of {over}, {interval(found)}"
    kept = total(records, accepted)
    if kept is None:
        yield Finding(
            "warning",
            arm.name,
            f"{arm.name}: no acceptances reported, no time saved ({said}); the switch may do nothing.",
        )
    elif (share := kept / max(sum(record.output_tokens for record in records), 1)) >= CLAIM_SHARE:
        yield Finding(
            "warning",
            arm.name,
            f"{arm.name}: acceptances claimed, no time saved ({100 * share:.0f} % of the tokens were accepted drafts, "
            f"{said}); they are not real, or verifying them costs what they save.",
        )


def _over(
    arm: str, over: str | None, table: Table, sample: Sample, measure: Measure, counts: Callable[[Record], bool]
) -> Estimate | None:
    """The ratio of two arms over the requests of the first that count."""
    if over is None or over not in table.by_arm:
        return None

    def measured(record: Record) -> float | None:
        return measure(record) if counts(record) else None

    outcomes = {arm: table.values(arm, measured), over: table.values(over, measure)}
    return ratio(outcomes, {arm: 1, over: -1}, sample)
