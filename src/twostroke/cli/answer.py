"""`twostroke run` and `twostroke chat`: answers on the terminal, from the engine in this process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from twostroke.cli.screen import Interrupt, progress, say, start_logging
from twostroke.config import Settings
from twostroke.errors import ConfigError, RequestError

if TYPE_CHECKING:
    from twostroke.llm import LLM, Answer, Stream

Message = dict[str, str]
HELP = "Ctrl-C stops an answer, Ctrl-D leaves, /clear forgets the conversation."


def open_llm(settings: Settings) -> LLM:
    """The engine in this process, loaded under a progress bar."""
    from twostroke.llm import LLM

    start_logging(settings.log_level)
    with progress() as show:
        return LLM(progress=show, **asdict(settings))


def run(settings: Settings, prompt: str, *, raw: bool, as_json: bool) -> int:
    """Answer one prompt ("-" reads it from stdin); returns the exit code."""
    text = sys.stdin.read() if prompt == "-" else prompt
    if not text:
        raise ConfigError("the prompt is empty; give some text", param="prompt")
    with open_llm(settings) as llm:
        stream = llm.stream(text if raw else [{"role": "user", "content": text}])
        if as_json:
            read(stream, lambda piece: None)
        else:
            shown(stream)
    if stream.answer is None:
        return 130
    if as_json:
        print(json.dumps(document(stream.answer), ensure_ascii=False))
    return 0


def read(stream: Stream, write: Callable[[str], None]) -> str:
    """The text of an answer, written piece by piece as it comes, up to Ctrl-C if that comes first."""
    pieces = []
    with Interrupt() as interrupt:
        for piece in stream:
            write(piece)
            pieces.append(piece)
            if interrupt.wished:
                stream.close()
                break
    return "".join(pieces)


def shown(stream: Stream) -> str:
    """Write an answer to stdout as it comes, and what it took to a terminal."""
    text = read(stream, lambda piece: print(piece, end="", flush=True))
    print(flush=True)
    if stream.answer and sys.stderr.isatty():
        say(f"\x1b[2m{summary(stream.answer)}\x1b[0m")
    return text


def document(answer: Answer) -> dict[str, Any]:
    """The answer as `--json` prints it."""
    from twostroke.observe.phases import as_json

    written = len(answer.token_ids)
    return {
        "text": answer.text,
        "token_ids": list(answer.token_ids),
        "finish_reason": answer.finish_reason.value,
        "usage": {
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": written,
            "total_tokens": answer.prompt_tokens + written,
            "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
        },
        "phases": as_json(answer.phases),
    }


def summary(answer: Answer) -> str:
    """One line on what the answer took and what was saved."""
    prefill, decode = answer.phases.prefill, answer.phases.decode
    read = f"read {prefill.prompt_tokens} tokens ({prefill.cached_tokens} cached) in {prefill.ms:.0f} ms"
    speed = f", {1000 / answer.phases.tpot_ms:.1f} tokens/s" if answer.phases.tpot_ms > 0 else ""
    drafts = f", {decode.accepted} of {decode.drafted} drafts kept" if decode.drafted else ""
    return f"{read}; wrote {decode.output_tokens} in {decode.steps} steps{speed}{drafts}"


def chat(settings: Settings, system: str | None) -> None:
    """A conversation on the terminal until Ctrl-D."""
    with open_llm(settings) as llm:
        say(HELP)
        messages = opening(system)
        while (line := read_line()) is not None:
            if line.strip() == "/clear":
                messages = opening(system)
            elif line.strip():
                messages = turn(llm, messages, line)


def opening(system: str | None) -> list[Message]:
    """How a conversation begins."""
    return [{"role": "system", "content": system}] if system else []


def turn(llm: LLM, messages: Sequence[Message], line: str) -> list[Message]:
    """The conversation with one more question and what was written in answer to it, even if it was stopped."""
    asked = [*messages, {"role": "user", "content": line}]
    try:
        stream = llm.stream(asked)
    except RequestError as problem:
        say(f"error: {problem.message}")
        return list(messages)
    return [*asked, {"role": "assistant", "content": shown(stream)}]


def read_line() -> str | None:
    """The next question; None when the person leaves."""
    import readline  # noqa: F401  # gives `input` its history and editing

    while True:
        try:
            return input("> ")
        except EOFError:
            print(flush=True)
            return None
        except KeyboardInterrupt:
            say("\n" + HELP)
