"""The drafter that never guesses: the null object behind `--speculate off`."""

from __future__ import annotations

from collections.abc import Sequence

from twostroke.cache.keys import Group
from twostroke.engine.protocols import SequenceView
from twostroke.types import Proposal, Report


class NoDraft:
    """Proposes nothing, and says that drafting is disabled."""

    name = "off"
    groups: tuple[Group, ...] = ()

    def propose(self, sequences: Sequence[SequenceView]) -> list[Proposal]:
        return [Proposal(s.id, source=self.name, reason="disabled") for s in sequences if s.ready]

    def observe(self, report: Report) -> None:
        pass

    def forget(self, sequence: int) -> None:
        pass

    def purge(self, namespace: str) -> None:
        pass
