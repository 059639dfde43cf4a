"""Breakpoints steer lifetimes and what counts as written; they never lose a hit."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serve.openai.talk import CHAT, USER, chat, done, phases, refused, tagged, whole
from twostroke.types import Request, Retention


def part(text: str, **mark: Any) -> dict[str, Any]:
    marked = {"prompt_cache_breakpoint": {"mode": "explicit", **mark}} if mark.pop("at", True) else {}
    return {"type": "text", "text": text} | marked


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def request(*messages: Any, **fields: Any) -> Request:
    return chat(messages=list(messages), **fields).requests[0]


def test_a_breakpoint_asks_for_a_lifetime_up_to_its_exact_end() -> None:
    found = request(user(part("abc", ttl="12h"), part("de", at=False)), user(part("f")), *USER)
    assert found.retain == (Retention(3, 43200.0), Retention(6, 1800.0))


def test_a_breakpoint_without_a_lifetime_has_that_of_the_request() -> None:
    found = request(user(part("abc")), *USER, prompt_cache_options={"ttl": "12h", "mode": "explicit"})
    assert found.retain == (Retention(3, 43200.0),)


def test_an_implicit_breakpoint_ends_the_prompt_where_a_lifetime_was_chosen() -> None:
    assert request(*USER).retain == ()
    assert request(*USER, prompt_cache_options={"mode": "implicit"}).retain == ()
    assert request(*USER, prompt_cache_options={"ttl": "30m"}).retain == (Retention(5, 1800.0),)
    assert request(user(part("ab", ttl="12h")), prompt_cache_options={"ttl": "30m"}).retain == (Retention(2, 43200.0),)


@pytest.mark.parametrize(("mode", "ends"), [("implicit", [3, 5, 6]), ("explicit", [2, 3, 5, 6])])
def test_the_latest_breakpoints_count(mode: str, ends: list[int]) -> None:
    parts = user(part("a"), part("b"), part("c")), user(part("d", at=False), part("e"), part("f"))
    found = request(*parts, prompt_cache_options={"mode": mode})
    assert [retention.tokens for retention in found.retain] == ends


@pytest.mark.parametrize(
    ("mark", "path"),
    [
        ({"mode": "implicit"}, "messages[0].content[0].prompt_cache_breakpoint.mode"),
        ({}, "messages[0].content[0].prompt_cache_breakpoint.mode"),
        ({"mode": "explicit", "ttl": "1h"}, "messages[0].content[0].prompt_cache_breakpoint.ttl"),
        (True, "messages[0].content[0].prompt_cache_breakpoint"),
    ],
)
def test_wrong_breakpoints_are_refused_by_path(mark: Any, path: str) -> None:
    error = refused(chat, messages=[user({"type": "text", "text": "a", "prompt_cache_breakpoint": mark})])
    assert error.param == path


@pytest.mark.parametrize(
    ("fields", "cached", "miss", "written"),
    [
        ({}, 2, None, 2),
        ({}, 4, None, 0),
        ({}, 0, "cold", 4),
        ({}, 0, "fault", 0),
        ({"prefix_cache": False}, 0, "disabled", 0),
        ({"prompt_cache_options": {"mode": "explicit"}}, 2, None, 0),
        ({"prompt_cache_options": {"mode": "explicit"}, "marked": True}, 0, "cold", 3),
        ({"prompt_cache_options": {"mode": "explicit"}, "marked": True}, 4, None, 0),
        ({"marked": True}, 1, None, 3),
    ],
)
def test_tokens_written_to_the_cache(fields: dict[str, Any], cached: int, miss: str | None, written: int) -> None:
    fields = dict(fields)
    marked = [user(part("hel"), part("lo", at=False))] if fields.pop("marked", False) else USER
    over = tagged()
    wire = CHAT.writer(chat(over, messages=marked, **fields), over)
    usage = whole(wire, done(account=phases(cached=cached, miss=miss)))["usage"]
    assert usage["prompt_tokens_details"] == {"cached_tokens": cached, "cache_write_tokens": written}
