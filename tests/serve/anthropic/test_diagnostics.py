"""A client that names the message before learns why its prompt does not begin as that one's did."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message
from anthropic.types.beta import BetaMessage

from tests.serve.anthropic.plain import TOOL, events, parsed, payloads, serving, streamed, tokens, whole
from twostroke.serve.anthropic.diagnostics import Fingerprint, Memory, memory
from twostroke.serve.service import Service
from twostroke.serve.submission import Caller

SYSTEM = "be brief"
FIRST = [{"role": "user", "content": "hello"}]
NEXT = [*FIRST, {"role": "assistant", "content": "hi"}, {"role": "user", "content": "more"}]
BASE: dict[str, Any] = {"system": SYSTEM, "tools": [TOOL]}


def ask(service: Service, name: str, previous: str | None, key: str = "", **fields: Any) -> Any:
    """The diagnostics of one request."""
    submission = parsed(
        service, Caller(name, key), **{**BASE, "diagnostics": {"previous_message_id": previous}, **fields}
    )
    message = whole(submission, events(submission, tokens("hi")), service)
    for model in (Message, BetaMessage):
        model.model_validate(message, strict=True)
    return message["diagnostics"]


def reason(service: Service, **fields: Any) -> Any:
    """Why the request after `msg_1` missed."""
    assert ask(service, "msg_1", None, messages=FIRST) is None
    found = ask(service, "msg_2", "msg_1", **{"messages": NEXT, **fields})
    return found and found["cache_miss_reason"]


def test_a_turn_that_goes_on_missed_nothing() -> None:
    assert reason(serving()) is None
    moved = [{"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}]}]
    assert reason(serving(), messages=moved) is None


TOOLS = len('["look", {"type": "object", "properties": {}}]')


@pytest.mark.parametrize(
    ("fields", "kind", "missed"),
    [
        ({"model": "echo-alias"}, "model_changed", 1),
        ({"system": "be long"}, "system_changed", len("be briefhello") + 1),
        ({"tools": [{**TOOL, "name": "jump"}]}, "tools_changed", TOOLS + len("be briefhello") + 1),
        ({"tools": [TOOL, {**TOOL, "name": "jump"}]}, "tools_changed", len("be briefhello") + 1),
        ({"messages": [{"role": "user", "content": "hullo"}]}, "messages_changed", len("hello") + 1),
    ],
)
def test_what_changed_first_is_named(fields: dict[str, Any], kind: str, missed: int) -> None:
    found = reason(serving(), **fields)
    assert found["type"] == kind
    assert found["cache_missed_input_tokens"] == missed


def test_another_way_to_think_gives_no_diagnosis() -> None:
    assert reason(serving(), thinking={"type": "disabled"}) == {"type": "unavailable"}


def test_a_message_nobody_knows() -> None:
    service = serving()
    found = {"cache_miss_reason": {"type": "previous_message_not_found"}}
    assert ask(service, "msg_2", "msg_1") == found
    submission = parsed(service, Caller("msg_3"))  # a client that asks for no diagnostics is not remembered
    assert whole(submission, events(submission, tokens("a")), service)["diagnostics"] is None
    assert ask(service, "msg_4", "msg_3") == found


def test_one_tenant_learns_nothing_of_anothers_messages() -> None:
    service = serving()
    ask(service, "msg_1", None, "alice")
    unknown = {"cache_miss_reason": {"type": "previous_message_not_found"}}
    assert ask(service, "msg_2", "msg_1", "bob", system="other") == unknown
    assert ask(service, "msg_3", "msg_1", "bob", cache_salt="x") == unknown
    assert ask(service, "msg_4", "msg_1", "alice") is None


def test_one_server_remembers_nothing_of_anothers() -> None:
    first, second = serving(), serving()
    ask(first, "msg_1", None)
    assert ask(second, "msg_2", "msg_1") == {"cache_miss_reason": {"type": "previous_message_not_found"}}
    assert memory(first) is not memory(second)
    assert memory(first) is memory(first)


def test_a_stream_tells_at_its_start() -> None:
    service = serving()
    ask(service, "msg_1", None, messages=FIRST)
    compared = {**BASE, "system": "other", "diagnostics": {"previous_message_id": "msg_1"}}
    submission = parsed(service, Caller("msg_2"), stream=True, **compared)
    start = payloads(streamed(submission, events(submission, tokens("a")), service))[0]
    assert start["message"]["diagnostics"]["cache_miss_reason"]["type"] == "system_changed"


def test_memory_is_bounded_by_namespace() -> None:
    kept = Memory(most=2, most_namespaces=2)
    made_of = Fingerprint("m", b"", b"", (), b"", 0, ())
    for name in "abc":
        kept.add("one", name, made_of)
    kept.add("two", "a", made_of)
    missing = {"cache_miss_reason": {"type": "previous_message_not_found"}}
    assert kept.compare("one", "a", made_of) == missing
    assert kept.compare("one", "c", made_of) is None
    kept.add("three", "a", made_of)
    assert kept.compare("one", "c", made_of) == missing
    assert kept.compare("two", "a", made_of) is None
