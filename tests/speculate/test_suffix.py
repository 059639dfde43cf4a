import random
from time import perf_counter

from hypothesis import given
from hypothesis import strategies as st

from tests.speculate.texts import Text, report, row, run
from twostroke.speculate.history import History
from twostroke.speculate.lookup import LookupDrafter
from twostroke.speculate.suffix import OWN_BITE, Suffix, strength
from twostroke.types import FinishReason


def answered(lookup, text, *, finished=FinishReason.STOP):
    """The sequence ran and ended: what the lookup hears, in the engine's order."""
    lookup.guess(text, 4)
    lookup.observe(report(row(text, text.tokens[-1:], finished=finished)))
    lookup.forget(text.id)


def later(lookup):
    """Steps of others go by, long enough for all text to be taken in."""
    for _ in range(50):
        lookup.observe(report(running=1))


PROMPT, ANSWER = [1, 2, 3, 4, 5], [11, 12, 13, 14, 15, 16]


def warm(namespace="a", **fields):
    lookup = Suffix()
    text = Text(id=1, tokens=PROMPT + ANSWER, prompt_length=len(PROMPT), namespace=namespace, **fields)
    answered(lookup, text)
    later(lookup)
    return lookup


def again(lookup, namespace="a", **fields):
    return lookup.guess(Text(id=2, tokens=list(PROMPT), namespace=namespace, **fields), 16).tokens


def test_its_own_text_is_looked_up():
    text = Text(tokens=[1, 2, 3, 9, 9, 1, 2, 3])
    assert Suffix().guess(text, 2).tokens == (9, 9)


def test_a_text_without_repetition_matches_nothing():
    guess = Suffix().guess(Text(tokens=[1, 2, 3, 4]), 4)
    assert (guess.tokens, guess.reason) == ((), "no_match")


def test_a_single_repeated_token_is_no_match():
    assert Suffix().guess(Text(tokens=[1, 2, 1]), 4).tokens == ()


def test_the_second_identical_request_is_drafted_from_the_first_answer():
    assert list(again(warm())) == ANSWER[: len(PROMPT)]


def test_the_draft_grows_with_the_match():
    lookup = warm()
    for matched in range(2, 6):
        text = Text(id=matched, tokens=PROMPT[-matched:], namespace="a")
        assert len(lookup.guess(text, 16).tokens) == matched
    assert len(Suffix(factor=2.0).guess(Text(tokens=[1, 2, 7, 7, 7, 7, 7, 1, 2]), 16).tokens) == 4


def test_another_namespaces_text_is_never_drafted():
    assert again(warm("a"), "b") == ()


def test_a_request_that_keeps_out_of_the_cache_neither_reads_nor_feeds():
    assert again(warm(), prefix_cache=False) == ()
    assert again(warm(prefix_cache=False)) == ()


def test_a_purged_namespace_is_forgotten_at_once_even_by_those_who_were_reading():
    lookup = warm()
    text = Text(id=2, tokens=list(PROMPT), namespace="a")
    assert lookup.guess(text, 4).tokens
    lookup.purge("a")
    assert lookup.guess(text, 4).tokens == ()


def test_a_text_that_was_running_when_its_namespace_was_purged_is_not_remembered():
    lookup = Suffix()
    text = Text(id=1, tokens=PROMPT + ANSWER, namespace="a")
    lookup.guess(text, 4)
    lookup.purge("a")
    answered(lookup, text)
    later(lookup)
    assert lookup.history.size("a") == 0


def test_of_a_very_long_prompt_only_the_end_is_indexed(monkeypatch):
    monkeypatch.setattr("twostroke.speculate.suffix.OWN_MOST", 8)
    lookup = Suffix()
    text = Text(tokens=[1, 2, 3, 0, 0, 0, 0, 0, 5, 6, 7, 8, 1, 2, 3])
    assert lookup.guess(text, 2).tokens == ()
    text.grow(4, 5, 6)
    assert lookup.guess(text, 2).tokens == (7, 8)


def test_purging_one_namespace_leaves_another():
    lookup = warm("a")
    answered(lookup, Text(id=7, tokens=PROMPT + ANSWER, namespace="b"))
    later(lookup)
    lookup.purge("a")
    assert again(lookup, "a") == ()
    assert again(lookup, "b")


def test_an_answer_that_was_broken_off_teaches_nothing():
    lookup = Suffix()
    text = Text(id=1, tokens=PROMPT + ANSWER, namespace="a")
    lookup.guess(text, 4)
    lookup.forget(1)
    later(lookup)
    assert again(lookup) == ()
    assert not lookup._left


def test_an_ended_sequence_is_learned_whichever_is_heard_first():
    lookup = Suffix()
    text = Text(id=1, tokens=PROMPT + ANSWER, namespace="a")
    lookup.guess(text, 4)
    lookup.forget(1)
    lookup.observe(report(row(text, [16], finished=FinishReason.LENGTH)))
    later(lookup)
    assert again(lookup)


