"""What a text completion body may say, and what comes of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serve.openai.talk import refused, tagged, text
from twostroke.types import Request


def only(**fields: Any) -> Request:
    (request,) = text(**fields).requests
    return request


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [("ab", [b"ab"]), (["ab", "c"], [b"ab", b"c"]), ([97, 98], [b"ab"]), ([[97], [98, 99]], [b"a", b"bc"])],
)
def test_prompts_of_four_kinds(prompt: object, expected: list[bytes]) -> None:
    submission = text(prompt=prompt)
    assert [bytes(request.prompt) for request in submission.requests] == expected
    assert [bytes(prompt.ids) for prompt in submission.prompts] == expected
    assert len({request.id for request in submission.requests}) == len(expected)
    assert submission.conversation is None


@pytest.mark.parametrize("prompt", [None, "", [], [""], [[]], 5, {}, [1, "a"], [1.5], ["a", [1]], [257], [-1], [True]])
def test_wrong_prompts_are_refused(prompt: object) -> None:
    assert refused(text, prompt=prompt).param == "prompt"


def test_a_prompt_may_be_repeated() -> None:
    assert text(prompt=["ab", "c"], echo=True).details.echo == ("ab", "c")
    assert text(prompt=[97, 98], echo=True).details.echo == ("ab",)
    assert text().details.echo == ()


@pytest.mark.parametrize(
    ("fields", "logprobs", "scores"),
    [
        ({"logprobs": 3}, 3, None),
        ({"logprobs": 3, "echo": True}, 3, 3),
        ({"logprobs": 0, "echo": True}, 0, 0),
        ({"echo": True}, None, None),
        ({"prompt_logprobs": 2}, None, 2),
        ({"prompt_logprobs": 2, "logprobs": 1, "echo": True}, 1, 2),
    ],
)
def test_log_probabilities_of_answer_and_prompt(
    fields: dict[str, Any], logprobs: int | None, scores: int | None
) -> None:
    request = only(**fields)
    assert (request.sampling.logprobs, request.prompt_logprobs) == (logprobs, scores)


def test_wrong_counts_of_logprobs_are_refused() -> None:
    assert refused(text, logprobs=21).param == "logprobs"
    assert refused(text, logprobs=True).param == "logprobs"


def test_no_token_asked_for_is_a_prompt_that_is_only_read() -> None:
    submission = text(max_tokens=0, echo=True, logprobs=1)
    assert submission.prefilled_only
    assert submission.requests[0].max_tokens == 1


def test_a_suffix_makes_a_prompt_of_what_belongs_between() -> None:
    assert bytes(only(prompt="ab", suffix="cd").prompt) == b"<ab|cd>"
    assert bytes(only(prompt="ab", suffix="").prompt) == b"ab"
    assert refused(text, prompt=[97], suffix="b").param == "suffix"
    assert refused(text, prompt="ab", suffix="b", echo=True).param == "echo"
    assert refused(text, prompt="?", suffix="b").param == "suffix"


def test_best_of_may_only_repeat_n() -> None:
    assert only(n=2, best_of=2).choices == 2
    assert refused(text, best_of=2).param == "best_of"
    assert refused(text, n=2, best_of=1).param == "best_of"


def test_more_answers_than_the_queue_holds_are_refused_at_once() -> None:
    error = refused(text, over=tagged(max_queue=4), prompt=["a", "b", "c"], n=2)
    assert error.param == "n"
    assert "queue of 4" in error.message


def test_a_prompt_longer_than_the_context_is_refused() -> None:
    assert refused(text, prompt="x" * 300).param == "prompt"
    assert only(prompt="x" * 255).max_tokens == 1
