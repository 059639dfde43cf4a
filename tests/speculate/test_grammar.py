"""Forced tokens are drafts that cost nothing, and nobody else's drafts change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.composition.features import Toy
from tests.govern.views import FakeSequence
from twostroke.engine.protocols import SequenceView
from twostroke.speculate.grammar import GrammarDrafts
from twostroke.speculate.none import NoDraft
from twostroke.types import Grammar, Proposal


class Says(NoDraft):
    """A drafter that always says the same."""

    name = "says"

    def __init__(self, *tokens: int) -> None:
        self.tokens = tokens

    def propose(self, sequences: Sequence[SequenceView]) -> list[Proposal]:
        return [Proposal(s.id, self.tokens, (0.5,) * len(self.tokens), self.name) for s in sequences]


class Fails(Toy):
    def forced(self) -> tuple[int, ...]:
        raise RuntimeError("no")


def view(grammar: Grammar | None, **fields: Any) -> FakeSequence:
    return FakeSequence(grammar=grammar, **fields)


def toy() -> Toy:
    """One whose next two tokens are forced: 2 and 2."""
    grammar = Toy()
    grammar.fed = [2]
    assert grammar.forced() == (2, 2)
    return grammar


def propose(drafter: Says, sequence: FakeSequence, draft_tokens: int = 8) -> Sequence[Proposal]:
    return GrammarDrafts(drafter, draft_tokens).propose([sequence])


def test_what_is_forced_replaces_a_guess_that_disagrees_or_is_shorter() -> None:
    for tokens in ((), (2,), (2, 3, 4), (5, 5, 5)):
        assert propose(Says(*tokens), view(toy())) == [Proposal(1, (2, 2), (1.0, 1.0), "grammar")]


def test_a_guess_that_begins_with_it_is_kept_and_surer() -> None:
    assert propose(Says(2, 2, 6), view(toy())) == [Proposal(1, (2, 2, 6), (1.0, 1.0, 0.5), "says")]


@pytest.mark.parametrize("fields", [{"speculate": "off"}, {"draft_tokens": 0}, {"ready": False}, {"remaining": 1}])
def test_who_does_not_draft_gets_nothing_forced(fields: dict[str, Any]) -> None:
    assert propose(Says(5), view(toy(), **fields)) == Says(5).propose([view(None)])


def test_no_more_than_may_be_drafted() -> None:
    assert propose(Says(), view(toy()), draft_tokens=1)[0].tokens == (2,)
    assert propose(Says(), view(toy(), draft_tokens=1))[0].tokens == (2,)
    assert propose(Says(), view(toy(), remaining=2))[0].tokens == (2,)
    assert GrammarDrafts(NoDraft(), 8).propose([view(toy())])[0].reason == "disabled"


def test_without_a_grammar_or_with_one_that_fails_the_drafter_is_alone() -> None:
    for grammar in (None, Fails()):
        assert propose(Says(5), view(grammar)) == [Proposal(1, (5,), (0.5,), "says")]
