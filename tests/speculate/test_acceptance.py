import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.speculate.acceptance import Acceptance, Rates

OUTCOMES = st.lists(st.tuples(st.integers(0, 8), st.booleans()), max_size=60)


def test_before_anything_is_seen_each_position_is_as_likely_as_the_first_belief():
    assert Acceptance(first=0.5).survival(1, "", 0, 3) == (0.5, 0.25, 0.125)


@given(OUTCOMES, st.integers(0, 12))
def test_survival_is_a_falling_sequence_of_probabilities(outcomes, count):
    acceptance = Acceptance()
    for agreed, failed in outcomes:
        acceptance.add(1, "", 0, 0, agreed, failed)
    survival = acceptance.survival(1, "", 0, count)
    assert len(survival) == count
    assert all(0 <= p <= 1 for p in survival)
    assert list(survival) == sorted(survival, reverse=True)


def test_a_sequence_that_always_fails_soon_knows_it():
    acceptance = Acceptance()
    for _ in range(10):
        acceptance.add(1, "", 0, 0, 0, True)
    assert acceptance.survival(1, "", 0, 1)[0] < 0.1


def test_a_sequence_that_always_succeeds_soon_knows_it():
    acceptance = Acceptance()
    for _ in range(10):
        acceptance.add(1, "", 0, 0, 4, False)
    assert acceptance.survival(1, "", 0, 4)[3] > 0.7


def test_each_position_has_its_own_rate():
    acceptance = Acceptance()
    for _ in range(50):
        acceptance.add(1, "", 0, 0, 2, True)
    first, second, third = acceptance.survival(1, "", 0, 3)
    assert min(first, second) > 0.9 > 0.1 > third


def test_a_change_of_the_text_is_noticed_within_a_dozen_guesses_either_way():
    acceptance = Acceptance()
    for _ in range(100):
        acceptance.add(1, "", 0, 0, 1, False)
    for _ in range(12):
        acceptance.add(1, "", 0, 0, 0, True)
    assert acceptance.survival(1, "", 0, 1)[0] < 0.4
    for _ in range(12):
        acceptance.add(1, "", 0, 0, 1, False)
    assert acceptance.survival(1, "", 0, 1)[0] > 0.6


def test_a_new_sequence_starts_from_its_namespace_and_no_other():
    acceptance = Acceptance(first=0.5)
    for sequence in range(20):
        acceptance.add(sequence, "a", 0, 0, 1, False)
        acceptance.add(100 + sequence, "b", 0, 0, 0, True)
    assert acceptance.survival(50, "a", 0, 1)[0] > 0.8
    assert acceptance.survival(51, "b", 0, 1)[0] < 0.2
    assert acceptance.survival(52, "c", 0, 1)[0] == 0.5


def test_strengths_do_not_share_a_record():
    acceptance = Acceptance(first=0.5)
    for _ in range(20):
        acceptance.add(1, "", 4, 0, 1, False)
        acceptance.add(1, "", 2, 0, 0, True)
    assert acceptance.survival(1, "", 4, 1)[0] > 0.8
    assert acceptance.survival(1, "", 2, 1)[0] < 0.1
    assert acceptance.survival(1, "", 3, 1)[0] == 0.5


def test_forgetting_a_sequence_keeps_what_the_namespace_learned():
    acceptance = Acceptance(first=0.5)
    for _ in range(20):
        acceptance.add(1, "a", 0, 0, 0, True)
    acceptance.forget(1)
    assert 0 < acceptance.survival(1, "a", 0, 1)[0] < 0.2


def test_purging_a_namespace_leaves_the_others():
    acceptance = Acceptance(first=0.5)
    for sequence, namespace in ((1, "a"), (2, "b")):
        for _ in range(20):
            acceptance.add(sequence, namespace, 0, 0, 0, True)
        acceptance.forget(sequence)
    acceptance.purge("a")
    assert acceptance.survival(1, "a", 0, 1)[0] == 0.5
    assert acceptance.survival(2, "b", 0, 1)[0] < 0.2


def test_the_namespace_unused_for_longest_is_forgotten_first():
    acceptance = Acceptance(first=0.5, namespaces=2)
    for namespace in ("a", "b"):
        acceptance.add(1, namespace, 0, 0, 0, True)
    acceptance.forget(1)
    assert acceptance.survival(9, "a", 0, 1)[0] < 0.5
    acceptance.add(2, "c", 0, 0, 0, True)
    acceptance.forget(2)
    assert acceptance.survival(9, "a", 0, 1)[0] < 0.5
    assert acceptance.survival(9, "b", 0, 1)[0] == 0.5


@given(OUTCOMES)
def test_rates_never_count_more_hits_than_trials(outcomes):
    rates = Rates(decay=0.9)
    for agreed, failed in outcomes:
        rates.add(0, agreed, failed)
    assert len(rates.hits) == len(rates.trials)
    assert all(0 <= h <= n for h, n in zip(rates.hits, rates.trials, strict=True))


