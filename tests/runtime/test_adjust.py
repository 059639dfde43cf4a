"""Every row's logits change by its own history, in the order that `Sampling` names, and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.composition.features import ALLOWED, Toy
from twostroke.runtime.adjust import Adjuster, Logits, adjusts
from twostroke.types import Row, Sampling

WIDTH = 40


def row(drafts: Sequence[int] = (), history: bool = True, grammar: Toy | None = None, **sampling: Any) -> Row:
    return Row(
        sequence=0,
        start=5,
        tokens=(3, *drafts),
        drafts=len(drafts),
        samples=1 + len(drafts),
        blocks=(0,),
        sampling=Sampling(**sampling),
        prompt=(1, 2, 2) if history else (),
        written=(3, 4, 3) if history else (),
        grammar=grammar,
    )


def logits(lines: int) -> Logits:
    return np.random.default_rng(1).normal(size=(lines, WIDTH)).astype(np.float32)


def one_by_one(line: Logits, sampling: Sampling, prompt: Sequence[int], answer: Sequence[int]) -> Logits:
    """The definition, token by token in float32."""
    number, out, bias = np.float32, line.copy(), dict(sampling.bias)
    for token in range(WIDTH):
        value, count = line[token], list(answer).count(token)
        if token in prompt or count:
            factor = number(sampling.repetition_penalty)
            value = value / factor if value > 0 else value * factor
        if count:
            value = value - number(count) * number(sampling.frequency_penalty)
            value = value - number(sampling.presence_penalty)
        value = value + number(bias[token]) if token in bias else value
        banned = token in sampling.withheld and len(answer) < sampling.min_tokens
        out[token] = -np.inf if banned else value
    return out


@pytest.mark.parametrize(
    "sampling",
    [
        {"repetition_penalty": 1.7},
        {"presence_penalty": 0.3},
        {"frequency_penalty": -0.7},
        {"bias": ((2, 1.5), (30, -100.0))},
        {"min_tokens": 5, "withheld": (7, 9)},
        {"repetition_penalty": 0.6, "presence_penalty": 0.3, "frequency_penalty": 0.1, "bias": ((4, 0.1),)},
    ],
)
def test_each_draft_belongs_to_the_history_of_the_rows_after_it(sampling: dict[str, Any]) -> None:
    asked = row((4, 6, 4), **sampling)
    plain = logits(4)
    changed = plain.copy()
    assert Adjuster()(asked, changed) is None
    drafts = asked.tokens[1:]
    for i, line in enumerate(changed):
        wanted = one_by_one(plain[i], asked.sampling, asked.prompt, (*asked.written, *drafts[:i]))
        assert line.tobytes() == wanted.tobytes()
        alone, single = plain[i : i + 1].copy(), Adjuster()
        single(Row(0, 5, (3,), 0, 1, (0,), asked.sampling, 0, (), asked.prompt, (*asked.written, *drafts[:i])), alone)
        assert line.tobytes() == alone.tobytes(), "verifying is not decoding"


def test_a_grammar_masks_each_row_after_its_drafts() -> None:
    changed = logits(3)
    assert Adjuster()(row((1, 2), grammar=Toy()), changed) is None
    allowed = [np.flatnonzero(np.isfinite(line)).tolist() for line in changed]
    assert allowed == [list(ALLOWED[0]), list(ALLOWED[2]), list(ALLOWED[0])]


def test_a_grammar_that_fails_or_says_nonsense_is_told_and_not_raised() -> None:
    class Raises(Toy):
        def allowed(self, drafts: Sequence[int]) -> bytes:
            raise RuntimeError("too deep")

    class Short(Toy):
        def allowed(self, drafts: Sequence[int]) -> bytes:
            return b"\1" * 5

    assert Adjuster()(row(grammar=Raises()), logits(1)) == "the grammar failed: too deep"
    assert "cannot reshape" in str(Adjuster()(row((1,), grammar=Short()), logits(2)))


def test_a_draft_model_knows_no_history_and_fewer_tokens() -> None:
    changed = logits(1)
    plain = changed.copy()
    asked = row(history=False, repetition_penalty=2.0, min_tokens=9, withheld=(1,), bias=((3, 1.0), (WIDTH, 5.0)))
    assert Adjuster()(asked, changed) is None
    assert np.flatnonzero(changed != plain).tolist() == [3]


def test_rows_that_ask_for_nothing_are_left_alone() -> None:
    assert not adjusts(row(history=False, repetition_penalty=2.0))
    assert adjusts(row())
    assert adjusts(row(history=False, grammar=Toy()))


def test_what_is_kept_of_prompts_is_found_by_identity_and_bounded() -> None:
    adjust = Adjuster()
    for number in range(200):
        asked = Row(0, 2, (1,), 0, 1, (0,), Sampling(repetition_penalty=2.0), 0, (), (number % 5, 1), ())
        plain = logits(1)
        changed = plain.copy()
        adjust(asked, changed)
        assert np.flatnonzero(changed != plain).tolist() == sorted({number % 5, 1})
    assert len(adjust._prompts) <= 64
