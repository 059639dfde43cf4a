"""The `phases` object: what it adds up, and where a prompt left what is cached."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serve.openai.talk import chat, done, phases, tagged
from twostroke.serve.accounts import account
from twostroke.serve.answer import choices_of

PARTS: list[Any] = [{"role": "system", "content": "hel"}, {"role": "user", "content": [{"type": "text", "text": "lo"}]}]


@pytest.mark.parametrize(
    ("cached", "miss", "part"),
    [
        (0, "diverged", "messages[0].content"),
        (2, "diverged", "messages[0].content"),
        (3, "diverged", "messages[1].content[0]"),
        (5, "diverged", None),
        (3, "cold", None),
        (4, None, None),
    ],
)
def test_a_divergence_names_the_part_it_is_in(cached: int, miss: str | None, part: str | None) -> None:
    over = tagged()
    (choice,) = choices_of(chat(over, messages=PARTS), over)
    choice.end(done(account=phases(cached=cached, miss=miss)))
    prefill = account([choice])["phases"]["prefill"]
    assert (prefill["cached_tokens"], prefill["miss_reason"], prefill["miss_part"]) == (cached, miss, part)


def test_several_choices_add_up_and_those_without_an_account_do_not_count() -> None:
    over = tagged()
    choices = choices_of(chat(over, n=3), over)
    assert account(choices) == {"phases": None}
    for choice in choices[1:]:
        choice.end(done(choice.index))
    assert account(choices)["phases"]["decode"]["steps"] == 2
