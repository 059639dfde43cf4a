"""Whole streams, byte for byte, as files under `golden/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.serve.openai.talk import CHAT, TEXT, delta, done, events, logprob, phases, writer
from twostroke.types import Delta, Event, FinishReason

GOLDEN = Path(__file__).parent / "golden"
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
USAGE = {"stream_options": {"include_usage": True}}
SCORES = (logprob(101, 97), logprob(108, 97), logprob(108, 97), logprob(111, 97))
STREAMS: dict[str, tuple[Any, dict[str, Any], list[Event]]] = {
    "chat": (CHAT, USAGE, [delta("Hi"), delta(" you"), done()]),
    "chat-tools": (
        CHAT,
        USAGE | {"tools": TOOLS},
        [delta("[t]why?[/t]So"), delta(': [c f]{"a"'), delta(":1}[/c][c g]{}[/c]"), done()],
    ),
    "chat-functions": (CHAT, {"functions": [{"name": "f"}]}, [delta('[c f]{"a":1}[/c]'), done()]),
    "chat-choices": (
        CHAT,
        {"n": 2},
        [delta("a"), delta("b", choice=1), done(1, FinishReason.LENGTH), delta("c"), done(0)],
    ),
    "chat-logprobs": (
        CHAT,
        {"logprobs": True, "top_logprobs": 1, "return_token_ids": True},
        [Delta(0, (104, 105), (logprob(104, 97), logprob(105, 97))), done()],
    ),
    "chat-drafted": (
        CHAT,
        USAGE | {"prediction": {"type": "content", "content": "guess"}},
        [delta("guest"), done(account=phases(drafted=6, accepted=(2, 1), steps=2, miss="diverged"))],
    ),
    "completions": (TEXT, USAGE, [delta("Hi"), done()]),
    "completions-echo": (
        TEXT,
        {"echo": True, "logprobs": 1},
        [Delta(0, (), scores=SCORES[:2]), Delta(0, (33,), (logprob(33, 97),), SCORES[2:]), done()],
    ),
}


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_the_stream_is_the_same_byte_for_byte(name: str) -> None:
    wire, fields, given = STREAMS[name]
    assert events(writer(wire, stream=True, **fields), *given) == (GOLDEN / f"{name}.txt").read_bytes()


def test_every_golden_stream_is_compared() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(STREAMS)
