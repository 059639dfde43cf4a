"""Time to first token with speculation on over the same with it off, in pairs, where a draft model is loaded.

Two engines over the same weights are asked the same in turn, in both orders.  Each prompt is read in a namespace of its
own, which is a miss, and then again some times, which are hits: the target finds the prompt, the draft model has read
little of it or nothing.  Short prompts, which take little time, are asked more often.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench import report
from bench.embedded import Session
from bench.rounds import Spread, median_interval
from bench.workload import Prompt
from twostroke.assemble import Model, assemble
from twostroke.config import Settings

OFF, ON = "off", "auto"
ORDERS = ((OFF, ON), (ON, OFF))
SHORT = 512  # tokens up to which a prompt is short
TIMES = {"short": 8, "long": 1}  # that a prompt is read in each order and round
HITS = 4  # that follow a miss
TEXTS = tuple(f"{length}, {state}" for state in ("not cached", "cached") for length in TIMES)
ASKED = 256  # tokens that each request asks for: what is to come decides what a drafter reads
KV_MEMORY = 2**30  # of each engine: every prompt has its own namespace each time
HEARD = 4  # tokens after which it is given up


@dataclass(frozen=True, slots=True)
class Result:
    """Seconds to the first token by text and mode, pair by pair."""

    target: str
    draft: str | None
    seconds: Mapping[str, Mapping[str, Sequence[float]]]

    def ratios(self, text: str) -> list[float]:
        """On ÷ off of every pair."""
        pairs = zip(self.seconds[text][ON], self.seconds[text][OFF], strict=True)
        return [on / off for on, off in pairs]


def run(model: Model, settings: Settings, prompts: Sequence[Prompt], rounds: int) -> Result:
    """Every prompt in both orders, `rounds` times or more.  An interrupt keeps the pairs that are whole."""
    sessions = {mode: Session(assemble(model, settings)) for mode in (OFF, ON)}
    for mode, session in sessions.items():
        session.hear(session.request(range(100, 164), ASKED, speculate=mode), 32)  # pages touched, rates warm
    seconds: dict[str, dict[str, list[float]]] = {text: {OFF: [], ON: []} for text in TEXTS}
    try:
        for number in range(rounds * len(ORDERS)):
            for prompt in prompts:
                tokens = model.codec.chat(prompt.messages)
                length = "short" if len(tokens) <= SHORT else "long"
                for visit in range(TIMES[length]):
                    namespace = f"{prompt.id}, {number}, {visit}"
                    _pairs(sessions, ORDERS[(number + visit) % 2], tokens, namespace, length, seconds)
            print(f"  round {number + 1} of {rounds * len(ORDERS)}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        if not any(seconds[text][ON] for text in TEXTS):
            raise
        print("  interrupted; the pairs that are whole count", file=sys.stderr, flush=True)
    return Result(model.name, settings.draft, seconds)


def _pairs(
    sessions: Mapping[str, Session],
    order: Sequence[str],
    tokens: Sequence[int],
    namespace: str,
    length: str,
    seconds: Mapping[str, Mapping[str, list[float]]],
) -> None:
    """A miss and the hits after it."""
    for state in ("not cached", *["cached"] * HITS):
        taken = {mode: _first(sessions[mode], tokens, speculate=mode, namespace=namespace) for mode in order}
        for mode, first_s in taken.items():
            seconds[f"{length}, {state}"][mode].append(first_s)


def _first(session: Session, tokens: Sequence[int], **fields: object) -> float:
    return session.hear(session.request(tokens, ASKED, **fields), HEARD)


def markdown(result: Result) -> str:
    """One row for misses and one for hits, of short prompts and of long ones."""
    draft = f" with {result.draft} loaded" if result.draft else ""
    head = ["prompt", "pairs", "ms with speculation off", "auto ÷ off", "95 % of the median"]
    lines = [
        f"{result.target}{draft}: time to first token, medians (p10–p90).\n",
        report.table(head, [_row(result, text) for text in TEXTS if result.seconds[text][ON]]),
    ]
    return "\n".join(lines)


def _row(result: Result, text: str) -> list[str]:
    ratios = result.ratios(text)
    low, high = median_interval(ratios)
    off = report.spread(Spread.of(result.seconds[text][OFF]), 1000)
    return [text, str(len(ratios)), off, report.spread(Spread.of(ratios)), f"{low:.3f}–{high:.3f}"]
