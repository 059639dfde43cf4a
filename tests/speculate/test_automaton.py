import random

from hypothesis import given
from hypothesis import strategies as st

from twostroke.speculate.automaton import COUNTED, ROOT, Automaton, walk

TEXTS = st.lists(st.lists(st.integers(0, 2), max_size=24), min_size=1, max_size=4)


def grown(*texts):
    automaton = Automaton()
    for text in texts:
        automaton.start()
        for token in text:
            automaton.extend(token)
    return automaton


def find(automaton, string):
    """The state of a string, or None."""
    state = ROOT
    for token in string:
        state = automaton.next[state].get(token)
        if state is None:
            return None
    return state


def substrings(text):
    return {tuple(text[i:j]) for i in range(len(text)) for j in range(i + 1, len(text) + 1)}


def occurrences(texts, string):
    return sum(tuple(t[i : i + len(string)]) == string for t in texts for i in range(len(t) - len(string) + 1))


@given(TEXTS, st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_it_knows_the_substrings_of_its_texts_and_no_others(texts, string):
    automaton = grown(*texts)
    known = set().union(*(substrings(text) for text in texts))
    assert (find(automaton, string) is not None) == (tuple(string) in known)
    assert all(find(automaton, s) is not None for s in known)


@given(TEXTS)
def test_it_counts_how_often_each_substring_occurs(texts):
    automaton = grown(*texts)
    for string in set().union(*(substrings(text) for text in texts)):
        assert automaton.count[find(automaton, string)] == occurrences(texts, string)


@given(TEXTS)
def test_it_stays_linear_in_size(texts):
    automaton = grown(*texts)
    assert automaton.size == sum(map(len, texts))
    assert len(automaton.next) <= 2 * automaton.size + 1


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30))
def test_the_link_of_the_whole_text_is_its_longest_end_that_occurred_before(text):
    automaton = grown(text)
    longest = max((n for n in range(len(text)) if occurrences([text], tuple(text[len(text) - n :])) > 1), default=0)
    assert automaton.length[automaton.link[automaton.last]] == (longest if len(text) > 1 else 0)


@given(TEXTS, st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 2), max_size=5)), max_size=20))
def test_a_reader_holds_the_longest_match_even_while_the_automaton_grows(texts, reading):
    """Between any two tokens read, another text may come in."""
    automaton, texts = grown(*texts), list(texts)
    read, state, matched = [], ROOT, 0
    for token, more in reading:
        automaton.start()
        for t in more:
            automaton.extend(t)
        texts.append(more)
        read.append(token)
        state, matched = automaton.advance(state, matched, token)
        # A reader does not look back past what it had matched, but never matches more or less than it could extend.
        assert find(automaton, read[len(read) - matched :]) == automaton.settle(state, matched)


@given(TEXTS, st.lists(st.integers(0, 2), max_size=20))
def test_a_reader_of_a_finished_automaton_finds_the_longest_suffix(texts, reading):
    automaton = grown(*texts)
    state, matched = ROOT, 0
    for i, token in enumerate(reading):
        state, matched = automaton.advance(state, matched, token)
        read = reading[: i + 1]
        longest = max(n for n in range(i + 2) if find(automaton, read[len(read) - n :]) is not None)
        assert matched == longest


def test_a_repetitive_text_costs_no_more_per_token_than_its_bound():
    automaton = grown([1] * 5000)
    assert automaton.count[find(automaton, [1] * 4990)] == 11
    assert automaton.count[find(automaton, [1])] <= 5000
    assert automaton.count[find(automaton, [1] * (5000 - COUNTED // 2))] == COUNTED // 2 + 1


def test_a_walk_follows_the_likeliest_path():
    automaton = grown([1, 2, 3], [1, 2, 3], [1, 2, 4])
    tokens, total, first = walk(automaton, find(automaton, [1]), limit=2, least=0.0)
    assert tokens == (2, 3)
    assert first == 1.0
    assert total == 1.0 + 2 / 3


def test_a_walk_stops_where_the_path_grows_unlikely():
    automaton = grown([1, 2, 3], [1, 2, 4], [1, 2, 5])
    assert walk(automaton, find(automaton, [1]), limit=4, least=0.5)[0] == (2,)


def test_of_equally_likely_tokens_the_most_recent_is_taken():
    automaton = grown([1, 2], [1, 3], [1, 2], [1, 3])
    assert walk(automaton, find(automaton, [1]), limit=1, least=0.0)[0] == (3,)


def test_at_the_end_of_the_text_a_walk_goes_on_after_its_longest_known_end():
    automaton = grown([5, 6] * 4)
    state = automaton.link[automaton.last]
    assert walk(automaton, state, limit=7, least=0.1)[0] == (5, 6, 5, 6, 5, 6, 5)


def test_a_walk_from_nothing_or_after_nothing_is_empty():
    assert walk(Automaton(), ROOT, 4, 0.0) == ((), 0.0, 0.0)
    automaton = grown([1, 2, 3])
    assert walk(automaton, automaton.last, 4, 0.0)[0] == ()


def test_a_long_text_stays_consistent():
    rng = random.Random(7)
    text = [rng.randrange(50) for _ in range(4000)]
    automaton = grown(text)
    for _ in range(200):
        start = rng.randrange(3990)
        string = tuple(text[start : start + rng.randrange(1, 9)])
        assert automaton.count[find(automaton, string)] == occurrences([text], string)
