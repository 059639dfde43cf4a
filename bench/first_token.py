"""Time to first token with speculation on over the same with it off, in pairs, where a draft model is loaded.

Two engines over the same weights are asked the same in turn, in both orders.  Each prompt is read in a namespace of its
own, which is a miss, and then again, which is a hit: the target finds the prompt, the draft model has not read it yet.
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
TEXTS = ("not cached", "cached")
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
    """Every prompt `rounds` times in both orders.  An interrupt keeps the pairs that are whole."""
    sessions = {mode: Session(assemble(model, settings)) for mode in (OFF, ON)}
    for mode, session in sessions.items():
        session.hear(session.request(range(100, 164), ASKED, speculate=mode), 32)  # pages touched, rates warm
    seconds: dict[str, dict[str, list[float]]] = {text: {OFF: [], ON: []} for text in TEXTS}
    try:
        for number in range(rounds * len(ORDERS)):
            for prompt in prompts:
                tokens, namespace = model.codec.chat(prompt.messages), f"{prompt.id}, {number}"
                _pair(sessions, ORDERS[number % 2], tokens, namespace, seconds)
            print(f"  round {number + 1} of {rounds * len(ORDERS)}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        if not seconds[TEXTS[-1]][ON]:
            raise
        print("  interrupted; the pairs that are whole count", file=sys.stderr, flush=True)
    return Result(model.name, settings.draft, seconds)


def _pair(
    sessions: Mapping[str, Session],
    order: Sequence[str],
    tokens: Sequence[int],
    namespace: str,
    seconds: Mapping[str, Mapping[str, list[float]]],
) -> None:
    for text in TEXTS:
        taken = {mode: _first(sessions[mode], tokens, speculate=mode, namespace=namespace) for mode in order}
        for mode, first_s in taken.items():
            seconds[text][mode].append(first_s)


def _first(session: Session, tokens: Sequence[int], **fields: object) -> float:
    return session.hear(session.request(tokens, ASKED, **fields), HEARD)


def markdown(result: Result) -> str:
    """One row for misses and one for hits."""
    draft = f" with {result.draft} loaded" if result.draft else ""
    head = ["prompt", "pairs", "ms with speculation off", "auto ÷ off", "95 % of the median"]
    lines = [
        f"{result.target}{draft}: time to first token, medians (p10–p90).\n",
        report.table(head, [_row(result, text) for text in TEXTS]),
    ]
    return "\n".join(lines)


def _row(result: Result, text: str) -> list[str]:
    ratios = result.ratios(text)
    low, high = median_interval(ratios)
    off = report.spread(Spread.of(result.seconds[text][OFF]), 1000)
    return [text, str(len(ratios)), off, report.spread(Spread.of(ratios)), f"{low:.3f}–{high:.3f}"]
