"""What the four arms should measure, predicted before anything runs; and measured acceptance as one number.

Prefill is linear in the tokens it computes and decode in the tokens it writes:

    TTFT(h)  = d + (computed - 1) p         computed = prompt (1 - h), at least the last token
    decode   = (output - 1) d / S           S = E(k) / (1 + k (c + v)), 1 without speculation

with p and d the milliseconds per prefilled and per decoded token, h the share of the prompt found in the cache, and
E(k), S the formulas of `govern.formulas` (Leviathan et al., arXiv 2211.17192, with verification priced).  In this
model the switches are independent by construction: the milliseconds they save add up exactly, while the end-to-end
*ratios* do not multiply, by arithmetic alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from twostroke.errors import ConfigError
from twostroke.govern import formulas
from twostroke.study.arms import BOTH, FACTORIAL, NEITHER, Arm

STEP = 0.1  # by how much `sensitivity` changes each term


@dataclass(frozen=True, slots=True)
class Terms:
    """What a prediction is made from.  Raises `ConfigError` for a value out of range."""

    alpha: float  # probability that a draft is accepted, 0 to 1
    drafts: int  # per step
    draft_cost: float  # of one draft, in plain decode steps
    verify_cost: float  # of verifying one draft, in plain decode steps
    hit_rate: float  # share of the prompt that the cache holds, 0 to 1
    prompt_tokens: int
    output_tokens: int
    prefill_ms: float  # per prompt token that is computed
    decode_ms: float  # per token that is written without speculation

    def __post_init__(self) -> None:
        _within("alpha", self.alpha, 0, 1)
        _within("drafts", self.drafts, 0, formulas.MOST_DRAFTS)
        _within("hit_rate", self.hit_rate, 0, 1)
        for name in ("draft_cost", "verify_cost", "prefill_ms", "decode_ms"):
            _within(name, getattr(self, name), 0, math.inf)
        for name in ("prompt_tokens", "output_tokens"):
            _within(name, getattr(self, name), 1, math.inf)

    @property
    def tokens_per_step(self) -> float:
        return formulas.expected_tokens(self.alpha, self.drafts)

    @property
    def speedup(self) -> float:
        """Of decoding alone."""
        return formulas.speedup(self.alpha, self.draft_cost, self.verify_cost, self.drafts)


@dataclass(frozen=True, slots=True)
class Predicted:
    """One arm of a prediction; milliseconds per call."""

    arm: str
    ttft_ms: float
    decode_ms: float  # from the first token to the last

    @property
    def total_ms(self) -> float:
        return self.ttft_ms + self.decode_ms


@dataclass(frozen=True, slots=True)
class Weight:
    """How much one term matters: the change of the whole answer, both switches on, when it becomes a tenth better."""

    term: str
    ms: float  # negative: the answer is sooner


@dataclass(frozen=True, slots=True)
class Plan:
    """The prediction: its terms, the four arms, and the terms by weight, the heaviest first."""

    terms: Terms
    arms: tuple[Predicted, ...]
    weights: tuple[Weight, ...]

    def arm(self, name: str) -> Predicted:
        return next(arm for arm in self.arms if arm.arm == name)

    @property
    def cache_speedup(self) -> float:
        """Of the time to the first token."""
        return _ratio(self.arm("neither").ttft_ms, self.arm("cache").ttft_ms)

    @property
    def total_speedup(self) -> float:
        """Of the whole answer, both switches on against both off."""
        return _ratio(self.arm("neither").total_ms, self.arm("both").total_ms)


def plan(terms: Terms) -> Plan:
    """The four arms, and which term matters most."""
    return Plan(terms, tuple(predicted(terms, arm) for arm in FACTORIAL), sensitivity(terms))


def predicted(terms: Terms, arm: Arm) -> Predicted:
    """One arm, by the formulas above."""
    computed = max(1.0, terms.prompt_tokens * (1 - (terms.hit_rate if arm.reuses else 0)))
    decode = (terms.output_tokens - 1) * terms.decode_ms
    return Predicted(
        arm.name,
        ttft_ms=terms.decode_ms + (computed - 1) * terms.prefill_ms,
        decode_ms=decode / terms.speedup if arm.speculation else decode,
    )


def sensitivity(terms: Terms) -> tuple[Weight, ...]:
    """Each term a tenth better, alone: fewer misses and rejections, cheaper drafts, shorter texts, faster tokens."""
    before = predicted(terms, BOTH).total_ms
    better = {
        "alpha": replace(terms, alpha=1 - (1 - terms.alpha) * (1 - STEP)),
        "hit_rate": replace(terms, hit_rate=1 - (1 - terms.hit_rate) * (1 - STEP)),
        **{name: _less(terms, name) for name in ("draft_cost", "verify_cost", "prefill_ms", "decode_ms")},
        **{name: _less(terms, name) for name in ("prompt_tokens", "output_tokens")},
    }
    weights = (Weight(name, predicted(changed, BOTH).total_ms - before) for name, changed in better.items())
    return tuple(sorted(weights, key=lambda weight: -abs(weight.ms)))


def _less(terms: Terms, name: str) -> Terms:
    value = getattr(terms, name) * (1 - STEP)
    return replace(terms, **{name: max(1, value) if name.endswith("_tokens") else value})


def survival(accepted_per_position: Sequence[int], drafted_steps: int) -> tuple[float, ...]:
    """The share of steps whose draft was accepted up to each position.

    `drafted_steps` counts the steps that drafted.  Raises `ConfigError` where more drafts were accepted than steps ran.
    """
    most = max(accepted_per_position, default=0)
    if drafted_steps < most:
        raise ConfigError(f"{most} drafts were accepted at one position, in {drafted_steps} steps that drafted")
    return tuple(accepted / drafted_steps for accepted in accepted_per_position) if drafted_steps else ()


def alpha(survival: Sequence[float]) -> float | None:
    """One acceptance probability from survival by position; None where nothing was drafted.

    The maximum-likelihood estimate of a geometric distribution that is cut at the last position: of the drafts whose
    predecessors were all accepted, the share that was accepted too.  It assumes that every step drafted to the last
    position; steps that stop earlier by choice make it too low.
    """
    if not survival:
        return None
    tried = 1 + sum(survival[:-1])
    return sum(survival) / tried


def table(made: Plan) -> str:
    """The prediction for a terminal."""
    lines = [f"{'arm':<12} {'first token':>14} {'per token':>12} {'whole answer':>14} {'speed-up':>9}"]
    lines += [_row(made, arm) for arm in made.arms]
    return "\n".join([*lines, "", *_effects(made), "", *_weights(made)])


def _row(made: Plan, arm: Predicted) -> str:
    per_token = arm.decode_ms / (made.terms.output_tokens - 1) if made.terms.output_tokens > 1 else 0.0
    gain = _ratio(made.arm(NEITHER.name).total_ms, arm.total_ms)
    return f"{arm.arm:<12} {arm.ttft_ms:>11.1f} ms {per_token:>9.2f} ms {arm.total_ms:>11.1f} ms {gain:>8.2f}×"


def _effects(made: Plan) -> list[str]:
    terms = made.terms
    lines = [
        f"The cache makes the first token {made.cache_speedup:.2f} times as fast, with speculation or without.",
        f"Speculation makes decoding {terms.speedup:.2f} times as fast, on a hit or a miss "
        f"({terms.tokens_per_step:.2f} tokens per step).",
    ]
    return lines if terms.speedup >= 1 else [*lines, _hurts(terms)]


def _hurts(terms: Terms) -> str:
    needed = formulas.break_even_alpha(terms.draft_cost, terms.verify_cost)
    return f"Speculation would slow these answers down: it pays above an acceptance of {needed:.2f}, with fewer drafts."


def _weights(made: Plan) -> list[str]:
    head = f"A term that is a tenth better changes the whole answer ({made.arm(BOTH.name).total_ms:.1f} ms) by:"
    return [head, *(f"  {weight.term:<14} {weight.ms:>+9.1f} ms" for weight in made.weights)]


def _ratio(slow: float, fast: float) -> float:
    return slow / fast if fast else 1.0


def _within(name: str, value: float, least: float, most: float) -> None:
    if not (math.isfinite(value) and least <= value <= most):
        wanted = f"{least:g} or more" if most == math.inf else f"from {least:g} to {most:g}"
        raise ConfigError(f"{name} is {value}, must be {wanted}")
