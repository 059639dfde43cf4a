import pytest

from tests.speculate.texts import Text, run
from twostroke.speculate.lookup import MOST_DRAFTS, Guess, LookupDrafter, allowed


class Always:
    """A lookup that guesses the same token for ever, or nothing."""

    name = "always"

    def __init__(self, token=7, strength=0):
        self.token, self.strength = token, strength
        self.limits, self.heard, self.read_ids, self.forgotten, self.purged = [], [], [], [], []

    def guess(self, sequence, limit):
        self.limits.append(limit)
        return Guess() if self.token is None else Guess((self.token,) * limit, self.strength)

    def read(self, sequence):
        self.read_ids.append(sequence.id)

    def observe(self, report):
        self.heard.append(report)

    def forget(self, sequence):
        self.forgotten.append(sequence)

    def purge(self, namespace):
        self.purged.append(namespace)


@pytest.mark.parametrize(
    ("asked", "remaining", "limit"),
    [(None, 100, 8), (3, 100, 3), (16, 100, 16), (None, 4, 3), (64, 1000, 64), (999, 1000, MOST_DRAFTS), (None, 1, 0)],
)
def test_the_cap_is_the_requests_else_the_servers_and_never_past_the_answers_end(asked, remaining, limit):
    assert allowed(Text(draft_tokens=asked, remaining=remaining), 8) == limit


def test_a_proposal_carries_tokens_survival_and_source():
    (proposal,) = LookupDrafter(Always(), draft_tokens=3).propose([Text(id=5)])
    assert (proposal.sequence, proposal.tokens, proposal.source, proposal.reason) == (5, (7, 7, 7), "always", "")
    assert proposal.survival == (0.5, 0.25, 0.125)


def test_an_empty_proposal_says_why():
    drafter = LookupDrafter(Always(token=None))
    texts = [
        Text(id=1),
        Text(id=2, speculate="off"),
        Text(id=3, draft_tokens=0),
        Text(id=4, remaining=1),
        Text(id=5, remaining=0),
    ]
    proposals = drafter.propose(texts)
    assert [p.reason for p in proposals] == ["no_match", "disabled", "disabled", "tail", "tail"]
    assert not any(p.tokens for p in proposals)


def test_a_sequence_that_still_reads_its_prompt_is_read_along_but_gets_no_proposal():
    lookup = Always()
    assert LookupDrafter(lookup).propose([Text(id=1, ready=False), Text(id=2, ready=False, speculate="off")]) == []
    assert lookup.read_ids == [1]


def test_what_comes_true_raises_survival_and_what_fails_lowers_it():
    for answer, better in (([7] * 40, True), ([1] * 40, False)):
        drafter, text = LookupDrafter(Always(), draft_tokens=2), Text()
        history = run(drafter, text, answer)
        first, last = history[0][0].survival, history[-2][0].survival
        assert (last[0] > first[0]) is better


def test_a_guess_is_scored_even_if_nothing_of_it_was_verified():
    """Depth 0: one token a step, and still the record of later positions fills."""
    drafter, text = LookupDrafter(Always(), draft_tokens=4), Text()
    for _ in range(60):
        drafter.propose([text])
        text.grow(7)
    (proposal,) = drafter.propose([text])
    assert proposal.survival[3] > 0.7
    for _ in range(30):
        drafter.propose([text])
        text.grow(1)
    (proposal,) = drafter.propose([text])
    assert proposal.survival[0] < 0.2


def test_each_position_of_a_guess_is_scored_once_and_as_soon_as_it_is_decided():
    drafter, text = LookupDrafter(Always(), draft_tokens=4), Text()
    heard = []
    drafter.acceptance.add = lambda *args: heard.append(args)
    drafter.propose([text])
    for token in (7, 7, 1, 7, 7, 7, 7):
        text.grow(token)
        drafter.propose([text])
    first = [(0, 1, False), (1, 2, False), (2, 2, True)]  # two come true, the third does not
    second = [(0, 1, False), (1, 2, False), (2, 3, False), (3, 4, False)]  # made where the first failed
    assert heard == [(1, "", 0, *scored) for scored in first + second]


def test_what_is_undecided_when_an_answer_ends_counts_for_nothing():
    drafter, text = LookupDrafter(Always(), draft_tokens=4), Text()
    drafter.propose([text])
    drafter.forget(text.id)
    (proposal,) = drafter.propose([Text(id=2)])
    assert proposal.survival == (0.5, 0.25, 0.125, 0.0625)


def test_reports_forgets_and_purges_reach_the_lookup():
    lookup = Always()
    drafter = LookupDrafter(lookup)
    drafter.observe("a report")
    drafter.forget(3)
    drafter.purge("a")
    assert (lookup.heard, lookup.forgotten, lookup.purged) == (["a report"], [3], ["a"])


def test_a_drafter_of_token_ids_keeps_no_kv():
    assert LookupDrafter(Always()).groups == ()
