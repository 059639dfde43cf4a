"""A real model behind the real server, through the real client."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import httpx
import openai
import pytest

from tests.serve.live import running, until
from twostroke.config import Settings
from twostroke.serve.service import Service
from twostroke.serve.start import start

pytestmark = pytest.mark.model
MODEL = "smollm2-135m"
STORY = "Once upon a time there was a lighthouse keeper who counted ships. " * 12
QUESTION: list[Any] = [{"role": "user", "content": STORY + "Continue the story and repeat its first sentence."}]


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Service, str, openai.OpenAI]]:
    settings = Settings(model=MODEL, kv_memory=256 * 2**20, speculate="ngram", threads=2, drain_s=5.0)
    service = start(settings, lambda what, done, total: None, "test")
    with running(service) as (url, _, _), openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        yield service, url, client


def ask(client: openai.OpenAI, **fields: Any) -> tuple[str, dict[str, Any]]:
    """The text and the account of a greedy answer."""
    extra = fields.pop("extra_body", {})
    answer = client.chat.completions.create(
        model=MODEL, messages=QUESTION, max_tokens=40, extra_body=extra, **{"temperature": 0, **fields}
    )
    assert answer.model_extra is not None
    return answer.choices[0].message.content or "", answer.model_extra["phases"]


def test_switches_change_costs_and_never_the_text(served: tuple[Service, str, openai.OpenAI]) -> None:
    _, _, client = served
    for sampling in ({"temperature": 0}, {"temperature": 0.8, "seed": 7}):
        plain, cost = ask(client, extra_body={"prefix_cache": False, "speculate": "off"}, **sampling)
        assert (cost["prefill"]["cached_tokens"], cost["decode"]["drafted"]) == (0, 0)
        ask(client, **sampling)
        for cache in (False, True):
            for drafter in ("off", "ngram"):
                text, cost = ask(client, extra_body={"prefix_cache": cache, "speculate": drafter}, **sampling)
                assert text == plain
                prefill, decode = cost["prefill"], cost["decode"]
                assert (prefill["cached_tokens"] == prefill["prompt_tokens"] - 1) == cache
                assert prefill["cached_tokens"] + prefill["computed_tokens"] == prefill["prompt_tokens"]
                assert (decode["drafted"] > 0) == (drafter != "off")
                assert decode["steps"] + decode["accepted"] == decode["output_tokens"]


def test_a_hit_says_that_it_saved_time(served: tuple[Service, str, openai.OpenAI]) -> None:
    _, _, client = served
    _, cold = ask(client, extra_body={"cache_salt": "fresh"})
    _, warm = ask(client, extra_body={"cache_salt": "fresh"})
    assert (cold["prefill"]["cached_tokens"], cold["prefill"]["miss_reason"]) == (0, "cold")
    assert warm["prefill"]["cached_tokens"] == warm["prefill"]["prompt_tokens"] - 1
    assert cold["prefill"]["saved_ms"] == 0
    assert warm["prefill"]["saved_ms"] > warm["prefill"]["ms"]


def test_a_salt_keeps_others_out(served: tuple[Service, str, openai.OpenAI]) -> None:
    _, _, client = served
    ask(client)
    assert ask(client, extra_body={"cache_salt": "mine"})[1]["prefill"]["cached_tokens"] == 0
    assert ask(client, extra_body={"cache_salt": "yours"})[1]["prefill"]["cached_tokens"] == 0
    assert ask(client, extra_body={"cache_salt": "mine"})[1]["prefill"]["cached_tokens"] > 0


def test_choices_differ_and_repeat_with_the_seed(served: tuple[Service, str, openai.OpenAI]) -> None:
    _, _, client = served

    def texts() -> list[str]:
        answer = client.completions.create(
            model=MODEL, prompt="The weather", n=3, seed=11, temperature=1.0, max_tokens=12
        )
        return [choice.text for choice in answer.choices]

    first = texts()
    assert first == texts()
    assert len(set(first)) > 1


def test_streamed_text_is_the_whole_text_and_stops_where_told(served: tuple[Service, str, openai.OpenAI]) -> None:
    _, _, client = served
    whole = (
        client.completions.create(model=MODEL, prompt="One, two, three,", max_tokens=30, temperature=0).choices[0].text
    )
    chunks = client.completions.create(
        model=MODEL, prompt="One, two, three,", max_tokens=30, temperature=0, stream=True
    )
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == whole
    word = whole.split()[3]
    stopped = client.completions.create(
        model=MODEL, prompt="One, two, three,", max_tokens=30, temperature=0, stop=word
    ).choices[0]
    assert stopped.text == whole[: whole.index(word)]
    assert stopped.finish_reason == "stop"


def test_log_probabilities_are_of_the_tokens_that_were_chosen(served: tuple[Service, str, openai.OpenAI]) -> None:
    _, _, client = served
    answer = client.chat.completions.create(
        model=MODEL, messages=QUESTION, max_tokens=8, temperature=0, logprobs=True, top_logprobs=3
    )
    assert answer.choices[0].logprobs is not None
    entries = answer.choices[0].logprobs.content or []
    assert bytes(b for entry in entries for b in entry.bytes or []).decode() == answer.choices[0].message.content
    for entry in entries:
        assert entry.logprob <= 0
        assert entry.logprob == max(top.logprob for top in entry.top_logprobs)


def test_a_prompt_longer_than_the_context_is_refused(served: tuple[Service, str, openai.OpenAI]) -> None:
    service, _, client = served
    with pytest.raises(openai.BadRequestError, match=str(service.context)) as caught:
        client.completions.create(model=MODEL, prompt=[1] * (service.context + 5), max_tokens=5)
    assert caught.value.code == "context_length_exceeded"
    assert str(service.context + 5) in caught.value.message


def test_a_client_that_leaves_frees_its_place(served: tuple[Service, str, openai.OpenAI]) -> None:
    service, _, client = served
    stream = client.completions.create(
        model=MODEL, prompt="Once", max_tokens=2000, stream=True, extra_body={"ignore_eos": True}
    )
    next(iter(stream))
    stream.close()
    limit_s = time.monotonic() + 10
    while service.host.open and time.monotonic() < limit_s:
        time.sleep(0.01)
    assert service.host.open == 0


def test_clients_that_come_and_go_change_nobodys_answer(served: tuple[Service, str, openai.OpenAI]) -> None:
    service, url, _ = served
    dice = Random(5)
    asks = [{"prompt": f"A short text about {word}:", "max_tokens": 24, "temperature": 0.7, "seed": i}
            for i, word in enumerate(("cats", "ships", "rain", "bread"))]  # fmt: skip

    async def text(client: httpx.AsyncClient, body: dict[str, Any], **more: Any) -> str:
        response = await client.post(f"{url}/v1/completions", json=body | more)
        return str(response.raise_for_status().json()["choices"][0]["text"])

    async def come_and_go(client: httpx.AsyncClient, alone: list[str]) -> None:
        which = dice.randrange(len(asks))
        more = {"prefix_cache": dice.random() < 0.8, "speculate": dice.choice(["off", "ngram"])}
        await asyncio.sleep(dice.random())
        if dice.random() < 0.3:
            with suppress(TimeoutError):
                await asyncio.wait_for(text(client, asks[which], **more), dice.random() / 2)
        else:
            assert await text(client, asks[which], **more) == alone[which]

    async def run() -> None:
        async with httpx.AsyncClient(timeout=60) as client:
            alone = [await text(client, body, prefix_cache=False, speculate="off") for body in asks]
            await asyncio.gather(*(come_and_go(client, alone) for _ in range(40)))
            await until(lambda: service.host.open == 0)

    asyncio.run(run())


def test_the_metrics_count_what_happened(served: tuple[Service, str, openai.OpenAI]) -> None:
    _, url, client = served

    def value(name: str) -> float:
        lines = httpx.get(f"{url}/metrics").text.split("\n")
        return sum(float(line.split()[-1]) for line in lines if line.startswith(f"twostroke:{name}{{"))

    names = ("generation_tokens_total", "prefix_cache_hits_total", "spec_decode_num_accepted_tokens_total")
    before = [value(name) for name in names]
    _, cost = ask(client)
    after = [value(name) for name in names]
    decode = cost["decode"]
    assert [b - a for a, b in zip(before, after, strict=True)] == [
        decode["output_tokens"],
        cost["prefill"]["cached_tokens"],
        decode["accepted"],
    ]


def test_one_shot_on_the_command_line_says_the_same() -> None:
    command = [sys.executable, "-m", "twostroke", "run", MODEL, "Say hello.", "--json", "--max-tokens", "12"]
    done = [
        subprocess.run([*command, *more], capture_output=True, text=True, timeout=120, check=False)
        for more in (["--speculate", "off", "--no-prefix-cache"], ["--speculate", "ngram", "--kv-memory", "128MiB"])
    ]
    assert [one.returncode for one in done] == [0, 0], done[0].stderr + done[1].stderr
    first, second = (json.loads(one.stdout) for one in done)
    assert first["token_ids"] == second["token_ids"]
    assert first["usage"]["completion_tokens"] == len(first["token_ids"]) == first["phases"]["decode"]["output_tokens"]
