"""The page about the HTTP API lists what the code knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from twostroke import errors
from twostroke.errors import TwostrokeError
from twostroke.serve.openai.messages import ROLES
from twostroke.serve.openai.names import ACCEPTED, CHAT, REFUSED, TEXT

PAGE = (Path(__file__).parents[1] / "docs" / "http-api.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def words(text: str) -> set[str]:
    return set(re.findall(r"`([a-z_]+)`", text))


def test_understood_fields_are_listed() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", section("Fields that are understood"), re.MULTILINE)
    assert set().union(*map(words, rows)) == CHAT | TEXT


def test_accepted_fields_are_listed() -> None:
    assert words(section("Fields that change nothing")) == ACCEPTED


def test_refused_fields_are_listed() -> None:
    assert words(section("Fields that are refused")) == set(REFUSED)


def test_roles_are_listed() -> None:
    assert set(ROLES) <= words(section("Fields that are understood"))


ANSWERED = (
    errors.InvalidParameter,
    errors.PromptTooLong,
    errors.Unauthorized,
    errors.UnknownModel,
    errors.BodyTooLarge,
    errors.UnsupportedMediaType,
    errors.Overloaded,
    errors.RunnerFailed,
    errors.InternalError,
    errors.Draining,
)


@pytest.mark.parametrize("kind", ANSWERED)
def test_errors_are_listed_with_their_status(kind: type[TwostrokeError]) -> None:
    rows = [row for row in section("Errors").split("\n") if f"`{kind.code}`" in row]
    assert [row.split("|")[1].strip() for row in rows] == [str(kind.status)]
