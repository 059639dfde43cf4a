"""Pieces become items, whatever a reader leaves of the white space around them."""

from __future__ import annotations

from typing import Any

import pytest

from twostroke.serve.responses.content import Content, bearing
from twostroke.serve.responses.tools import Toolbox
from twostroke.text.pieces import CallArguments, CallEnd, CallStart, Piece, Thought, Words

CALL: tuple[Piece, ...] = (CallStart(0, "look"), CallArguments(0, "{}"), CallEnd(0))


def texts(*pieces: Piece) -> list[tuple[str, str]]:
    content = Content("ab1", lambda index: f"call_{index}", Toolbox(), seal=False)
    for piece in pieces:
        list(content.add([piece], ()))
    list(content.end("completed"))
    return [(item["type"], _text(item)) for item in content.bodies]


def _text(item: dict[str, Any]) -> str:
    return str(item["arguments"]) if "arguments" in item else "".join(part["text"] for part in item["content"])


def test_white_space_waits_for_text() -> None:
    assert texts(Thought("Hm."), Words("\n"), Words("\n"), Words("Yes")) == [
        ("reasoning", "Hm."),
        ("message", "\n\nYes"),
    ]
    assert texts(Words("a "), *CALL, Words("\n"), Words(" b")) == [
        ("message", "a "), ("function_call", "{}"), ("message", "\n b"),
    ]  # fmt: skip


def test_white_space_that_nothing_follows_is_dropped() -> None:
    assert texts(Words("\n"), *CALL, Words("\n")) == [("function_call", "{}")]
    assert texts(Words(" ")) == [("message", "")]


def test_empty_thoughts_are_no_item() -> None:
    assert texts(Thought(""), Words("Yes")) == [("message", "Yes")]


@pytest.mark.parametrize(("text", "kept"), [("", 0), ("b", 1), ("ab", 2), ("aab", 2)])
def test_only_the_tokens_that_bear_the_text_are_shown(text: str, kept: int) -> None:
    assert len(bearing(text, [{"bytes": [97]}, {"bytes": [98]}])) == kept
