from hypothesis import given
from hypothesis import strategies as st

from tests.speculate.texts import Text, run
from twostroke.speculate.lookup import LookupDrafter
from twostroke.speculate.prediction import Prediction, common_end

PREDICTED = list(range(100, 140))


def accepted(answer, prediction=PREDICTED, draft_tokens=8):
    text = Text(tokens=[1, 2], prompt_length=2, prediction=prediction)
    history = run(LookupDrafter(Prediction(), draft_tokens), text, answer)
    assert text.tokens[2:] == list(answer)
    return sum(kept for _, kept in history), len(history)


def test_an_answer_that_follows_is_drafted_whole():
    kept, steps = accepted(PREDICTED)
    assert steps == 5  # eight drafts and one more each
    assert kept + steps >= len(PREDICTED)


def test_without_a_prediction_nothing_is_drafted():
    guess = Prediction().guess(Text(tokens=[1, 2, 1, 2]), 4)
    assert (guess.tokens, guess.reason) == ((), "no_match")


def test_after_a_changed_token_it_goes_on_where_the_text_agrees_again():
    answer = [*PREDICTED[:10], 7, *PREDICTED[11:]]
    kept, _ = accepted(answer)
    assert kept >= len(answer) - 10


def test_after_an_insertion_a_deletion_and_a_moved_part_it_finds_the_way():
    for answer in (
        [*PREDICTED[:10], 7, 8, 9, *PREDICTED[10:]],
        [*PREDICTED[:10], *PREDICTED[20:]],
        [*PREDICTED[20:], *PREDICTED[:20]],
    ):
        kept, steps = accepted(answer)
        assert kept >= len(answer) * 0.6
        assert steps < len(answer) * 0.4


def test_a_prediction_of_something_else_drafts_at_first_and_then_nothing():
    text = Text(tokens=[1, 2], prompt_length=2, prediction=PREDICTED)
    history = run(LookupDrafter(Prediction()), text, [7] * 20)
    assert [len(p.tokens) for p, _ in history] == [8] + [0] * 19


def test_the_nearest_place_ahead_is_preferred_among_equals():
    prediction = [5, 6, 1, 0, 0, 0, 5, 6, 2, 0, 0, 0, 5, 6, 3]
    text = Text(tokens=[9], prompt_length=1, prediction=prediction)
    lookup = Prediction()
    lookup.guess(text, 1)
    text.grow(5, 6, 1, 0, 8, 5, 6)
    assert lookup.guess(text, 1).tokens == (2,)


def test_the_end_of_the_prediction_ends_the_drafts():
    text = Text(tokens=[9], prompt_length=1, prediction=[1, 2, 3])
    lookup = Prediction()
    assert lookup.guess(text, 8).tokens == (1, 2, 3)
    text.grow(1, 2, 3)
    assert lookup.guess(text, 8).tokens == ()


def test_a_place_found_by_one_token_counts_as_weaker_than_a_long_agreement():
    text = Text(tokens=[9], prompt_length=1, prediction=PREDICTED)
    lookup = Prediction()
    strengths = [lookup.guess(text, 1).strength]
    for token in (50, *PREDICTED[10:20]):
        text.grow(token)
        strengths.append(lookup.guess(text, 1).strength)
    assert strengths[0] == 2
    assert strengths[2:] == sorted(strengths[2:])
    assert (strengths[2], strengths[-1]) == (0, 2)


def test_forgetting_a_sequence_releases_its_cursor():
    lookup = Prediction()
    text = Text(tokens=[9], prompt_length=1, prediction=[1, 2, 3])
    lookup.guess(text, 1)
    lookup.forget(text.id)
    assert not lookup._cursors


def test_common_end_counts_agreeing_tokens_backwards():
    assert common_end([1, 2, 3, 4], 2, [9, 2, 3]) == 2
    assert common_end([2, 3], 1, [1, 2, 3]) == 2
    assert common_end([2, 4], 1, [1, 2, 3]) == 0


@given(
    st.lists(st.integers(0, 4), max_size=30), st.lists(st.integers(0, 4), min_size=1, max_size=30), st.integers(1, 8)
)
def test_any_prediction_leaves_any_answer_as_it_is(prediction, answer, draft_tokens):
    accepted(answer, prediction, draft_tokens)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.lists(st.integers(0, 4), max_size=30), st.data())
def test_the_cursor_does_not_depend_on_how_the_answer_came_in(prediction, answer, data):
    whole, pieces = Prediction(), Prediction()
    text = Text(tokens=[9], prompt_length=1, prediction=prediction)
    pieces.guess(text, 4)
    while len(text.tokens) <= len(answer):
        text.grow(*answer[len(text.tokens) - 1 :][: data.draw(st.integers(1, 5))])
        pieces.guess(text, 4)
    assert whole.guess(text, 4) == pieces.guess(text, 4)
