"""The deltas add up to the decoded whole up to the first stop string, and the engine's view agrees."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from twostroke.errors import InvalidParameter
from twostroke.text.stream import StopSet, StopStrings, TextStream

# Tokens that cut characters and stop strings in every way: letters, halves of é and of an emoji, invalid bytes.
TOKENS = [
    b"a",
    b"b",
    b"ab",
    b"ba",
    b"aab",
    b"",
    b"\xc3",
    b"\xa9",
    b"\xf0\x9f",
    b"\x98\x80",
    b"\xff",
    "é".encode(),
    b"c",
]
IDS = st.lists(st.integers(0, len(TOKENS) - 1), max_size=40)
STOPS = st.lists(st.text("ab", min_size=1, max_size=4) | st.text("aé\U0001f600�", min_size=1, max_size=3), max_size=4)


def stream(stops: Sequence[str] = ()) -> TextStream:
    return TextStream(TOKENS.__getitem__, StopSet(stops))


def whole(ids: Sequence[int]) -> str:
    return b"".join(TOKENS[i] for i in ids).decode(errors="replace")


def first_stop(text: str, stops: Sequence[str]) -> tuple[str, str | None]:
    """By brute force: the text before the stop string that is completed first (the longest of several), and it."""
    for end in range(1, len(text) + 1):
        if ending := [stop for stop in stops if text[:end].endswith(stop)]:
            longest = max(ending, key=len)
            return text[: end - len(longest)], longest
    return text, None


def deliver(ids: Sequence[int], stops: Sequence[str]) -> tuple[list[str], TextStream]:
    following = stream(stops)
    return [*(following.feed([i]) for i in ids), following.flush()], following


@given(IDS)
def test_without_stops_the_deltas_are_the_whole_decode(ids: list[int]) -> None:
    deltas, _ = deliver(ids, ())
    assert "".join(deltas) == whole(ids)


@given(IDS, STOPS)
@example([0, 1, 0, 1, 12], ["abab", "ba"])
@example([2], ["ab", "b"])
@example([2], ["b", "ab"])
@example([6], ["�"])
@example([6, 0], ["�a"])
def test_the_text_ends_before_the_first_stop_string(ids: list[int], stops: list[str]) -> None:
    deltas, following = deliver(ids, stops)
    assert ("".join(deltas), following.hit) == first_stop(whole(ids), stops)


@given(IDS, STOPS)
def test_the_engine_stops_at_the_token_that_completes_it(ids: list[int], stops: list[str]) -> None:
    condition = StopStrings(TOKENS.__getitem__, StopSet(stops))
    over = [condition(i) for i in ids]
    following = stream(stops)
    ended = []
    for i in ids:
        following.feed([i])
        ended.append(following.hit is not None)
    assert over == ended
    assert condition.hit == following.hit


@given(IDS, STOPS, st.data())
def test_how_tokens_are_grouped_does_not_matter(ids: list[int], stops: list[str], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(ids)))
    following = stream(stops)
    text = following.feed(ids[:cut]) + following.feed(ids[cut:]) + following.flush()
    assert (text, following.hit) == first_stop(whole(ids), stops)


@given(IDS, STOPS)
def test_nothing_certain_is_held_back(ids: list[int], stops: list[str]) -> None:
    """After every token, what is missing is an unfinished character or the beginning of a stop string."""
    following = stream(stops)
    given_out = ""
    for count, i in enumerate(ids, 1):
        given_out += following.feed([i])
        if following.hit is not None:
            return
        settled = b"".join(TOKENS[j] for j in ids[:count])
        characters = TextStream(lambda _, seen=settled: seen).feed([0])  # type: ignore[misc]
        held = characters[len(given_out) :]
        assert characters.startswith(given_out)
        assert held == "" or any(stop.startswith(held) for stop in stops)


def test_a_character_waits_for_its_last_byte() -> None:
    following = stream()
    assert [following.feed([8]), following.feed([9])] == ["", "\U0001f600"]


def test_an_unfinished_character_becomes_a_replacement_at_the_end() -> None:
    following = stream()
    assert following.feed([0, 8]) == "a"
    assert following.flush() == "�"


def test_a_false_alarm_is_released() -> None:
    following = stream(["abc"])
    assert [following.feed([2]), following.feed([0]), following.feed([12])] == ["", "ab", "ac"]


def test_the_held_text_is_released_at_the_end() -> None:
    following = stream(["abc"])
    assert following.feed([2]) == ""
    assert following.flush() == "ab"
    assert following.hit is None


def test_nothing_comes_after_a_stop() -> None:
    following = stream(["b"])
    assert following.feed([2]) == "a"
    assert following.hit == "b"
    assert following.feed([0]) == ""
    assert following.flush() == ""


def test_a_stop_inside_one_token_cuts_it() -> None:
    following = TextStream(lambda _: b"say END now", StopSet(["END"]))
    assert following.feed([0]) == "say "


def test_the_condition_stays_over() -> None:
    condition = StopStrings(TOKENS.__getitem__, StopSet(["b"]))
    assert [condition(i) for i in (0, 1, 0)] == [False, True, True]
    assert condition.hit == "b"


def test_one_set_serves_many_answers() -> None:
    stops = StopSet(["ab"])
    first, second = (StopStrings(TOKENS.__getitem__, stops) for _ in range(2))
    assert not first(0)
    assert not second(1)
    assert first(1)


def test_a_long_stop_string_costs_no_more_than_the_text() -> None:
    """Every character is entered and released once, even where a stop string is almost met again and again."""
    stops = StopSet(["a" * 2_000 + "b"])
    calls = 0
    step = stops.step

    def counted(state: int, char: str) -> int:
        nonlocal calls
        calls += 1
        return step(state, char)

    stops.step = counted  # type: ignore[method-assign]
    following = TextStream(lambda _: b"a", stops)
    text = "".join(following.feed([0]) for _ in range(20_000)) + following.flush()
    assert text == "a" * 20_000
    assert calls == 20_000


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="stop string 1 is empty") as caught:
        StopSet(["a", ""])
    assert caught.value.param == "stop"


def test_a_lone_surrogate_in_a_stop_string_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="stop string 0 holds a lone surrogate at character 1"):
        StopSet(["a\ud800"])
