from hypothesis import given
from hypothesis import strategies as st

from twostroke.speculate.automaton import ROOT
from twostroke.speculate.history import CHAPTERS, History

ADDED = st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.integers(0, 9), max_size=40)), max_size=30)


def holds(history, namespace, text):
    """Whether some chapter of the namespace contains the text."""
    for chapter in history.chapters(namespace):
        state = ROOT
        for token in text:
            state = chapter.next[state].get(token)
            if state is None:
                break
        else:
            return True
    return False


def test_text_is_found_under_its_namespace_and_under_no_other():
    history = History()
    history.add("a", [1, 2, 3, 4])
    history.digest(100)
    assert holds(history, "a", [2, 3, 4])
    assert not holds(history, "b", [2])
    assert history.chapters("b") == ()


def test_texts_do_not_run_into_each_other():
    history = History()
    history.add("a", [1, 2])
    history.add("a", [3, 4])
    history.digest(100)
    assert holds(history, "a", [3, 4])
    assert not holds(history, "a", [2, 3])


def test_text_is_taken_in_piece_by_piece():
    history = History()
    history.add("a", range(10))
    history.add("b", range(10))
    sizes = []
    for _ in range(6):
        history.digest(4)
        sizes.append((history.size("a"), history.size("b")))
    assert sizes == [(4, 0), (8, 0), (10, 2), (10, 6), (10, 10), (10, 10)]
    assert holds(history, "a", range(10))
    assert holds(history, "b", range(10))


def test_the_oldest_text_goes_first():
    history = History(tokens=40, share=40)
    for i in range(10):
        history.add("a", [100 + i] * 5)
        history.digest(5)
    assert not holds(history, "a", [100])
    assert holds(history, "a", [109] * 5)
    assert history.size("a") <= 40


def test_a_flood_costs_its_own_author():
    history = History(tokens=400, share=400)
    history.add("quiet", [7, 8, 9])
    history.digest(10)
    for i in range(100):
        history.add("loud", [1000 + i * 50 + j for j in range(50)])
        history.digest(50)
        history.check()
    assert holds(history, "quiet", [7, 8, 9])
    assert history.size("loud") <= 400 - 3


@given(ADDED, st.integers(1, 60), st.integers(4, 200), st.integers(4, 200))
def test_it_never_holds_more_than_it_may_and_never_loses_count(added, bite, tokens, share):
    history = History(tokens, share)
    for namespace, text in added:
        history.add(namespace, text)
        history.digest(bite)
        history.check()
    for _ in range(200):
        history.digest(bite)
    history.check()
    for namespace in "abc":
        assert history.size(namespace) <= max(CHAPTERS, share)


@given(ADDED, st.integers(1, 60), st.sampled_from("abc"))
def test_a_purged_namespace_is_gone_waiting_text_included(added, bite, purged):
    history = History()
    for namespace, text in added:
        history.add(namespace, text)
        history.digest(bite)
    kept = {n: (sum(len(t) for m, t in added if m == n)) for n in "abc"}
    history.purge(purged)
    history.check()
    while history._waiting:
        history.digest(1000)
    assert {n: history.size(n) for n in "abc"} == {n: 0 if n == purged else kept[n] for n in "abc"}


def test_empty_text_is_no_text():
    history = History()
    history.add("a", [])
    history.digest(10)
    assert history.chapters("a") == ()
    history.check()