def test_the_posterior_is_the_weighted_mean_of_prior_and_record():
    rates = Rates(decay=1.0)
    for agreed in (1, 1, 0):
        rates.add(0, agreed, agreed == 0)
    assert rates.rate(0, prior=0.5, weight=1.0) == (2 + 0.5) / (3 + 1)
    assert rates.rate(7, prior=0.25, weight=1.0) == 0.25


def test_a_guess_may_be_recorded_in_parts():
    whole, parts = Rates(decay=0.9), Rates(decay=0.9)
    whole.add(0, 3, True)
    parts.add(0, 1, False)
    parts.add(1, 3, False)
    parts.add(3, 3, True)
    assert (whole.hits, whole.trials) == (parts.hits, parts.trials)


def test_a_position_that_nobody_reached_is_believed_to_be_like_the_one_before_it():
    acceptance = Acceptance(first=0.5)
    for _ in range(30):
        acceptance.add(1, "", 0, 0, 1, False)
    first, second = acceptance.survival(1, "", 0, 2)
    assert second == first**2 > 0.9


def test_a_bad_start_at_a_position_is_forgotten_while_it_is_not_reached():
    """Else a drafter that is only asked for one token would never be asked for two again."""
    acceptance = Acceptance(first=0.5)
    acceptance.add(1, "", 0, 0, 1, True)
    after = [acceptance.survival(1, "", 0, 2)[1]]
    for _ in range(400):
        acceptance.add(1, "", 0, 0, 1, False)
        after.append(acceptance.survival(1, "", 0, 2)[1])
    assert after[-1] > 0.8 > after[1]


def test_a_streak_that_chance_does_not_explain_replaces_the_record():
    rates = Rates(decay=0.97)
    for _ in range(60):
        rates.add(0, 1, False)
    for _ in range(3):
        rates.add(0, 0, True)
    assert rates.rate(0, 0.0, 0.0) < 0.1
    for _ in range(3):
        rates.add(0, 1, False)
    assert rates.rate(0, 0.0, 0.0) > 0.4


def test_a_namespace_that_is_asked_no_more_gets_another_chance():
    acceptance = Acceptance(first=0.7)
    for _ in range(30):
        acceptance.add(1, "a", 0, 0, 0, True)
        acceptance.add(2, "b", 0, 0, 0, True)
    acceptance.forget(1)
    believed = acceptance.survival(3, "a", 0, 1)[0]
    for _ in range(20):
        acceptance.fade("a")
    assert believed < 0.2
    assert acceptance.survival(3, "a", 0, 1)[0] > 0.65
    assert acceptance.survival(4, "b", 0, 1)[0] < 0.2


def optimistic(acceptance: Acceptance, count: int) -> tuple[float, ...]:
    """An optimistic guess at sequence 1."""
    return acceptance.optimistic(1, 0, acceptance.survival(1, "", 0, count))


class TestHope:
    """Guesses that cost time are asked for by what they may be, until the sequence has shown what they are."""

    def seen(self, agreed: int, failed: int) -> Acceptance:
        acceptance = Acceptance(first=0.6)
        for number in range(agreed + failed):
            came = number % 2 == 0 if agreed == failed else number < agreed
            acceptance.add(1, "", 0, 0, int(came), not came)
        return acceptance

    def test_a_new_sequence_is_hoped_to_be_better_than_believed(self) -> None:
        acceptance = Acceptance(first=0.6)
        (believed,), (hope,) = acceptance.survival(1, "", 0, 1), optimistic(acceptance, 1)
        assert believed + 0.1 < hope < 1.0

    def test_a_failure_alone_does_not_silence_it_and_many_do(self) -> None:
        assert optimistic(self.seen(0, 1), 1)[0] > 0.55
        assert optimistic(self.seen(0, 6), 1)[0] < 0.4

    def test_the_hope_goes_as_evidence_comes(self) -> None:
        margins = []
        for pairs in (0, 4, 12, 40):
            acceptance = self.seen(pairs, pairs)
            margins.append(optimistic(acceptance, 1)[0] - acceptance.survival(1, "", 0, 1)[0])
        assert margins == sorted(margins, reverse=True)
        assert margins[-1] < 0.07

    def test_what_follows_the_first_is_as_likely_as_believed(self) -> None:
        acceptance = self.seen(3, 3)
        believed, survivals = acceptance.survival(1, "", 0, 3), optimistic(acceptance, 3)
        assert [b / a for a, b in itertools.pairwise(survivals)] == pytest.approx(
            [b / a for a, b in itertools.pairwise(believed)]
        )

    def test_certainty_needs_no_hope(self) -> None:
        acceptance = Acceptance(first=1.0)
        assert optimistic(acceptance, 2) == acceptance.survival(1, "", 0, 2)
        assert optimistic(acceptance, 0) == ()
