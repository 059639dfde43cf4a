"""Speculation against speculation off, and the governor against constant depths, at acceptance rates that are set.

A model's own answers are recorded with speculation off; a synthetic drafter then replays them, right with given rates
by position.  Every mode is an engine of its own over the same weights, and all write the same answer by turns.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bench import report
from bench.embedded import Session
from bench.race import Writer, race
from bench.rounds import Spread
from bench.workload import Prompt
from twostroke.assemble import Model, assemble
from twostroke.config import Settings
from twostroke.engine.null import FixedLimits
from twostroke.speculate.lookup import LookupDrafter
from twostroke.speculate.synthetic import Synthetic, always, recorded

OUTPUT = 256  # tokens
QUESTIONS, CONTEXT = 8, 1024
DEPTHS = (1, 2, 3, 4, 6, 8, 12)  # constant ones, against which the governor is held
MOST = 16  # drafts that the governor may choose
CURVES: Mapping[str, tuple[float, ...]] = {  # acceptance by position; the last holds for all that follow
    "0": (0.0,),
    "0.3": (0.3,),
    "0.6": (0.6,),
    "0.8": (0.8,),
    "0.95": (0.95,),
    "0.95, 0.8, 0.5, 0.2, 0.05": (0.95, 0.8, 0.5, 0.2, 0.05),
}
OFF, GOVERNED = "off", "governed"
NAME = Synthetic.name

Answers = Mapping[tuple[tuple[int, ...], int], Sequence[int]]  # by prompt and choice


@dataclass(frozen=True, slots=True)
class Result:
    """Seconds per answer by curve and mode, aligned by prompt."""

    model: str
    taken: Mapping[str, Mapping[str, Sequence[float]]]

    def ratio(self, curve: str, mode: str, than: str) -> Spread:
        """mode ÷ than, answer by answer."""
        taken = self.taken[curve]
        return Spread.of([a / b for a, b in zip(taken[mode], taken[than], strict=True)])

    def total(self, curve: str, mode: str) -> float:
        """Seconds of all answers."""
        return sum(self.taken[curve][mode])

    def best(self, curve: str) -> str:
        """The constant depth with the least time over all answers; none at all is one, too."""
        return min([OFF, *map(constant, DEPTHS)], key=lambda mode: self.total(curve, mode))


def constant(depth: int) -> str:
    """The mode that always verifies so many drafts."""
    return f"k = {depth}"


def run(model: Model, settings: Settings, prompts: Sequence[Prompt], curves: Mapping[str, tuple[float, ...]]) -> Result:
    """Every prompt under every curve.  Raises AssertionError where a mode answers differently."""
    texts = [model.codec.chat(prompt.messages) for prompt in prompts]
    recorder = _writer(model, settings, OFF, _drafter({}, (0.0,)))
    answers = {(text, 0): _record(recorder, text) for text in texts}
    taken = {}
    for curve, rates in curves.items():
        # Engines of their own: what one curve taught or earned is not spent under the next.
        modes = {OFF: None, GOVERNED: None, **{constant(depth): depth for depth in DEPTHS}}
        writers = {
            mode: _writer(model, settings, mode, _drafter(answers, rates), depth) for mode, depth in modes.items()
        }
        taken[curve] = _under(writers, answers)
        print(f"  acceptance {curve}", file=sys.stderr, flush=True)
    return Result(model.name, taken)


def _drafter(answers: Answers, rates: tuple[float, ...]) -> LookupDrafter:
    return LookupDrafter(Synthetic(recorded(answers), always(*rates)), MOST)


def _writer(model: Model, settings: Settings, mode: str, drafter: LookupDrafter, depth: int | None = None) -> Writer:
    assembly = assemble(model, replace(settings, draft_tokens=MOST, max_sequences=1))
    assembly.drafter.drafters[NAME] = drafter
    if depth is not None:
        assembly.engine.governor = FixedLimits(draft_tokens=depth)
    return Writer(Session(assembly), {"speculate": OFF if mode == OFF else NAME, "prefix_cache": False})


def _under(writers: Mapping[str, Writer], answers: Answers) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {mode: [] for mode in writers}
    for seed, (prompt, _) in enumerate(answers):
        race(writers.values(), prompt, OUTPUT, seed)
        for mode, writer in writers.items():
            taken[mode].append(writer.decode_s)
    return taken


def _record(writer: Writer, prompt: Sequence[int]) -> Sequence[int]:
    race([writer], prompt, OUTPUT)
    return list(writer.written)


def markdown(result: Result) -> str:
    """One row per curve: the governor against off and against the best constant depth, and all depths against off."""
    head = ["acceptance by position", "governed ÷ off", "best constant", "governed ÷ best", *map(constant, DEPTHS)]
    answers = len(next(iter(result.taken.values()))[OFF])
    lines = [
        f"{result.model}: {answers} answers of {OUTPUT} tokens, one at a time. Time to write them; medians (p10–p90)"
        " over answers. The last columns are constant depths over off, all answers together.\n",
        report.table(head, [_row(result, curve) for curve in result.taken]),
    ]
    return "\n".join(lines)


def _row(result: Result, curve: str) -> list[str]:
    best = result.best(curve)
    off = result.total(curve, OFF)
    return [
        curve,
        report.spread(result.ratio(curve, GOVERNED, OFF)),
        best,
        report.spread(result.ratio(curve, GOVERNED, best)),
        *(report.number(result.total(curve, constant(depth)) / off) for depth in DEPTHS),
    ]
