"""`run` and `chat` over an engine that is not there."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from tests.serve.openai.talk import phases
from twostroke.cli import answer
from twostroke.cli.main import execute
from twostroke.errors import PromptTooLong
from twostroke.types import FinishReason, Phases


@dataclass(frozen=True)
class Answer:
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    prompt_tokens: int
    phases: Phases
    cached_tokens: int = 2


class Stream:
    """Writes `words`; a word that is a signal arrives as one."""

    def __init__(self, words: list[str | signal.Signals]) -> None:
        self.answer: Answer | None = None
        self.closed = False
        self._words = words

    def __iter__(self) -> Iterator[str]:
        for word in self._words:
            if isinstance(word, str):
                yield word
            else:
                os.kill(os.getpid(), word)
                yield "^"
        text = "".join(word for word in self._words if isinstance(word, str))
        self.answer = Answer(text, (1, 2, 3), FinishReason.STOP, 5, phases(drafted=4, accepted=(2, 1)))

    def close(self) -> None:
        self.closed = True


class LLM:
    """Stands where the engine would; remembers what it was asked."""

    made: list[LLM] = []
    words: list[str | signal.Signals] = ["one ", "two"]
    refuse: Exception | None = None

    def __init__(self, progress: Any, **settings: Any) -> None:
        self.settings = settings
        self.asked: list[Any] = []
        self.streams: list[Stream] = []
        self.closed = False
        LLM.made.append(self)

    def stream(self, prompt: Any) -> Stream:
        if LLM.refuse:
            problem, LLM.refuse = LLM.refuse, None
            raise problem
        self.asked.append(prompt)
        self.streams.append(Stream(LLM.words))
        return self.streams[-1]

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, *error: object) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _engine(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("twostroke.llm")
    module.LLM = LLM  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "twostroke.llm", module)
    monkeypatch.setattr(LLM, "made", [])
    monkeypatch.setattr(LLM, "words", ["one ", "two"])
    monkeypatch.setattr(LLM, "refuse", None)


def lines(monkeypatch: pytest.MonkeyPatch, *typed: str | type[BaseException]) -> None:
    """What the person types, then Ctrl-D."""
    rest = iter([*typed, EOFError])

    def read(prompt: str) -> str:
        line = next(rest)
        if isinstance(line, str):
            return line
        raise line

    monkeypatch.setattr("builtins.input", read)


def test_run_streams_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "m", "hello", "--temperature", "0.5", "--no-prefix-cache"]) == 0
    assert capsys.readouterr().out == "one two\n"
    (llm,) = LLM.made
    assert llm.asked == [[{"role": "user", "content": "hello"}]]
    assert (llm.settings["model"], llm.settings["temperature"], llm.settings["prefix_cache"]) == ("m", 0.5, False)
    assert llm.closed


def test_run_raw_sends_the_text_alone() -> None:
    assert execute(["run", "m", "hello", "--raw"]) == 0
    assert LLM.made[0].asked == ["hello"]


def test_run_reads_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("from a pipe"))
    assert execute(["run", "m", "-"]) == 0
    assert LLM.made[0].asked[0][0]["content"] == "from a pipe"


def test_run_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "m", "hello", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"text", "token_ids", "finish_reason", "usage", "phases"}
    assert (found["text"], found["token_ids"], found["finish_reason"]) == ("one two", [1, 2, 3], "stop")
    assert found["usage"] == {
        "prompt_tokens": 5,
        "completion_tokens": 3,
        "total_tokens": 8,
        "prompt_tokens_details": {"cached_tokens": 2},
    }
    assert found["phases"]["decode"]["accepted_per_position"] == [2, 1]


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_ctrl_c_stops_a_run(
    as_json: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(LLM, "words", ["one ", signal.SIGINT, "two"])
    assert execute(["run", "m", "hello", *as_json]) == 130
    assert "two" not in capsys.readouterr().out
    assert LLM.made[0].streams[0].closed
    assert LLM.made[0].closed


def test_an_empty_prompt_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "m", ""]) == 2
    assert "prompt is empty" in capsys.readouterr().err
    assert LLM.made == []


def test_a_chat_remembers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines(monkeypatch, "first", "", "second")
    assert execute(["chat", "m", "--system", "be brief"]) == 0
    system = {"role": "system", "content": "be brief"}
    first, reply = {"role": "user", "content": "first"}, {"role": "assistant", "content": "one two"}
    assert LLM.made[0].asked == [[system, first], [system, first, reply, {"role": "user", "content": "second"}]]
    assert capsys.readouterr().out.startswith("one two\none two\n")


def test_a_chat_can_be_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    lines(monkeypatch, "first", "/clear", "second")
    assert execute(["chat", "m"]) == 0
    assert LLM.made[0].asked[1] == [{"role": "user", "content": "second"}]


def test_ctrl_c_stops_an_answer_and_the_chat_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LLM, "words", ["one ", signal.SIGINT, "two"])
    lines(monkeypatch, "first", "second")
    assert execute(["chat", "m"]) == 0
    assert LLM.made[0].asked[1][1] == {"role": "assistant", "content": "one ^"}


def test_ctrl_c_at_the_prompt_only_reminds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines(monkeypatch, KeyboardInterrupt, "first")
    assert execute(["chat", "m"]) == 0
    assert len(LLM.made[0].asked) == 1
    assert capsys.readouterr().err.count("Ctrl-D leaves") == 2


def test_a_question_that_does_not_fit_is_told_and_forgotten(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(LLM, "refuse", PromptTooLong("too long"))
    lines(monkeypatch, "first", "second")
    assert execute(["chat", "m"]) == 0
    assert "error: too long" in capsys.readouterr().err
    assert LLM.made[0].asked == [[{"role": "user", "content": "second"}]]


def test_the_summary_says_what_was_read_and_written() -> None:
    done = Answer("x", (1,), FinishReason.STOP, 5, phases(drafted=4, accepted=(2, 1)))
    assert answer.summary(done) == (
        "read 5 tokens (2 cached) in 2 ms; wrote 4 in 1 steps, 250.0 tokens/s, 3 of 4 drafts kept"
    )
