"""The body that Claude Code really sends is accepted, its texts synthesised to their lengths."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.serve.anthropic.plain import FORMAT, PlainText, serving, written
from twostroke.serve.fields import Fields
from twostroke.serve.submission import Caller, Submission

RECORDED = Path(__file__).parent / "claude-code.json"
WORDS = ("the", "file", "holds", "a", "list", "of", "names", "and", "every", "name", "stands", "for", "one", "part")


def synthesised(value: Any, random: Random) -> Any:
    """The same shape with texts of the recorded lengths."""
    if isinstance(value, dict):
        return {key: synthesised(item, random) for key, item in value.items()}
    if isinstance(value, list):
        return [synthesised(item, random) for item in value]
    if isinstance(value, str) and (found := re.fullmatch(r"<(\d+) characters>", value)):
        length = int(found[1])
        return " ".join(random.choices(WORDS, k=length))[: length - 1] + "."
    return value


def body(billing: str) -> dict[str, Any]:
    made: dict[str, Any] = synthesised(json.loads(RECORDED.read_text(encoding="utf-8"))["body"], Random(5))
    made["system"][0]["text"] = f"x-anthropic-billing-header: cc_version=2.1.197; cch={billing};"
    return made


def submission(fields: dict[str, Any]) -> Submission:
    service = replace(serving(context=200_000), text=PlainText(), models=("*",))
    return FORMAT.parse(Fields(fields), service, Caller("msg_1"))


def test_claude_codes_body_is_accepted(caplog: pytest.LogCaptureFixture) -> None:
    found = submission(body("1"))
    talk = found.conversation
    assert talk is not None
    assert len(talk.tools) == 24
    assert [message.role for message in talk.messages] == ["system", "user", "system"]
    assert [message.text[:6] for message in talk.messages].count("x-anth") == 0
    assert [ttl for _, _, ttl in written(talk) if ttl] == [300.0, 300.0, 300.0]
    assert (found.stream, found.model, talk.thinking) == (True, "claude-opus-4-8", None)
    assert found.requests[0].max_tokens == 64000
    assert caplog.text == ""


def test_what_varies_between_its_requests_is_no_part_of_the_prompt() -> None:
    one, other = body("1"), body("2")
    other["metadata"]["user_id"] = "someone else's session"
    assert submission(one).requests[0].prompt == submission(other).requests[0].prompt
    assert submission(one).requests[0].namespace == submission(other).requests[0].namespace


def test_its_next_turn_begins_with_the_turn_before() -> None:
    first = body("1")
    second = json.loads(json.dumps(first).replace("cch=1", "cch=2"))
    del second["messages"][0]["content"][1]["cache_control"]
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls", "timeout": 5}}
    result: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "a.txt",
        "cache_control": {"type": "ephemeral"},
    }
    second["messages"] += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    before, now = submission(first).requests[0].prompt, submission(second).requests[0].prompt
    assert now[: len(before) - 1] == before[:-1]
