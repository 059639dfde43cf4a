"""Whether records are what they should be: client and server agree, prompts are equal, nothing is missing.

A client sees the first token after the server has queued the request and read its prompt, so the server's account of
both can never be the longer one.  It is allowed 5 ms and 2 %: a server may close its account one turn of its event loop
after the first bytes left, and two clocks need not run alike.
"""

from __future__ import annotations

from collections.abc import Iterator

from twostroke.study.analysis.result import Finding
from twostroke.study.analysis.table import Table, errors
from twostroke.study.arms import ARMS, FACTORIAL, NEITHER
from twostroke.study.records import Record

TOLERANCE_MS, TOLERANCE_SHARE = 5.0, 0.02
NOTABLE_SHARE = 0.01  # of an arm's requests: fewer are stray


def stories(table: Table) -> Iterator[Finding]:
    """Findings on each arm's records, in the order of the arms."""
    for arm in ARMS:
        if arm.name not in table.sent:
            continue
        records = tuple(table.by_arm.get(arm.name, {}).values())
        yield from _failures(arm.name, table)
        yield from _usage(arm.name, records)
        yield from _accounts(arm.name, records)
        yield from _one_piece(arm.name, records)
    for arm in FACTORIAL[1:]:
        yield from _prompts(arm.name, table)


def exceeds(record: Record) -> bool:
    """Whether the server says that it spent longer before the first token than the client waited for it."""
    if record.account is None:
        return False
    return record.account.queue_ms + record.account.prefill_ms > record.ttft_ms * (1 + TOLERANCE_SHARE) + TOLERANCE_MS


def _failures(arm: str, table: Table) -> Iterator[Finding]:
    reasons = errors(table.sent[arm])
    if reasons:
        failed = sum(count for _, count in reasons)
        said = "; ".join(f"{count} × {reason}" for reason, count in reasons)
        yield Finding(
            "warning",
            arm,
            f"{arm}: {failed} of {len(table.sent[arm])} requests failed ({said}); their pairs are left out, so if slow "
            "requests fail, this arm looks faster than it is.",
        )
    if missing := table.missing(arm):
        yield Finding("note", arm, f"{arm}: {missing} requests that other arms have were not sent.")


def _usage(arm: str, records: tuple[Record, ...]) -> Iterator[Finding]:
    if records and all(record.prompt_tokens is None for record in records):
        yield Finding(
            "note",
            arm,
            f"{arm}: the server's stream has no usage; prompt lengths, hits and acceptance are lost, and output "
            "tokens are what the client counted.",
        )


def _accounts(arm: str, records: tuple[Record, ...]) -> Iterator[Finding]:
    wrong = sum(exceeds(record) for record in records)
    if records and wrong / len(records) > NOTABLE_SHARE:
        yield Finding(
            "warning",
            arm,
            f"{arm}: in {wrong} of {len(records)} requests the server says that queueing and prefill took longer than "
            "the client waited for the first token; its account is not to be trusted.",
        )


def _one_piece(arm: str, records: tuple[Record, ...]) -> Iterator[Finding]:
    silent = sum(record.output_tokens > 1 and record.total_ms <= record.ttft_ms for record in records)
    if silent:
        yield Finding(
            "warning",
            arm,
            f"{arm}: {silent} of {len(records)} answers came in one piece; the time per token of these is lost.",
        )


def _prompts(arm: str, table: Table) -> Iterator[Finding]:
    """The arms must read the same prompts."""
    pairs = table.pairs(arm, NEITHER.name)
    other = sum(_known_to_differ(record, neither) for record, neither in pairs)
    if other:
        yield Finding(
            "warning",
            arm,
            f"{arm}: {other} of {len(pairs)} prompts have another number of tokens than under {NEITHER.name}; the arms "
            "were not asked the same.",
        )


def _known_to_differ(record: Record, other: Record) -> bool:
    both = (record.prompt_tokens, other.prompt_tokens)
    return None not in both and both[0] != both[1]
