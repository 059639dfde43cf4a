"""What the engine asks of its neighbours.

Each protocol has a null object, so no line of the engine asks whether a feature is on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from twostroke.cache.keys import Group
from twostroke.types import Grammar, Limits, Picks, Proposal, Report, Row, Sampling


class Runner(Protocol):
    """The vault: turns rows of integers into the target's choices."""

    def execute(self, rows: Sequence[Row]) -> Sequence[Picks]:
        """One forward pass over all rows; `len(result[i].tokens) == rows[i].samples`.

        All copies of all rows are made before anything is computed.  A grammar that fails is told in its row's
        `Picks.error`; what is raised fails all rows.
        """
        ...


class SequenceView(Protocol):
    """What a drafter may read of a running sequence.  Read-only by contract."""

    @property
    def id(self) -> int: ...
    @property
    def tokens(self) -> Sequence[int]: ...  # prompt and committed output, never drafts
    @property
    def prompt_length(self) -> int: ...
    @property
    def remaining(self) -> int: ...  # tokens the answer may still grow by
    @property
    def ready(self) -> bool: ...  # all known tokens but the last are computed: the next row can verify drafts
    @property
    def cached(self) -> int: ...  # target positions reused at admission
    @property
    def namespace(self) -> str: ...
    @property
    def prefix_cache(self) -> bool: ...
    @property
    def sampling(self) -> Sampling: ...
    @property
    def choice(self) -> int: ...
    @property
    def speculate(self) -> str | None: ...  # a drafter's name, "off", or None for the server's choice
    @property
    def draft_tokens(self) -> int | None: ...
    @property
    def prediction(self) -> Sequence[int]: ...
    @property
    def grammar(self) -> Grammar | None: ...  # what the answer must keep to; not to be advanced


class Drafter(Protocol):
    """Guesses the next tokens of running sequences.  Wrong guesses cost time, never correctness."""

    name: str
    groups: tuple[Group, ...]  # KV it keeps in the ledger; empty for lookups

    def propose(self, sequences: Sequence[SequenceView]) -> Sequence[Proposal]:
        """One proposal per sequence it has something to say about (an empty one says why)."""
        ...

    def observe(self, report: Report) -> None:
        """Learn from what was accepted."""
        ...

    def forget(self, sequence: int) -> None:
        """The sequence ended or was preempted: release whatever is kept for it."""
        ...


class View(Protocol):
    """What a governor may read of the engine."""

    @property
    def running(self) -> Collection[SequenceView]: ...
    @property
    def prefilling(self) -> int: ...  # known positions of running sequences that are not yet computed, beyond one each
    @property
    def entering(self) -> int: ...  # known tokens of the next to be admitted; 0 if it does not fit


class Governor(Protocol):
    """Decides how much the next step may do, drafts included.  Pure but for what it learns from reports."""

    def price(self, proposals: Sequence[Proposal], view: View) -> Limits: ...

    def observe(self, report: Report) -> None: ...


class Observer(Protocol):
    """Folds over step reports: accounts, metrics, logs, delivery."""

    def __call__(self, report: Report) -> None: ...
