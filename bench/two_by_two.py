"""The four cells {prefix cache off, on} × {speculation off, on}, really switched, on questions that share documents.

Each cell is an engine of its own over the same weights; every question goes through all four, one after another, in an
order that changes.  The tokens of the four answers must be identical: a difference ends the run.  What the accounts say
a phase saved is set beside what switching it off really costs.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from bench import report
from bench.embedded import Outcome, Session
from bench.rounds import Spread
from bench.workload import Prompt
from twostroke.assemble import Model, assemble
from twostroke.config import Settings

MAX_TOKENS = 128


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting of the two switches."""

    cache: bool
    speculation: bool

    @property
    def label(self) -> str:
        """As the table names it."""
        return f"cache {_word(self.cache)}, speculation {_word(self.speculation)}"


def _word(on: bool) -> str:
    return "on" if on else "off"


CELLS = tuple(Cell(cache, speculation) for cache, speculation in product((False, True), repeat=2))
PLAIN, SPECULATING, CACHING, BOTH = CELLS


@dataclass(frozen=True, slots=True)
class Result:
    """Every question's outcome in every cell, in the order asked."""

    model: str
    drafter: str
    questions: tuple[str, ...]
    outcomes: Mapping[Cell, Sequence[Outcome]]

    def spread(self, cell: Cell, of: Callable[[Outcome], float]) -> Spread:
        """A number of every outcome in one cell."""
        return Spread.of([of(outcome) for outcome in self.outcomes[cell]])

    def saved(self, cell: Cell) -> tuple[float, float, float, float]:
        """Milliseconds in all: prefill said to be saved, really; decode said to be saved, really.

        What was really saved by a switch is the phase's time in the cell in which that switch alone is off.
        """
        with_ = self.outcomes[cell]
        uncached = self.outcomes[replace(cell, cache=False)]
        plain = self.outcomes[replace(cell, speculation=False)]
        return (
            sum(o.phases.prefill.saved_ms for o in with_),
            sum(a.first_s - b.first_s for a, b in zip(uncached, with_, strict=True)) * 1000,
            sum(o.phases.decode.saved_ms for o in with_),
            sum(a.decode_s - b.decode_s for a, b in zip(plain, with_, strict=True)) * 1000,
        )


def run(model: Model, settings: Settings, prompts: Sequence[Prompt]) -> Result:
    """Ask everything in every cell.  Raises AssertionError where two cells answer with different tokens."""
    sessions = {cell: Session(assemble(model, _settings(settings, cell))) for cell in CELLS}
    outcomes: dict[Cell, list[Outcome]] = {cell: [] for cell in CELLS}
    order = list(CELLS)
    shuffle = random.Random(1).shuffle
    for cell in CELLS:  # pages touched, clocks and rates warm
        sessions[cell].run(sessions[cell].request(range(100, 164), 16, namespace="warm"))
    for prompt in prompts:
        tokens = model.codec.chat(prompt.messages)
        shuffle(order)
        for cell in order:
            outcomes[cell].append(_ask(sessions[cell], model, tokens))
        _same(prompt.id, [outcomes[cell][-1] for cell in CELLS])
        print(f"  {prompt.id}: {len(tokens)} tokens read", file=sys.stderr, flush=True)
    return Result(model.name, settings.speculate, tuple(prompt.id for prompt in prompts), outcomes)


def _settings(settings: Settings, cell: Cell) -> Settings:
    return replace(settings, prefix_cache=cell.cache, speculate=settings.speculate if cell.speculation else "off")


def _ask(session: Session, model: Model, tokens: Sequence[int]) -> Outcome:
    return session.run(session.request(tokens, MAX_TOKENS, stop_ids=model.codec.end_ids))


def _same(question: str, outcomes: Iterable[Outcome]) -> None:
    answers = {outcome.tokens for outcome in outcomes}
    if len(answers) != 1:
        raise AssertionError(f"{question}: the cells answered with {len(answers)} different token lists")


def markdown(result: Result) -> str:
    """The table, and the accounts beside the truth."""
    head = ["", "first token, ms", "per token, ms", "whole answer, s", "prompt tokens reused", "tokens per pass"]
    answers = sum(len(o.tokens) for o in result.outcomes[PLAIN])
    lines = [
        f"{result.model}, {len(result.questions)} questions about standard-library modules, drafter `{result.drafter}`;"
        f" medians (p10–p90). The {answers} answer tokens are identical in all four cells.\n",
        report.table(head, [_row(result, cell) for cell in CELLS]),
        report.table(
            ["milliseconds saved, all questions", "the accounts say", "really, switched off", "said ÷ real"],
            _truth(result),
        ),
    ]
    return "\n".join(lines)


def _row(result: Result, cell: Cell) -> list[str]:
    outcomes = result.outcomes[cell]
    prompt = sum(o.phases.prefill.prompt_tokens for o in outcomes)
    cached = sum(o.phases.prefill.cached_tokens for o in outcomes)
    return [
        cell.label,
        report.spread(result.spread(cell, lambda o: o.first_s), 1000),
        report.spread(result.spread(cell, lambda o: o.per_token_s), 1000),
        report.spread(result.spread(cell, lambda o: o.last_s)),
        f"{100 * cached / prompt:.0f} %",
        report.spread(result.spread(cell, lambda o: o.tokens_per_pass)),
    ]


def _truth(result: Result) -> list[list[str]]:
    prefill_said, prefill_real, _, _ = result.saved(CACHING)
    _, _, decode_said, decode_real = result.saved(SPECULATING)
    both = result.saved(BOTH)
    rows = {
        "prefix cache alone: prefill": (prefill_said, prefill_real),
        "speculation alone: decode": (decode_said, decode_real),
        "both on: prefill": both[:2],
        "both on: decode": both[2:],
    }
    return [[name, f"{said:.0f}", f"{real:.0f}", _over(said, real)] for name, (said, real) in rows.items()]


def _over(said: float, real: float) -> str:
    return report.number(said / real) if real > 0 else "—"
