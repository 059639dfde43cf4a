"""What one call under one arm gave, as the client saw it and as the server told it.

One record is one line of `requests.jsonl`.  Times are the client's own; whatever only the server can know is None where
the server does not say it, never a guess.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from twostroke.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ServerAccount:
    """The server's own account of a request (Twostroke's `phases`); milliseconds."""

    queue_ms: float
    prefill_ms: float
    prefill_saved_ms: float
    decode_ms: float
    decode_saved_ms: float
    draft_ms: float
    steps: int


@dataclass(frozen=True, slots=True)
class Record:
    """One call, one arm, one repeat.  A failed call has an `error`, and its times say nothing."""

    call: str
    session: str
    arm: str
    repeat: int  # which block of arms
    load: str  # how many calls were in flight: "1" for one at a time, "4", or "0.5/s" for a rate
    place: int  # in the order of sending, over the whole study
    sent_s: float  # after the study began
    ttft_ms: float
    total_ms: float
    gaps_ms: tuple[float, ...]  # between chunks of the answer that followed the first
    output_tokens: int
    text: str  # of the whole answer, tool calls included as JSON
    finish_reason: str | None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    accepted_per_position: tuple[int, ...] = ()
    account: ServerAccount | None = None
    error: str | None = None

    @property
    def tpot_ms(self) -> float | None:
        """Milliseconds per token after the first; None for an answer of one token."""
        return (self.total_ms - self.ttft_ms) / (self.output_tokens - 1) if self.output_tokens > 1 else None


def write(path: Path, record: Record) -> None:
    """Append one line; a study that is interrupted keeps every call that ended."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(record), ensure_ascii=False, separators=(",", ":")) + "\n")


def read(path: Path) -> tuple[Record, ...]:
    """Every record of a file.  Raises `ConfigError` with the line number of one that is none."""
    return tuple(_records(path))


def _records(path: Path) -> Iterator[Record]:
    with path.open(encoding="utf-8") as file:
        yield from (_record(path, number, line) for number, line in enumerate(file, 1) if line.strip())


def _record(path: Path, number: int, line: str) -> Record:
    try:
        fields: dict[str, Any] = json.loads(line)
        account = fields.pop("account")
        lists: dict[str, Any] = {name: tuple(fields.pop(name)) for name in ("gaps_ms", "accepted_per_position")}
        return Record(**fields, **lists, account=ServerAccount(**account) if account else None)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"{path}, line {number}, is no record of a study: {error}") from None


def whole(records: Iterable[Record]) -> tuple[Record, ...]:
    """Those that did not fail."""
    return tuple(record for record in records if record.error is None)
