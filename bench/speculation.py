"""What each drafter is worth on real text, beside llama.cpp's own drafting on the same files and prompts.

Every committed prompt is answered by every mode at temperature 0.  Each of ours is an engine of its own over the same
weights, and all of ours write their answers by turns, so that a ratio to speculation off is of the same seconds; the
peer's answers follow one after another in an order that changes.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench import report, wire
from bench.embedded import Session
from bench.llama import ABSENT, Drafting, Peer, draftings, serving
from bench.race import Writer, race
from bench.rounds import Spread, Unmeasured
from bench.workload import Message, Prompt
from twostroke.assemble import Model, assemble
from twostroke.config import Settings

OURS = ("off", "ngram", "suffix", "draft", "auto")  # those that the engine has
CONTEXT = 4096
KV_MEMORY = 2**29  # of each engine
MAX_TOKENS = 256  # half as much ends most edits before the part that is edited
UNREAD = 24  # last tokens of a prompt, which an earlier question about the same text would not share
OFF = "off"


@dataclass(frozen=True, slots=True)
class Taken:
    """One answer of one mode; times in seconds."""

    prompt: str
    kind: str
    tokens: int
    passes: int  # of the target after the first token
    first_s: float
    decode_s: float

    @property
    def per_token_s(self) -> float:
        """Mean time between tokens after the first."""
        return self.decode_s / (self.tokens - 1)


Ask = Callable[[Prompt, tuple[int, ...]], Taken]
Together = Callable[[Prompt, tuple[int, ...]], Mapping[str, Taken]]


@dataclass(frozen=True, slots=True)
class Result:
    """Answers by mode, aligned by prompt.  Peers' modes are named "llama.cpp …"."""

    target: str
    draft: str | None
    max_tokens: int
    answers: Mapping[str, Sequence[Taken]]
    missing: Mapping[str, str]

    def kinds(self) -> tuple[str, ...]:
        """In the order asked."""
        return tuple(dict.fromkeys(taken.kind for taken in next(iter(self.answers.values()))))

    def of(self, mode: str, kind: str) -> list[Taken]:
        """One mode's answers of one kind."""
        return [taken for taken in self.answers[mode] if taken.kind == kind]

    def faster(self, mode: str, than: str, kind: str) -> Spread:
        """How many times faster per token `mode` is than `than`, prompt by prompt."""
        pairs = zip(self.of(than, kind), self.of(mode, kind), strict=True)
        return Spread.of([slow.per_token_s / fast.per_token_s for slow, fast in pairs])

    def best_peer(self, kind: str) -> str | None:
        """The peer's mode with the lowest median time per token, speculation off included."""
        modes = [mode for mode in self.answers if mode.startswith("llama.cpp")]
        return min(modes, key=lambda mode: median(t.per_token_s for t in self.of(mode, kind)), default=None)


@dataclass(frozen=True, slots=True)
class Panel:
    """Everyone who answers: our modes by turns, the peer's one after another; `missing` says who failed and why."""

    encode: Callable[[Sequence[Message]], tuple[int, ...]]
    ours: Together
    peer: Mapping[str, Ask]
    missing: dict[str, str]

    def ask(self, prompts: Iterable[Prompt]) -> dict[str, list[Taken]]:
        """Every mode's answers.  An interrupt keeps the prompts that every mode has answered."""
        rounds: list[Mapping[str, Taken]] = []
        order = list(self.peer)
        shuffle = random.Random(1).shuffle
        try:
            for prompt in prompts:
                shuffle(order)
                rounds.append(self._answers(prompt, order))
        except KeyboardInterrupt:
            if not rounds:
                raise
            print(f"  interrupted; {len(rounds)} prompts count", file=sys.stderr, flush=True)
        modes = [mode for mode in rounds[0] if mode not in self.missing]
        return _comparable({mode: [taken[mode] for taken in rounds] for mode in modes})

    def _answers(self, prompt: Prompt, order: Iterable[str]) -> Mapping[str, Taken]:
        tokens = self.encode(prompt.messages)
        answers = dict(self.ours(prompt, tokens))
        for mode in order:
            if mode in self.missing:
                continue
            try:
                answers[mode] = self.peer[mode](prompt, tokens)
            except Unmeasured as reason:
                self.missing[mode] = str(reason)
        print(f"  {prompt.id}: {len(tokens)} tokens read", file=sys.stderr, flush=True)
        return answers


def run(
    model: Model, settings: Settings, draft: Path | None, peers: Sequence[Peer], prompts: Sequence[Prompt], most: int
) -> Result:
    """Ask everything of every mode, `most` tokens.  A peer that fails is left out and named."""
    writers = _writers(model, settings, draft)
    asks: dict[str, Ask] = {}
    missing: dict[str, str] = {}
    with ExitStack() as servers:
        for peer in peers[:1]:
            for drafting in draftings(draft):
                try:
                    port = servers.enter_context(_server(model, settings, peer, drafting))
                except Unmeasured as reason:
                    missing[f"llama.cpp {drafting.name}"] = str(reason)
                else:
                    asks[f"llama.cpp {drafting.name}"] = _theirs(port, most)
        answers = Panel(model.codec.chat, _together(writers, most), asks, missing).ask(prompts)
    if not peers:
        missing["llama.cpp"] = ABSENT
    return Result(model.name, settings.draft, most, answers, missing)


