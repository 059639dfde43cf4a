"""A sequence knows when it is over, token by token."""

from __future__ import annotations

from typing import Any

import pytest

from tests.composition.features import Toy
from twostroke.engine.sequence import Sequence
from twostroke.types import FinishReason, Request


def make(max_tokens: int = 5, context: int = 100, **fields: Any) -> Sequence:
    request = Request(id="r", prompt=(1, 2, 3), max_tokens=max_tokens, **fields)
    return Sequence(7, request, 0, min(3 + max_tokens, context))


class Third:
    """Stops at the third token it is fed."""

    def __init__(self) -> None:
        self.fed: list[int] = []

    def __call__(self, token: int) -> bool:
        self.fed.append(token)
        return len(self.fed) == 3


def test_it_begins_with_its_prompt() -> None:
    sequence = make()
    assert (sequence.tokens, sequence.prompt_length, sequence.remaining) == ([1, 2, 3], 3, 5)
    assert (sequence.pending, sequence.ready, sequence.finished) == (3, False, None)


def test_it_shows_what_its_request_says() -> None:
    sequence = make(namespace="n", prefix_cache=False, speculate="ngram", draft_tokens=2, prediction=(9,))
    shown = sequence.namespace, sequence.prefix_cache, sequence.speculate, sequence.draft_tokens, sequence.prediction
    assert shown == ("n", False, "ngram", 2, (9,))
    assert sequence.sampling is sequence.request.sampling


def test_it_ends_at_the_longest_answer() -> None:
    sequence = make(max_tokens=2)
    assert sequence.extend((4, 5, 6)) == 2
    assert (sequence.tokens, sequence.finished) == ([1, 2, 3, 4, 5], FinishReason.LENGTH)


def test_it_ends_with_the_context() -> None:
    sequence = make(max_tokens=50, context=5)
    assert sequence.extend((4, 5, 6)) == 2
    assert sequence.finished is FinishReason.LENGTH


@pytest.mark.parametrize("place", range(4))
def test_a_stop_inside_accepted_tokens_drops_the_rest(place: int) -> None:
    sequence = make(stop_ids=frozenset({9}))
    kept = [4, 4, 4, 4]
    kept[place] = 9
    assert sequence.extend(kept) == place + 1
    assert sequence.finished is FinishReason.STOP
    assert sequence.tokens[-1] == 9


def test_a_stop_on_the_last_token_is_a_stop() -> None:
    sequence = make(max_tokens=1, stop_ids=frozenset({9}))
    sequence.extend((9,))
    assert sequence.finished is FinishReason.STOP


def test_a_condition_is_fed_committed_tokens_only() -> None:
    sequence = make(stop=Third)
    assert sequence.extend((4, 5)) == 2
    assert sequence.finished is None
    assert sequence.extend((6, 7, 8)) == 1
    assert sequence.finished is FinishReason.STOP
    assert isinstance(sequence.stop, Third)
    assert sequence.stop.fed == [4, 5, 6]


def test_each_sequence_has_a_condition_of_its_own() -> None:
    one, two = make(stop=Third), make(stop=Third)
    one.extend((4, 5))
    two.extend((4,))
    assert one.stop is not two.stop
    assert two.finished is None


def test_a_condition_that_raises_ends_its_own_answer() -> None:
    def stop() -> object:
        def condition(token: int) -> bool:
            raise ValueError("no grammar for this")

        return condition

    sequence = make(stop=stop)
    assert sequence.extend((4, 5)) == 1
    assert sequence.finished is FinishReason.ERROR
    assert "no grammar for this" in str(sequence.error)


@pytest.mark.parametrize(
    ("fields", "depth"),
    [({}, 4), ({"draft_tokens": 2}, 2), ({"draft_tokens": 0}, 0), ({"draft_tokens": 99}, 4), ({"speculate": "off"}, 0)],
)
def test_drafts_go_no_deeper_than_the_answer_can_use(fields: dict[str, Any], depth: int) -> None:
    assert make(max_tokens=5, **fields).depth == depth


def test_the_last_token_is_sampled_not_drafted() -> None:
    assert make(max_tokens=1).depth == 0


def test_a_grammar_is_fed_what_was_committed_and_ends_the_answer() -> None:
    sequence = make(grammar=lambda: Toy(length=2))
    assert isinstance(sequence.grammar, Toy)
    assert sequence.extend([0, 2, 6]) == 2
    assert (sequence.grammar.fed, sequence.finished) == ([0, 2], FinishReason.STOP)


def test_a_stop_token_is_not_fed_to_the_grammar() -> None:
    sequence = make(grammar=Toy, stop_ids=frozenset({6}))
    assert sequence.extend([0, 6]) == 2
    assert isinstance(sequence.grammar, Toy)
    assert (sequence.grammar.fed, sequence.finished) == ([0], FinishReason.STOP)


def test_a_token_outside_the_grammar_ends_the_answer_as_an_error() -> None:
    sequence = make(grammar=Toy)
    assert sequence.extend([0, 5, 1]) == 2
    assert sequence.finished is FinishReason.ERROR
    assert sequence.error == "the grammar failed: token 5 is not allowed after [0]"
