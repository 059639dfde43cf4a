"""Good proposals are kept as they are, deep ones cut, and everything else told of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.composition.features import Toy
from twostroke.cache.table import Table
from twostroke.engine.proposals import MOST_DRAFTS, usable_proposals
from twostroke.engine.sequence import Sequence
from twostroke.types import Proposal, Request


def running(number: int = 0, ready: bool = True, **fields: Any) -> Sequence:
    request = Request(f"r{number}", (1, 2, 3), fields.pop("max_tokens", 9), **fields)
    sequence = Sequence(number, request, 0, 3 + request.max_tokens)
    sequence.table = Table("")
    sequence.computed = 2 if ready else 1
    return sequence


def good(number: int = 0, *tokens: int) -> Proposal:
    return Proposal(number, tokens, (0.5,) * len(tokens), "x")


def test_good_proposals_are_kept_as_they_are() -> None:
    proposals = [good(1, 4, 5), good(0, 6), Proposal(2, reason="no_match")]
    kept, faults = usable_proposals(proposals, [running(n) for n in range(3)], 7)
    assert kept == proposals
    assert faults == []


def test_a_second_proposal_for_a_sequence_is_junk() -> None:
    kept, faults = usable_proposals([good(0, 1), good(0, 2)], [running()], 7)
    assert kept == [good(0, 1)]
    assert "has one already" in str(faults[0])


def test_a_bad_first_proposal_leaves_room_for_a_good_second() -> None:
    kept, faults = usable_proposals([good(0, 99), good(0, 2)], [running()], 7)
    assert kept == [good(0, 2)]
    assert len(faults) == 1


@pytest.mark.parametrize(
    ("sequence", "kept"),
    [
        (running(), good(0, 1, 2, 3)),
        (running(max_tokens=3), good(0, 1, 2)),
        (running(draft_tokens=1), good(0, 1)),
        (running(max_tokens=1), Proposal(0, source="x", reason="tail")),
        (running(ready=False), Proposal(0, source="x")),
    ],
    ids=["all", "answer nearly over", "asked for fewer", "last token", "still reading"],
)
def test_what_cannot_be_used_is_cut(sequence: Sequence, kept: Proposal) -> None:
    assert usable_proposals([good(0, 1, 2, 3)], [sequence], 7) == ([kept], [])


def test_so_many_tokens_are_no_guess() -> None:
    assert usable_proposals([good(0, *[1] * MOST_DRAFTS)], [running()], 7)[1] == []
    assert len(usable_proposals([good(0, *[1] * (MOST_DRAFTS + 1))], [running()], 7)[1]) == 1


JUNK = st.one_of(
    st.none(), st.integers(), st.text(max_size=2), st.floats(), st.booleans(), st.lists(st.integers(), max_size=2)
)


@given(
    st.lists(
        st.builds(Proposal, st.one_of(JUNK, st.just(0)), st.one_of(JUNK, st.tuples(JUNK)), st.tuples(JUNK)),
        max_size=4,
    )
)
def test_whatever_is_kept_can_be_verified(proposals: list[Proposal]) -> None:
    kept, faults = usable_proposals(proposals, [running()], 7)
    assert len(kept) + len(faults) == len(proposals)
    for proposal in kept:
        assert proposal.sequence == 0
        assert all(type(token) is int and 0 <= token < 7 for token in proposal.tokens)
        assert all(0 <= rate <= 1 for rate in proposal.survival)


class Broken(Toy):
    def valid(self, drafts: object) -> int:
        raise RuntimeError("no")


def test_drafts_end_where_they_leave_the_grammar() -> None:
    kept, faults = usable_proposals(
        [good(0, 1, 6, 3, 1), good(1, 6, 0)], [running(n, grammar=Toy) for n in range(2)], 7
    )
    assert kept == [good(0, 1, 6, 3), Proposal(1, (), (), "x", "grammar")]
    assert Toy().valid((1, 6, 3, 1)) == 3
    assert faults == []


def test_a_grammar_that_fails_costs_its_own_drafts() -> None:
    kept, faults = usable_proposals([good(0, 0), good(1, 0)], [running(0, grammar=Broken), running(1)], 7)
    assert kept == [Proposal(0, (), (), "x", "grammar"), good(1, 0)]
    assert faults == []