def run_warm(model: Model, settings: Settings, draft: Path | None, prompts: Sequence[Prompt], most: int) -> Result:
    """The same of our modes alone, where an earlier request has read each text, up to its question's last words."""
    writers = _writers(model, settings, draft)
    together = _together(writers, most)

    def ask(prompt: Prompt, tokens: tuple[int, ...]) -> Mapping[str, Taken]:
        for writer in writers.values():
            writer.read(tokens[: max(1, len(tokens) - UNREAD)])
        return together(prompt, tokens)

    return Result(model.name, settings.draft, most, Panel(model.codec.chat, ask, {}, {}).ask(prompts), {})


def _writers(model: Model, settings: Settings, draft: Path | None) -> Mapping[str, Writer]:
    modes = [mode for mode in OURS if mode != "draft" or draft is not None]
    return {mode: _writer(model, settings, mode) for mode in modes}


def _writer(model: Model, settings: Settings, mode: str) -> Writer:
    writer = Writer(Session(assemble(model, settings)), {"speculate": mode, "stop_ids": model.codec.end_ids})
    race([writer], range(100, 164), 16)  # pages touched, clocks and rates warm
    return writer


def _server(model: Model, settings: Settings, peer: Peer, drafting: Drafting) -> Any:
    assert settings.threads is not None
    return serving(peer, model.path, settings.threads, 1, CONTEXT, drafting.flags)


def _together(writers: Mapping[str, Writer], most: int) -> Together:
    """All of our modes' answers to a prompt, written by turns."""

    def ask(prompt: Prompt, tokens: tuple[int, ...]) -> Mapping[str, Taken]:
        race(writers.values(), tokens, most, len(tokens))
        return {mode: _taken(prompt, writer) for mode, writer in writers.items()}

    return ask


def _taken(prompt: Prompt, writer: Writer) -> Taken:
    assert writer.phases is not None
    passes = writer.phases.decode.steps - 1
    return Taken(prompt.id, prompt.kind, len(writer.written), passes, writer.first_s, writer.decode_s)


def _comparable(answers: Mapping[str, list[Taken]]) -> dict[str, list[Taken]]:
    """Without the prompts that some mode answered with fewer than two tokens: they have no time between tokens."""
    short = {taken.prompt for mode in answers.values() for taken in mode if taken.tokens < 2}
    return {mode: [t for t in taken if t.prompt not in short] for mode, taken in answers.items()}


def _theirs(port: int, max_tokens: int) -> Ask:
    def ask(prompt: Prompt, tokens: tuple[int, ...]) -> Taken:
        body = {"prompt": list(tokens), "n_predict": max_tokens, "temperature": 0.0, "cache_prompt": False}
        return from_timings(prompt, wire.post(port, "/completion", body)["timings"])

    return ask


def from_timings(prompt: Prompt, timings: Mapping[str, Any]) -> Taken:
    """What llama-server says of one answer: its decoding time begins with the first token."""
    tokens = int(timings["predicted_n"])
    passes = tokens - 1 - int(timings.get("draft_n_accepted", 0))
    return Taken(prompt.id, prompt.kind, tokens, passes, timings["prompt_ms"] / 1000, timings["predicted_ms"] / 1000)


# --- what is printed


def markdown(result: Result) -> str:
    """One table per kind of prompt, and what could not be measured."""
    drafted = f", drafted by {result.draft}" if result.draft else ""
    head = f"{result.target}{drafted}; at most {result.max_tokens} tokens at temperature 0; medians (p10–p90).\n"
    parts = [_kind(result, kind) for kind in result.kinds()]
    return "\n".join([head, *parts, *(f"{mode}: not measured, {why}.\n" for mode, why in result.missing.items())])


def _kind(result: Result, kind: str) -> str:
    best = result.best_peer(kind)
    columns = ["tokens per pass", "ms per token", "faster than own off"]
    head = [f"{kind}, {len(result.of(OFF, kind))} prompts", *columns, *([f"faster than {best}"] if best else [])]
    return report.table(head, [_mode(result, mode, kind, best) for mode in result.answers])


def _mode(result: Result, mode: str, kind: str, best: str | None) -> list[str]:
    taken = result.of(mode, kind)
    base = "llama.cpp off" if mode.startswith("llama.cpp") else OFF
    passes = sum(t.passes for t in taken)
    cells = [
        mode,
        f"{sum(t.tokens - 1 for t in taken) / max(1, passes):.2f}",
        report.spread(Spread.of([t.per_token_s for t in taken]), 1000),
        report.spread(result.faster(mode, base, kind), 1, "×") if base in result.answers else "",
    ]
    return [*cells, report.spread(result.faster(mode, best, kind), 1, "×")] if best else cells


def first_token(result: Result) -> str:
    """Time to first token of every mode of ours over speculation off, prompt by prompt."""
    by_mode: dict[str, list[float]] = defaultdict(list)
    for mode in (mode for mode in result.answers if mode in OURS):
        pairs = zip(result.answers[mode], result.answers[OFF], strict=True)
        by_mode[mode] = [on.first_s / off.first_s for on, off in pairs]
    rows = [[mode, report.spread(Spread.of(ratios))] for mode, ratios in by_mode.items()]
    return report.table(["first token", "÷ speculation off"], rows)