def test_what_the_prefix_cache_already_held_is_not_counted_twice():
    lookup = Suffix()
    prompt = list(range(100, 300))
    for id in (1, 2, 3):
        answered(lookup, Text(id=id, tokens=[*prompt, 7], namespace="a", cached=0 if id == 1 else 199))
    later(lookup)
    assert lookup.history.size("a") < 201 + 2 * 40


def test_the_counts_decide():
    lookup = Suffix()
    for id, follow in enumerate([5, 5, 6]):
        answered(lookup, Text(id=id, tokens=[1, 2, 3, follow], namespace="a"))
    later(lookup)
    assert lookup.guess(Text(id=9, tokens=[1, 2, 3], namespace="a"), 1).tokens == (5,)


def test_an_unlikely_continuation_is_not_proposed():
    lookup = Suffix(least=0.4)
    for id, follow in enumerate([4, 5, 6]):
        answered(lookup, Text(id=id, tokens=[1, 2, 3, follow], namespace="a"))
    later(lookup)
    assert lookup.guess(Text(id=9, tokens=[1, 2, 3], namespace="a"), 4).tokens == ()


def test_a_long_prompt_is_indexed_over_several_steps_and_says_so():
    lookup = Suffix()
    text = Text(tokens=[1, 2, 3] * OWN_BITE)
    assert lookup.guess(text, 4).reason == "catching_up"
    lookup.read(text)
    assert lookup.guess(text, 4).tokens == (1, 2, 3, 1)


def test_strength_follows_certainty_and_length():
    assert strength(40, 0.4) == 0
    assert [strength(n, 0.9) for n in (2, 4, 16)] == [1, 2, 3]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=50), st.data())
def test_however_the_text_grew_the_guess_is_the_same(tokens, data):
    history = History()
    history.add("", [data.draw(st.integers(0, 3)) for _ in range(30)])
    history.digest(100)
    stepwise, text = Suffix(history), Text(id=1)
    while len(text.tokens) < len(tokens):
        text.grow(*tokens[len(text.tokens) : len(text.tokens) + data.draw(st.integers(1, 9))])
        guess = stepwise.guess(text, 6)
        assert guess == Suffix(history).guess(Text(id=1, tokens=text.tokens), 6)


@given(st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=20), min_size=1, max_size=6), st.integers(0, 5))
def test_no_draft_holds_a_token_that_neither_the_request_nor_its_namespace_held(texts, other):
    """Each namespace writes in its own alphabet, so a leak would show."""
    lookup = Suffix()
    for id, tokens in enumerate(texts):
        namespace = f"n{id % 2}"
        answered(lookup, Text(id=id, tokens=[t + 100 * (id % 2) for t in tokens], namespace=namespace))
        later(lookup)
    for id in (0, 1):
        text = Text(id=100 + id, tokens=[t + 100 * id for t in texts[0]], namespace=f"n{id}")
        guess = lookup.guess(text, 8)
        assert all(100 * id <= t <= 100 * id + 5 for t in guess.tokens)


def test_acceptance_of_another_tenant_does_not_depend_on_what_one_tenant_did():
    answer = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8] * 3

    def drafted(first_namespace):
        drafter = LookupDrafter(Suffix(), draft_tokens=8)
        first = Text(id=1, tokens=list(PROMPT), prompt_length=5, namespace=first_namespace, remaining=len(answer))
        run(drafter, first, answer)
        drafter.observe(report(row(first, answer[-1:], finished=FinishReason.STOP)))
        drafter.forget(1)
        second = Text(id=2, tokens=list(PROMPT), prompt_length=5, namespace="b", remaining=len(answer))
        return [(p.tokens, p.survival, kept) for p, kept in run(drafter, second, answer)]

    alone = LookupDrafter(Suffix(), draft_tokens=8)
    text = Text(id=2, tokens=list(PROMPT), prompt_length=5, namespace="b", remaining=len(answer))
    untouched = [(p.tokens, p.survival, kept) for p, kept in run(alone, text, answer)]
    assert drafted("a") == untouched
    assert sum(kept for *_, kept in drafted("b")) > sum(kept for *_, kept in untouched)


def test_a_step_costs_what_it_added_not_what_the_text_holds():
    def per_step(length):
        rng = random.Random(1)
        lookup, text = Suffix(), Text(tokens=[rng.randrange(300) for _ in range(length)])
        while lookup.guess(text, 8).reason == "catching_up":
            pass
        best = float("inf")
        for _ in range(20):
            started = perf_counter()
            for _ in range(20):
                text.grow(rng.randrange(300))
                lookup.guess(text, 8)
            best = min(best, perf_counter() - started)
        return best

    assert per_step(20_000) < 20 * per_step(500)
