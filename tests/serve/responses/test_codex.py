"""The body that Codex really sends is accepted, its texts synthesised, and its conversation goes on."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai.types.responses import Response

from tests.serve.responses.plain import PlainText, Served, call
from tests.serve.scripted import service

RECORDED = Path(__file__).parent / "codex.json"


def synthesised(value: Any) -> Any:
    """The same shape with texts of the recorded lengths."""
    if isinstance(value, dict):
        return {key: synthesised(item) for key, item in value.items()}
    if isinstance(value, list):
        return [synthesised(item) for item in value]
    if isinstance(value, str) and (found := re.fullmatch(r"<(\d+) characters>", value)):
        return ("The quick brown fox. " * int(found[1]))[: int(found[1])]
    return value


@pytest.fixture
def served() -> Served:
    return Served(replace(service(context=200_000), text=PlainText(), models=("qwen",)))


def body() -> dict[str, Any]:
    found: dict[str, Any] = synthesised(json.loads(RECORDED.read_text(encoding="utf-8"))["body"])
    return found


def test_codexs_body_is_accepted(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        submission = served.parsed(**body())
    talk = submission.conversation
    assert talk is not None
    assert [message.role for message in talk.messages] == ["system", "system", "user", "user"]
    assert [tool.name for tool in talk.tools] == [
        "exec_command", "write_stdin", "request_user_input", "view_image", "close_agent", "resume_agent", "send_input",
        "spawn_agent", "wait_agent", "get_goal", "create_goal", "update_goal",
    ]  # fmt: skip
    assert submission.stream
    assert [record.getMessage() for record in caplog.records] == [
        'the tool "tools[8]" ("web_search") cannot run here and is left out'
    ]


def test_what_varies_between_its_requests_is_no_part_of_the_prompt(served: Served) -> None:
    one, other = body(), body()
    other["prompt_cache_key"] = "11111111-0000-0000-0000-000000000000"
    other["client_metadata"]["turn_id"] = "another turn"
    for item in other["input"]:
        item["id"] = "msg_another"
    first, second = served.parsed(**one), served.parsed(**other)
    assert first.prompts == second.prompts
    assert first.requests[0].namespace == second.requests[0].namespace


def test_its_next_turn_begins_with_what_the_last_one_generated(served: Served) -> None:
    asked = body()
    answer = "<think>Let me see.</think>I look." + call("exec_command", cmd="ls") + call("spawn_agent", message="go")
    answered = served.answered(answer, **asked)
    assert Response.model_validate(answered)
    assert len(served.store) == 0  # store: false
    returned = [returns(item) for item in answered["output"]]
    outputs = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "done"}
        for item in returned
        if "call_id" in item
    ]
    talk = served.talk(**{**asked, "input": [*asked["input"], *returned, *outputs]})
    _, words, thoughts, calls, _ = served.text.remembered[-1]
    said = talk.messages[4]
    assert (said.text, said.reasoning, said.calls) == (words, thoughts, tuple(calls))
    assert [message.role for message in talk.messages[4:]] == ["assistant", "tool", "tool"]


def returns(item: dict[str, Any]) -> dict[str, Any]:
    """An item as Codex sends it back: without its id and status, and reasoning only sealed."""
    dropped = {"id", "status"} | ({"content"} if item["type"] == "reasoning" else set())
    return {key: value for key, value in item.items() if key not in dropped}
