import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.speculate.texts import Text, run
from twostroke.speculate.lookup import LookupDrafter
from twostroke.speculate.synthetic import Synthetic, always, recorded, uniform, wrong

ANSWER = [(i * 7919) % 1000 for i in range(4000)]


def history(rates, draft_tokens=4, id=1, seed=0):
    text = Text(id=id, tokens=[1, 2], prompt_length=2, remaining=10_000)
    lookup = Synthetic(recorded({((1, 2), 0): ANSWER}), always(*rates), seed)
    return run(LookupDrafter(lookup, draft_tokens), text, ANSWER)


@pytest.mark.parametrize("rates", [(0.5,), (0.9, 0.6, 0.3, 0.1), (0.2, 1.0, 1.0, 1.0)])
def test_each_position_is_accepted_at_its_own_rate(rates):
    tried, kept = [0] * 4, [0] * 4
    for proposal, accepted in history(rates):
        for i in range(min(accepted + 1, len(proposal.tokens))):
            tried[i] += 1
            kept[i] += i < accepted
    for i in range(4):
        rate = rates[min(i, len(rates) - 1)]
        assert tried[i] < 50 or kept[i] / tried[i] == pytest.approx(rate, abs=0.1)
    assert tried[0] > 500


def test_all_and_nothing_are_exact():
    assert all(kept == len(p.tokens) for p, kept in history((1.0,)))
    assert all(kept == 0 and p.tokens for p, kept in history((0.0,))[:-1])


def test_a_run_can_be_repeated_and_another_seed_or_sequence_is_another_run():
    assert history((0.5,)) == history((0.5,))
    assert history((0.5,)) != history((0.5,), seed=1)
    assert history((0.5,)) != history((0.5,), id=2)


def test_rates_may_depend_on_the_sequence_and_its_place():
    def rates(sequence):
        return (1.0,) if len(sequence.tokens) < 100 else (0.0,)

    text = Text(tokens=[1, 2], prompt_length=2, remaining=10_000)
    results = run(LookupDrafter(Synthetic(recorded({((1, 2), 0): ANSWER}), rates), 4), text, ANSWER[:200])
    assert [kept for _, kept in results][:10] == [4] * 10
    assert [kept for _, kept in results][-50:] == [0] * 50


def test_what_was_not_recorded_is_not_drafted():
    lookup = Synthetic(recorded({((1, 2), 0): ANSWER}), always(1.0))
    assert lookup.guess(Text(id=1, tokens=[1, 3], prompt_length=2), 4).tokens == ()
    assert lookup.guess(Text(id=2, tokens=[1, 2], prompt_length=2, choice=1), 4).tokens == ()


def test_the_answers_end_ends_the_drafts():
    lookup = Synthetic(lambda sequence: [5, 6], always(1.0))
    text = Text(tokens=[1], prompt_length=1)
    assert lookup.guess(text, 8).tokens == (5, 6)
    text.grow(5, 6)
    assert lookup.guess(text, 8).tokens == ()


@given(st.integers(0, 200_000))
def test_a_wrong_token_is_another_of_any_vocabulary_that_holds_the_right_one(token):
    assert wrong(token) != token
    assert 0 <= wrong(token) <= max(token, 1)


def test_the_hash_is_spread_evenly():
    values = [uniform(0, 1, i, j) for i in range(100) for j in range(10)]
    assert all(0 <= v < 1 for v in values)
    assert sum(values) / len(values) == pytest.approx(0.5, abs=0.03)
    assert len(set(values)) == len(values)


def test_forgetting_a_sequence_drops_its_answer():
    lookup = Synthetic(lambda sequence: [5, 6], always(1.0))
    lookup.guess(Text(), 1)
    lookup.forget(1)
    assert not lookup._answers
