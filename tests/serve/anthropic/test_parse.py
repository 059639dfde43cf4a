"""Bodies become conversations; what cannot be honoured is named by its path."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import pytest

from tests.serve.anthropic.plain import ASK, CALLER, SERVICE, TOOL, parsed, serving, written
from twostroke.errors import InvalidParameter, PromptTooLong, UnknownModel
from twostroke.serve import anthropic
from twostroke.serve.fields import Fields
from twostroke.text.conversation import Conversation, Message, Part, ToolCall, ToolChoice
from twostroke.text.formats import JsonSchema
from twostroke.types import Retention

EPHEMERAL = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"b": 1, "a": "é"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "seen"}
SERVER_TOOL = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def talk(**fields: Any) -> Conversation:
    found = parsed(**fields).conversation
    assert found is not None
    return found


def test_a_string_and_one_block_are_the_same() -> None:
    as_string = talk(system="be brief", messages=[{"role": "user", "content": "hi"}])
    as_blocks = talk(system=[text("be brief")], messages=[user(text("hi"))])
    assert [m.text for m in as_string.messages] == [m.text for m in as_blocks.messages] == ["be brief", "hi"]
    assert [m.role for m in as_blocks.messages] == ["system", "user"]
    assert as_blocks.messages[1].parts == (Part("hi", "messages[0].content[0]"),)


def test_the_billing_header_never_reaches_the_prompt() -> None:
    prompts = [
        parsed(system=[text(f"x-anthropic-billing-header: cc_version={n};"), text("be brief")]).prompts for n in (1, 2)
    ]
    assert prompts[0][0].ids == prompts[1][0].ids == (*b"be briefhello", 10)


def test_a_system_message_may_stand_between_the_others() -> None:
    found = talk(messages=[user(text("hi")), {"role": "system", "content": "be kind"}, user(text("well?"))])
    assert [(m.role, m.text) for m in found.messages] == [("user", "hi"), ("system", "be kind"), ("user", "well?")]


def test_neither_the_first_message_nor_turns_are_held_to_an_order() -> None:
    found = talk(messages=[assistant(text("hello")), assistant(text("again")), user(text("a")), user(text("b"))])
    assert [m.role for m in found.messages] == ["assistant", "assistant", "user", "user"]


def test_results_become_messages_before_what_the_user_says() -> None:
    second = {**CALL, "id": "toolu_2"}
    failed = {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": True, "content": [text("a"), text("b")]}
    found = talk(
        tools=[TOOL], messages=[user(text("go")), assistant(CALL, second), user(text("and?"), RESULT, failed)]
    ).messages
    assert [m.role for m in found] == ["user", "assistant", "tool", "tool", "user"]
    assert [(m.call_id, m.text) for m in found[2:4]] == [("toolu_1", "seen"), ("toolu_2", "Error: a\nb")]
    assert found[4].text == "and?"


def test_results_may_come_in_several_user_messages_and_say_nothing() -> None:
    empty = {"type": "tool_result", "tool_use_id": "toolu_2"}
    found = talk(
        tools=[TOOL], messages=[user(text("go")), assistant(CALL, {**CALL, "id": "toolu_2"}), user(RESULT), user(empty)]
    ).messages
    assert [(m.role, m.call_id) for m in found[2:]] == [("tool", "toolu_1"), ("tool", "toolu_2")]
    failed = {**empty, "tool_use_id": "toolu_1", "is_error": True}
    assert talk(tools=[TOOL], messages=[assistant(CALL), user(failed)]).messages[1].text == "Error:"


def test_an_assistants_thoughts_calls_and_words_go_to_their_places() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        {"type": "redacted_thinking", "data": "zzz"},
        text("I look. "),
        CALL,
        text("Then I wait."),
    ]
    message = talk(tools=[TOOL], messages=[user(text("go")), assistant(*content), user(RESULT)]).messages[1]
    assert message == Message(
        "assistant",
        (Part("I look. Then I wait.", "messages[1].content[4]"),),
        "hm",
        (ToolCall("toolu_1", "look", '{"b": 1, "a": "é"}'),),
        path="messages[1]",
    )


def test_blocks_side_by_side_are_lines() -> None:
    message = talk(messages=[user(text("x")), assistant(text("a"), text("b")), user(text("c"), text("d"))]).messages
    assert [m.text for m in message] == ["x", "a\nb", "c\nd"]


def test_a_document_of_text_is_text() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "body"}
    nested = {"type": "content", "content": [text("one"), text("two")]}
    found = talk(messages=[user({"type": "document", "title": "T", "source": source})]).messages[0]
    assert found.text == "T\nbody"
    assert talk(messages=[user({"type": "document", "source": nested})]).messages[0].text == "one\ntwo"


def test_a_last_assistant_message_is_continued() -> None:
    found = talk(messages=[user(text("count")), assistant(text("one, two,"))])
    assert found.continue_final
    assert not talk(messages=[user(text("count"))]).continue_final
    empty = talk(messages=[user(text("count")), {"role": "assistant", "content": ""}])
    assert (len(empty.messages), empty.continue_final) == (1, False)


def test_an_empty_answer_may_come_back() -> None:
    assert [m.text for m in talk(messages=[user(text("a")), assistant(), user(text("b"))]).messages] == ["a", "", "b"]


def test_tools_are_read_in_the_order_sent() -> None:
    schema = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}}, "required": ["z"]}
    tools = [TOOL, {"type": "custom", "name": "put", "input_schema": schema, "strict": True, "cache_control": HOUR}]
    found = talk(tools=tools).tools
    assert [(t.name, t.strict, t.path, t.ttl_s) for t in found] == [
        ("look", False, "tools[0]", None),
        ("put", True, "tools[1]", 3600.0),
    ]
    assert json.dumps(found[1].parameters) == json.dumps(schema)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, ToolChoice()),
        ({"type": "auto"}, ToolChoice("auto")),
        ({"type": "any"}, ToolChoice("required")),
        ({"type": "none"}, ToolChoice("none")),
        ({"type": "tool", "name": "look"}, ToolChoice("required", "look")),
        ({"type": "auto", "disable_parallel_tool_use": True}, ToolChoice("auto", parallel=False)),
    ],
)
def test_tool_choice(choice: Any, expected: ToolChoice) -> None:
    assert talk(tools=[TOOL], tool_choice=choice).choice == expected


def test_a_server_tool_is_ignored_aloud(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = talk(tools=[TOOL, {**SERVER_TOOL, "cache_control": EPHEMERAL}])
    assert [(t.name, t.ttl_s) for t in found.tools] == [("look", 300.0)]
    assert "web_search" in caplog.text


def test_markers_become_lifetimes_and_nothing_else() -> None:
    fields: dict[str, Any] = {
        "tools": [{**TOOL, "cache_control": HOUR}],
        "system": [text("be brief", cache_control=HOUR)],
        "messages": [
            user(text("go", cache_control=EPHEMERAL)),
            assistant({**CALL, "cache_control": EPHEMERAL}),
            user(RESULT),
        ],
    }
    marked = parsed(**fields)
    bare = parsed(**json.loads(json.dumps(fields, default=str).replace('"cache_control"', '"citations"')))
    assert marked.prompts[0].ids == bare.prompts[0].ids
    assert [part.ttl_s for part in marked.prompts[0].parts] == [3600.0, 3600.0, 300.0, 300.0, None]
    ends = [part.end for part in marked.prompts[0].breakpoints]
    assert marked.requests[0].retain == tuple(
        Retention(end, ttl) for end, ttl in zip(ends, (3600.0, 3600.0, 300.0, 300.0), strict=True)
    )


def test_a_marker_of_the_body_falls_on_its_last_block() -> None:
    found = talk(cache_control=EPHEMERAL, messages=[user(text("a")), user(text("b"), text("c"))])
    assert [ttl for _, _, ttl in written(found)] == [None, None, 300.0]
    same = talk(cache_control=HOUR, messages=[user(text("a", cache_control=HOUR))])
    assert [ttl for _, _, ttl in written(same)] == [3600.0]
    result = talk(cache_control=HOUR, tools=[TOOL], messages=[assistant(CALL), user(RESULT)])
    assert [ttl for _, _, ttl in written(result)] == [None, None, 3600.0]


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        (None, None),
        ({"type": "adaptive"}, None),
        ({"type": "disabled"}, False),
        ({"type": "enabled", "budget_tokens": 2048}, True),
    ],
)
def test_thinking(thinking: Any, expected: bool | None) -> None:
    assert talk(thinking=thinking).thinking is expected


def test_effort_reaches_the_template() -> None:
    assert talk(output_config={"effort": "high"}).arguments == {"reasoning_effort": "high"}
    assert talk(output_config={}).arguments == {}


@pytest.mark.parametrize("field", ["output_config", "output_format"])
def test_a_schema_becomes_a_format(field: str) -> None:
    shape = {"type": "json_schema", "schema": {"type": "object"}}
    service = serving()
    parsed(service, **{field: {"format": shape} if field == "output_config" else shape})
    path = "output_config.format.schema" if field == "output_config" else "output_format.schema"
    assert service.text.formats == [JsonSchema({"type": "object"}, path)]  # type: ignore[attr-defined]


def test_limits_and_sampling() -> None:
    found = parsed(max_tokens=64000, temperature=0.5, top_k=3, top_p=0.5, seed=9, stop_sequences=["a"] * 9, stream=True)
    request = found.requests[0]
    assert request.max_tokens == 4096 - len(request.prompt)
    assert (request.sampling.temperature, request.sampling.top_k, request.sampling.seed) == (0.5, 3, 9)
    assert (found.stops, found.stream) == (("a",) * 9, True)
    assert parsed(prefix_cache=False, speculate="ngram").requests[0].speculate == "ngram"


def test_max_tokens_0_fills_the_cache_only() -> None:
    found = parsed(max_tokens=0)
    assert (found.prefilled_only, found.requests[0].max_tokens) == (True, 1)


def test_an_agents_session_does_not_narrow_whom_it_shares_with() -> None:
    first, second = (parsed(metadata={"user_id": f"user_1_session_{n}"}).requests[0].namespace for n in (1, 2))
    assert first == second
    assert parsed(cache_salt="mine").requests[0].namespace != first


def test_count_tokens_counts_the_prompt() -> None:
    fields = {key: value for key, value in ASK.items() if key != "max_tokens"} | {"tools": [TOOL], "system": "brief"}
    counted = anthropic.count(Fields(fields), SERVICE, CALLER)
    assert counted == {"input_tokens": len(parsed(**fields).prompts[0].ids)}


def test_a_context_edit_is_ignored_aloud(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        parsed(context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]})
    assert not caplog.text
    with caplog.at_level(logging.WARNING):
        parsed(context_management={"edits": [{"type": "clear_tool_uses_20250919"}]})
    assert "clear_tool_uses_20250919" in caplog.text


PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K"}}
BROKEN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "not base64!"}}
CITED = {"type": "document", "source": {"type": "text", "data": "x"}, "citations": {"enabled": True}}
SCHEMA = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
MARKED = text("x", cache_control=EPHEMERAL)
THOUGHT = {"type": "thinking", "thinking": "x", "signature": "y"}


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"messages": []}, "messages", "at least one"),
        ({"messages": None}, "messages", "at least one"),
        ({"messages": ["hi"]}, "messages[0]", "role and content"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", "user, assistant, system"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "a string or an array"),
        ({"messages": [user("hi")]}, "messages[0].content[0]", "with a type"),
        ({"messages": [user({"type": "text"})]}, "messages[0].content[0].text", "a string"),
        ({"messages": [user(PNG)]}, "messages[0].content[0]", '"image" content'),
        ({"messages": [user(BROKEN)]}, "messages[0].content[0].source.data", "valid base64"),
        ({"messages": [user(CITED)]}, "messages[0].content[0].citations.enabled", "cite nothing"),
        ({"messages": [user({"type": "video"})]}, "messages[0].content[0]", '"video"'),
        ({"messages": [user(CALL)]}, "messages[0].content[0]", '"tool_use"'),
        ({"messages": [assistant({**CALL, "input": "x"})]}, "messages[0].content[0].input", "an object"),
        ({"messages": [assistant(text("a ")), assistant(text("b "))]}, "messages[1]", "white space"),
        ({"messages": [user(text("a")), assistant(THOUGHT)]}, "messages[1]", "no text"),
        ({"messages": [user(RESULT)]}, "messages[0].content[0].tool_use_id", "toolu_1"),
        ({"messages": [assistant(CALL), user(RESULT, RESULT)]}, "messages[1].content[1].tool_use_id", "toolu_1"),
        ({"messages": [assistant(CALL), user(text("no"))]}, "messages[0]", "toolu_1"),
        ({"messages": [assistant(CALL)]}, "messages[0]", "toolu_1"),
        ({"messages": [assistant(CALL, CALL)]}, "messages[0]", "ids must differ"),
        (
            {"messages": [assistant(CALL), user({**RESULT, "content": [PNG]})]},
            "messages[1].content[0].content[0]",
            '"image" content',
        ),
        ({"system": [PNG]}, "system[0]", '"image" content'),
        ({"messages": [user(text("", cache_control=EPHEMERAL))]}, "messages[0].content[0].cache_control", "empty"),
        (
            {"messages": [assistant({**THOUGHT, "cache_control": EPHEMERAL})]},
            "messages[0].content[0].cache_control",
            "thinking",
        ),
        ({"cache_control": {"type": "eternal"}}, "cache_control.type", "ephemeral"),
        ({"cache_control": {"type": "ephemeral", "ttl": "2h"}}, "cache_control.ttl", "5m"),
        ({"messages": [user(*[MARKED] * 5)]}, "messages[0].content[4].cache_control", "number 5"),
        ({"cache_control": EPHEMERAL, "messages": [user(*[MARKED] * 4, text("x"))]}, "cache_control", "number 5"),
        ({"cache_control": HOUR, "messages": [user(MARKED)]}, "cache_control", "different lifetimes"),
        (
            {"tools": [{**TOOL, "cache_control": EPHEMERAL}], "system": [text("x", cache_control=HOUR)]},
            "system[0].cache_control",
            "longer lifetimes first",
        ),
        ({"tools": ["look"]}, "tools[0]", "input_schema"),
        ({"tools": [{"name": "look"}]}, "tools[0].input_schema", "JSON schema"),
        ({"tools": [{"name": "look", "input_schema": {}}]}, "tools[0].input_schema.type", "object"),
        ({"tools": [{**TOOL, "name": ""}]}, "tools[0].name", "1 to 128"),
        ({"tools": [TOOL, TOOL]}, "tools[1].name", "names must differ"),
        ({"tool_choice": {"type": "any"}}, "tool_choice", "tools is empty"),
        ({"tools": [TOOL, SERVER_TOOL], "tool_choice": {"type": "any"}}, "tool_choice", "web_search"),
        ({"tools": [SERVER_TOOL], "tool_choice": {"type": "tool", "name": "web_search"}}, "tool_choice.name", "runs"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "jump"}}, "tool_choice.name", "one of the tools"),
        ({"tool_choice": {"type": "required"}}, "tool_choice.type", "auto, any, tool, none"),
        ({"max_tokens": None}, "max_tokens", "an integer"),
        ({"max_tokens": -1}, "max_tokens", "an integer"),
        ({"max_tokens": 0, "stream": True}, "stream", "max_tokens is 0"),
        ({"max_tokens": 0, "thinking": {"type": "enabled", "budget_tokens": 1}}, "thinking", "max_tokens is 0"),
        ({"max_tokens": 0, "tools": [TOOL], "tool_choice": {"type": "any"}}, "tool_choice", "max_tokens is 0"),
        ({"max_tokens": 0, "output_config": SCHEMA}, "output_config.format", "max_tokens is 0"),
        ({"thinking": {"type": "hard"}}, "thinking.type", "adaptive"),
        ({"output_config": {"effort": "huge"}}, "output_config.effort", "low"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config.format.type", "json_schema"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema", "JSON schema"),
        (
            {"output_config": SCHEMA, "tools": [TOOL], "tool_choice": {"type": "any"}},
            "output_config.format",
            "choose one",
        ),
        ({"output_config": SCHEMA, "messages": [assistant(text("a"))]}, "output_config.format", "begins the answer"),
        ({"mcp_servers": [{"url": "x"}]}, "mcp_servers", "not supported"),
        ({"container": "c"}, "container", "not supported"),
        ({"metadata": {"user_id": 3}}, "metadata.user_id", "a string"),
        ({"stop_sequences": [""]}, "stop_sequences", "none of them empty"),
        ({"diagnostics": {"previous_message_id": 3}}, "diagnostics.previous_message_id", "a string"),
    ],
)
def test_bad_input_is_named(fields: dict[str, Any], param: str, words: str) -> None:
    with pytest.raises(InvalidParameter, match=re.escape(words)) as caught:
        parsed(**fields)
    assert caught.value.param == param
    assert param in caught.value.message or "[" not in param


def test_a_prompt_too_long_says_so_in_the_words_agents_know() -> None:
    with pytest.raises(PromptTooLong, match=r"prompt is too long: 5001 tokens > 4095 maximum"):
        parsed(messages=[user(text("x" * 5000))])


def test_an_unknown_model_and_unknown_fields() -> None:
    with pytest.raises(UnknownModel):
        parsed(model="claude")
    parsed(surprise=1)
    with pytest.raises(InvalidParameter, match="surprise"):
        parsed(serving(strict=True), surprise=1)
