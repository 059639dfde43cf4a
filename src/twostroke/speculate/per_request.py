"""Gives each sequence the drafter it asked for.

A request may name a drafter, say "off", or leave the choice to the server.  This is itself a drafter, so the engine
sees one.  Knows the drafters by name and nothing of what they do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twostroke.cache.keys import Group
from twostroke.engine.protocols import Drafter, SequenceView
from twostroke.types import Proposal, Report


class PerRequest:
    """Routes by `sequence.speculate`; `default` serves those that name none."""

    def __init__(self, drafters: Mapping[str, Drafter], default: str) -> None:
        self.name = default
        self.drafters = dict(drafters)
        self.default = self.drafters[default]
        self.groups: tuple[Group, ...] = tuple(dict.fromkeys(g for d in self.drafters.values() for g in d.groups))

    def propose(self, sequences: Sequence[SequenceView]) -> list[Proposal]:
        asked: dict[str, list[SequenceView]] = {}
        for sequence in sequences:
            asked.setdefault(sequence.speculate or self.name, []).append(sequence)
        # A drafter unknown here was refused at the gate; a sequence that still names one gets the server's choice.
        return [p for name, group in asked.items() for p in self.drafters.get(name, self.default).propose(group)]

    def observe(self, report: Report) -> None:
        for drafter in self.drafters.values():
            drafter.observe(report)

    def forget(self, sequence: int) -> None:
        for drafter in self.drafters.values():
            drafter.forget(sequence)

    def purge(self, namespace: str) -> None:
        """Forget all text of a namespace, in every drafter that keeps any."""
        for drafter in self.drafters.values():
            if (purge := getattr(drafter, "purge", None)) is not None:
                purge(namespace)
