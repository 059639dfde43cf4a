"""Counts are disjoint and add up to the prompt exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serve.anthropic.plain import events, parsed, tokens, whole
from twostroke.serve.anthropic.usage import usage
from twostroke.text.prompt import PartEnd, Prompt

HOUR, MINUTES = 3600.0, 300.0


def prompt(length: int, *ends: tuple[int, float | None]) -> Prompt:
    return Prompt(tuple(range(length)), tuple(PartEnd(end, "", ttl_s) for end, ttl_s in ends))


def counts(prompt: Prompt, cached: int, *, publishes: bool = True) -> tuple[int, int, int, int]:
    """Plain input, written for 5 minutes, written for an hour, read."""
    found = usage(prompt, cached, 7, 0, publishes=publishes)
    made = found["cache_creation"]
    return (
        found["input_tokens"],
        made["ephemeral_5m_input_tokens"],
        made["ephemeral_1h_input_tokens"],
        found["cache_read_input_tokens"],
    )


@pytest.mark.parametrize(
    ("ends", "cached", "expected"),
    [
        ((), 0, (100, 0, 0, 0)),
        ((), 30, (70, 0, 0, 30)),
        (((40, MINUTES),), 0, (60, 40, 0, 0)),
        (((40, MINUTES),), 30, (60, 10, 0, 30)),
        (((40, MINUTES),), 50, (50, 0, 0, 50)),
        (((40, HOUR), (90, MINUTES)), 0, (10, 50, 40, 0)),
        (((40, HOUR), (60, None), (90, MINUTES)), 10, (10, 50, 30, 10)),
        (((40, HOUR), (90, MINUTES)), 60, (10, 30, 0, 60)),
        (((40, HOUR), (40, MINUTES)), 0, (60, 0, 40, 0)),
        (((120, MINUTES),), 0, (0, 100, 0, 0)),
    ],
)
def test_sections_up_to_breakpoints(
    ends: tuple[tuple[int, float | None], ...], cached: int, expected: tuple[int, ...]
) -> None:
    assert counts(prompt(100, *ends), cached) == expected


def test_nothing_is_written_where_nothing_is_published() -> None:
    assert counts(prompt(100, (40, HOUR)), 0, publishes=False) == (100, 0, 0, 0)
    submission = parsed(prefix_cache=False, cache_control={"type": "ephemeral"})
    found = whole(submission, events(submission, tokens("a")))["usage"]
    assert (found["input_tokens"], found["cache_creation_input_tokens"]) == (6, 0)


def test_thinking_is_counted_where_there_was_some() -> None:
    submission = parsed()
    thought = whole(submission, events(submission, tokens("\x01abc\x02d")))["usage"]
    assert thought["output_tokens_details"] == {"thinking_tokens": 3}
    assert "output_tokens_details" not in whole(submission, events(submission, tokens("d")))["usage"]


@given(
    st.integers(1, 60).flatmap(
        lambda length: st.tuples(
            st.just(length),
            st.lists(st.tuples(st.integers(0, length), st.sampled_from([None, HOUR, MINUTES])), max_size=6),
            st.integers(0, length - 1),
            st.booleans(),
        )
    )
)
def test_usage_adds_up_for_any_breakpoints(case: tuple[int, list[tuple[int, float | None]], int, bool]) -> None:
    length, ends, cached, publishes = case
    found = counts(prompt(length, *sorted(ends, key=lambda end: end[0])), cached, publishes=publishes)
    assert sum(found) == length
    assert min(found) >= 0
    assert found[3] == cached
    last = max((end for end, ttl_s in ends if ttl_s), default=0)
    assert found[1] + found[2] == (max(last - cached, 0) if publishes else 0)
