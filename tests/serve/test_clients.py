"""The clients people have, against a real model: tools, schemas, streams, errors, in every format.

The model is small and says little of sense; what is asserted is what any model must get right: shapes, grammars, counts
that add up, and that switches change costs and never an answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import jsonschema
import openai
import pytest

from tests.serve.live import running, until
from twostroke.config import Settings
from twostroke.serve.service import Service
from twostroke.serve.start import start

pytestmark = pytest.mark.model
MODEL = "qwen2.5-coder-0.5b"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["C", "F"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "description": f"{name} of a city", "parameters": SCHEMA}}
    for name in ("get_weather", "get_time")
]
WEATHER: list[Any] = [{"role": "user", "content": "What is the weather in Paris? Use the tool."}]
Clients = tuple[Service, openai.OpenAI, anthropic.Anthropic]
OFF = {"prefix_cache": False, "speculate": "off"}


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    settings = Settings(model=MODEL, kv_memory=256 * 2**20, threads=2, drain_s=5.0)
    service = start(settings, lambda what, done, total: None, "test")
    with (
        running(service) as (url, _, _),
        openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as ours,
        anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as theirs,
    ):
        yield service, ours, theirs


def called(message: Any) -> list[tuple[str, Any]]:
    return [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]


def test_a_whole_tool_loop(clients: Clients) -> None:
    _, client, _ = clients
    first = client.chat.completions.create(
        model=MODEL, messages=WEATHER, tools=TOOLS, tool_choice="required", temperature=0, max_tokens=80
    )
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls"
    for name, arguments in called(message):
        assert name in ("get_weather", "get_time")
        jsonschema.validate(arguments, SCHEMA)
    results: list[Any] = [
        {"role": "tool", "tool_call_id": call.id, "content": "17 degrees"} for call in message.tool_calls or ()
    ]
    second = client.chat.completions.create(
        model=MODEL,
        messages=[*WEATHER, message.model_dump(exclude_none=True), *results],  # type: ignore[list-item]
        tools=TOOLS,
        temperature=0,
        max_tokens=20,
    )
    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.prompt_tokens_details is not None
    reused = second.usage.prompt_tokens_details.cached_tokens or 0
    assert reused >= first.usage.total_tokens - 1  # all that was read and written, but for the end of the answer


def test_a_named_tool_is_called_and_nothing_else(clients: Clients) -> None:
    _, client, _ = clients
    answer = client.chat.completions.create(
        model=MODEL,
        messages=WEATHER,
        tools=TOOLS,
        tool_choice={"type": "function", "function": {"name": "get_time"}},
        parallel_tool_calls=False,
        temperature=1,
        seed=5,
        max_tokens=80,
    )
    assert [name for name, _ in called(answer.choices[0].message)] == ["get_time"]
    assert answer.choices[0].message.content is None


def test_streamed_calls_are_the_whole_ones(clients: Clients) -> None:
    _, client, _ = clients
    asked: dict[str, Any] = {
        "model": MODEL, "messages": WEATHER, "tools": TOOLS, "tool_choice": "required", "temperature": 0,
        "max_tokens": 80,
    }  # fmt: skip
    whole = called(client.chat.completions.create(**asked).choices[0].message)
    with client.chat.completions.stream(**asked) as stream:
        for _ in stream:
            pass
        assert called(stream.get_final_completion().choices[0].message) == whole


@pytest.mark.parametrize("seed", range(4))
def test_constrained_answers_are_the_same_under_every_switch_and_always_validate(clients: Clients, seed: int) -> None:
    _, client, _ = clients
    asked: dict[str, Any] = {
        "model": MODEL, "messages": [{"role": "user", "content": f"Give me city number {seed}."}], "temperature": 1.2,
        "seed": seed, "max_tokens": 60,
        "response_format": {"type": "json_schema", "json_schema": {"name": "c", "strict": True, "schema": SCHEMA}},
    }  # fmt: skip
    texts = {
        client.chat.completions.create(**asked, extra_body=switches).choices[0].message.content
        for switches in (OFF, {}, {"prefix_cache": False}, {"speculate": "off"}, {"speculate": "ngram"})
    }
    assert len(texts) == 1
    jsonschema.validate(json.loads(texts.pop() or ""), SCHEMA)


@pytest.mark.parametrize(
    "field",
    [
        {"presence_penalty": 1.5},
        {"frequency_penalty": -0.5},
        {"extra_body": {"repetition_penalty": 1.3}},
        {"logit_bias": {"785": -100, "11": 3.5}},
        {"extra_body": {"min_tokens": 12}},
    ],
)
def test_penalties_and_bias_are_the_same_under_every_switch(clients: Clients, field: dict[str, Any]) -> None:
    _, client, _ = clients
    plain = {name: value for name, value in field.items() if name != "extra_body"}
    texts = {
        client.chat.completions.create(
            model=MODEL,
            messages=WEATHER,
            temperature=0.7,
            seed=3,
            max_tokens=40,
            extra_body={**field.get("extra_body", {}), **switches},
            **plain,
        )
        .choices[0]
        .message.content
        for switches in (OFF, {}, {"speculate": "ngram"})
    }
    assert len(texts) == 1


def test_messages_with_tools_in_anthropics_words(clients: Clients) -> None:
    _, _, client = clients
    tools: list[Any] = [{"name": "get_weather", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}}]
    with client.messages.stream(
        model=MODEL, max_tokens=80, tools=tools, tool_choice={"type": "any"}, messages=WEATHER
    ) as stream:
        first = stream.get_final_message()
    (block,) = (block for block in first.content if block.type == "tool_use")
    jsonschema.validate(block.input, SCHEMA)
    assert first.stop_reason == "tool_use"
    result: Any = {"type": "tool_result", "tool_use_id": block.id, "content": "17 degrees"}
    second = client.messages.create(
        model=MODEL,
        max_tokens=10,
        tools=tools,
        messages=[
            *WEATHER,
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [result]},
        ],
    )
    assert second.usage.cache_read_input_tokens
    before = first.usage.input_tokens + first.usage.output_tokens
    before += (first.usage.cache_read_input_tokens or 0) + (first.usage.cache_creation_input_tokens or 0)
    assert second.usage.cache_read_input_tokens >= before - 1


def test_count_tokens_is_what_the_message_then_reads(clients: Clients) -> None:
    _, _, client = clients
    counted = client.messages.count_tokens(model=MODEL, messages=WEATHER, system="Be brief.").input_tokens
    usage = client.messages.create(model=MODEL, max_tokens=1, messages=WEATHER, system="Be brief.").usage
    read = usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    assert read == counted


def test_a_prewarmed_prompt_is_read_from_the_cache(clients: Clients) -> None:
    _, _, client = clients
    system: Any = [{"type": "text", "text": "You know. " * 50, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    warm = client.messages.create(model=MODEL, max_tokens=0, system=system, messages=WEATHER)
    assert (warm.content, warm.stop_reason, warm.usage.output_tokens) == ([], "max_tokens", 0)
    assert warm.usage.cache_creation is not None
    assert warm.usage.cache_creation.ephemeral_1h_input_tokens > 100
    then = client.messages.create(model=MODEL, max_tokens=5, system=system, messages=WEATHER)
    assert (then.usage.cache_read_input_tokens or 0) > 100


def test_a_response_goes_on_from_a_stored_one(clients: Clients) -> None:
    _, client, _ = clients
    first = client.responses.create(model=MODEL, input="Say one word.", temperature=0, max_output_tokens=16)
    second = client.responses.create(
        model=MODEL, input="Another.", previous_response_id=first.id, temperature=0, max_output_tokens=16
    )
    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.input_tokens_details.cached_tokens >= first.usage.total_tokens - 1


def test_a_prompts_own_log_probabilities_do_not_depend_on_the_cache(clients: Clients) -> None:
    _, client, _ = clients
    asked: dict[str, Any] = {
        "model": MODEL, "prompt": "The sky above the port was the color of television", "max_tokens": 1,
        "temperature": 0, "echo": True, "logprobs": 2,
    }  # fmt: skip
    found = [client.completions.create(**asked, extra_body=extra).choices[0].logprobs for extra in (OFF, {}, {})]
    assert found[0] is not None
    assert found[0].token_logprobs is not None
    assert len(found[0].token_logprobs) == len(found[0].tokens or ()) > 8
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": 7}}}]}, "tools[0]"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": []}}}},
            "response_format",
        ),
        ({"messages": [{"role": "tool", "tool_call_id": "none", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0]"),
    ],
)
def test_what_cannot_be_done_is_a_400_that_names_it(clients: Clients, fields: dict[str, Any], param: str) -> None:
    service, client, _ = clients
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**{"model": MODEL, "messages": WEATHER, "tool_choice": "auto", **fields})
    assert (caught.value.param or "").startswith(param)
    assert client.chat.completions.create(model=MODEL, messages=WEATHER, max_tokens=1).choices
    assert service.host.open == 0


def test_many_at_once_through_the_async_clients(clients: Clients) -> None:
    service, ours, theirs = clients

    async def all_of_them() -> list[Any]:
        async with (
            openai.AsyncOpenAI(base_url=ours.base_url, api_key="none") as one,
            anthropic.AsyncAnthropic(base_url=str(theirs.base_url), api_key="none") as other,
        ):
            chats = [
                one.chat.completions.create(model=MODEL, messages=WEATHER, tools=TOOLS, max_tokens=12, seed=seed)
                for seed in range(4)
            ]
            messages = [other.messages.create(model=MODEL, messages=WEATHER, max_tokens=12) for _ in range(4)]
            return list(await asyncio.gather(*chats, *messages))

    assert len(asyncio.run(all_of_them())) == 8
    assert service.host.open == 0


def test_a_client_that_leaves_a_stream_frees_what_it_held(clients: Clients) -> None:
    service, client, _ = clients
    stream = client.chat.completions.create(model=MODEL, messages=WEATHER, max_tokens=4000, stream=True)
    next(iter(stream))
    stream.close()
    asyncio.run(until(lambda: service.host.open == 0, 20.0))
