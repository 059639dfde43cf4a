"""What coding agents send, ten turns long: every turn begins with all that was read and written before.

Shapes are as recorded (`tests/serve/agents`); texts are made to the lengths given there.  Answers are cut into tokens
as no tokeniser would cut them, and calls are spaced as no template would space them: only the ids that were generated
can be found again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.serve.scripted import service
from twostroke.cache.keys import Group
from twostroke.cache.space import KVSpace
from twostroke.cache.table import Store
from twostroke.catalog import resolve
from twostroke.runtime.weights import gguf
from twostroke.serve.fields import Fields
from twostroke.serve.format import Format
from twostroke.serve.formats import formats
from twostroke.serve.responses import ResponseStore
from twostroke.serve.service import Service
from twostroke.serve.submission import Caller
from twostroke.text.codec import Codec
from twostroke.text.template import ChatTemplate
from twostroke.text.tokenizer import Tokenizer
from twostroke.types import Delta, Done, FinishReason

AGENTS = Path(__file__).parent / "agents"
TURNS = 10
TARGET = Group("target")
BLOCK = 16
MODELS = ("qwen2.5-coder-0.5b", "smollm2-135m")
Turn = Callable[[dict[str, Any], dict[str, Any], str], None]


@cache
def codec(model: str) -> Codec:
    metadata = gguf.read(resolve(model)).metadata
    tokenizer = Tokenizer.from_metadata(metadata)
    return Codec(tokenizer, ChatTemplate.from_metadata(metadata, tokenizer.vocabulary))


def filled(value: Any) -> Any:
    """The recorded body with a text of the given length for every `<N characters>`."""
    if isinstance(value, str) and (match := re.fullmatch(r"<(\d+) characters>", value)):
        length = int(match[1])
        words = " ".join(f"word{i * length % 977}" for i in range(length // 5 + 1))
        return words[:length]
    if isinstance(value, dict):
        return {key: filled(item) for key, item in value.items()}
    return [filled(item) for item in value] if isinstance(value, list) else value


def claude(body: dict[str, Any], answer: dict[str, Any], result: str) -> None:
    """Claude Code's next turn: the content as it came, results as blocks, a header that changes every time."""
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": result}
        for block in answer["content"]
        if block["type"] == "tool_use"
    ]
    body["messages"] += [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": results}]
    body["system"] = [
        {"type": "text", "text": f"x-anthropic-billing-header: cc={len(body['messages'])}"},
        *(block for block in body["system"] if "billing-header" not in block["text"]),
    ]
    body["metadata"] = {"user_id": f"turn {len(body['messages'])}"}


def opencode(body: dict[str, Any], answer: dict[str, Any], result: str) -> None:
    """opencode's next turn: the message as it came, without what is null."""
    message = answer["choices"][0]["message"]
    kept = {key: value for key, value in message.items() if value is not None}
    results = [{"role": "tool", "tool_call_id": call["id"], "content": result} for call in message["tool_calls"]]
    body["messages"] += [kept, *results]


def codex(body: dict[str, Any], answer: dict[str, Any], result: str) -> None:
    """Codex's next turn: the items as they came, under ids of its own, and an output for every call."""
    calls = [item for item in answer["output"] if item["type"] == "function_call"]
    body["input"] += [{**item, "id": f"own_{len(body['input'])}"} for item in answer["output"]]
    body["input"] += [{"type": "function_call_output", "call_id": c["call_id"], "output": result} for c in calls]
    body["prompt_cache_key"] = f"turn {len(body['input'])}"


CLIENTS: dict[str, tuple[str, str, Turn]] = {
    "claude-code-messages.json": ("/v1/messages", "Bash", claude),
    "codex-responses.json": ("/v1/responses", "exec_command", codex),
    "opencode-chat.json": ("/v1/chat/completions", "bash", opencode),
}


def generated(over: Codec, tool: str, turn: int) -> tuple[int, ...]:
    """An answer in tokens of at most three characters, with its end."""
    arguments = f'{{"description":"turn {turn}" ,  "cmd":"ls -l \\u00e9 {turn}"}}'
    text = f'Turn {turn}: I look.\n\n<tool_call>\n{{"name":"{tool}", "arguments": {arguments}}}\n</tool_call>'
    opening = [part for part in re.split("(</?tool_call>)", text) if part]
    cut = [piece for part in opening for piece in ([part] if "tool_call>" in part else re.findall("(?s).{1,3}", part))]
    ids = [token for piece in cut for token in over.encode(piece, bos=False)]
    return (*ids, min(over.end_ids))


def answered(over: Service, wire: Format, body: dict[str, Any], ids: tuple[int, ...], turn: int) -> tuple[Any, Any]:
    """The prompt that a body becomes, and the body of its answer."""
    submission = wire.parse(Fields(body), over, Caller(f"{wire.prefix}{turn:032x}"))
    writer = wire.writer(replace(submission, stream=False), over)
    list(writer.take(0, Delta(0, ids)))
    list(writer.take(0, Done(0, FinishReason.STOP, None)))
    return submission, writer.whole()


@pytest.mark.model
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", CLIENTS)
def test_every_turn_of_an_agent_reuses_all_but_what_is_new(name: str, model: str) -> None:
    path, tool, next_turn = CLIENTS[name]
    text = codec(model)
    over = replace(service(context=200_000), text=text, models=("qwen", "*"))
    wire = next(each for each in formats(ResponseStore()) if each.path == path)
    space = KVSpace([Store(TARGET, 8192)], BLOCK)[TARGET]
    body = filled(json.loads((AGENTS / name).read_text())["body"])
    known: tuple[int, ...] = ()
    for turn in range(TURNS):
        ids = generated(text, tool, turn)
        submission, answer = answered(over, wire, body, ids, turn)
        prompt = submission.requests[0].prompt
        table = space.match(prompt, submission.requests[0].namespace)
        assert prompt[: len(known)] == known, f"turn {turn} does not begin with what was there"
        assert table.cached == len(known), f"turn {turn} reuses {table.cached} of {len(known)} tokens"
        whole = (*prompt, *ids)
        assert space.grow(table, len(whole) - 1)
        space.copied(table)
        space.close(table, whole, len(whole) - 1)
        known = whole[:-1]
        next_turn(body, answer, f"result {turn} " * 40)


@pytest.mark.model
def test_an_answer_that_was_changed_is_read_as_text_and_its_part_is_named() -> None:
    text = codec(MODELS[0])
    over = replace(service(context=200_000), text=text, models=("qwen", "*"))
    wire = next(each for each in formats(ResponseStore()) if each.path == "/v1/chat/completions")
    body = filled(json.loads((AGENTS / "opencode-chat.json").read_text())["body"])
    first, answer = answered(over, wire, body, generated(text, "bash", 0), 0)
    opencode(body, answer, "result")
    body["messages"][2]["content"] = "Turn 0: I do not look."
    changed, _ = answered(over, wire, body, generated(text, "bash", 1), 1)
    whole = (*first.requests[0].prompt, *generated(text, "bash", 0))
    prompt = changed.requests[0].prompt
    at = next(i for i, (a, b) in enumerate(zip(whole, prompt, strict=False)) if a != b)
    assert len(first.requests[0].prompt) <= at < len(whole)
    assert changed.prompts[0].part_at(at).startswith("messages[2]")
    assert changed.prompts[0].part_at(0).startswith(("messages[0]", "tools"))
