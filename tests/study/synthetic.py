"""Studies whose truth is known: records, or bare outcomes where a thousand studies are needed.

Every time is a base of its call, times the factor of the arm, times the drift of the moment, times noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from twostroke.study.analysis.result import Phase
from twostroke.study.analysis.table import Outcomes
from twostroke.study.arms import ARMS, Arm
from twostroke.study.records import Record, ServerAccount

Noise = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]

PROMPT, TOKEN_MS, STEP_MS, TOKENS = 1000, 2.0, 20.0, 64
TOKENS_PER_STEP = 2


def normal(sd: float) -> Noise:
    return lambda rng, shape: rng.normal(0, sd, shape)


def heavy(scale: float) -> Noise:
    """Student's with 3 degrees of freedom: now and then ten times the usual."""
    return lambda rng, shape: scale * rng.standard_t(3, shape)


@dataclass(frozen=True)
class Truth:
    """What a synthetic server does.  A factor is time with the switch over time without it."""

    calls: int = 40
    repeats: int = 3
    calls_per_session: int = 1
    cache_on_prefill: float = 0.1
    speculation_on_decode: float = 0.5
    cache_on_decode: float = 1.0
    speculation_on_prefill: float = 1.0
    prefill_interaction: float = 1.0
    decode_interaction: float = 1.0
    different_prefix: float = 1.0
    again: float = 1.0
    noise: Noise = field(default_factory=lambda: normal(0.05))
    session_sd: float = 0.0  # of the logarithm of every effect, shared by the calls of a session
    drift: float = 1.0  # the factor of time at the end of the study
    randomised: bool = True
    tokens: int | None = None  # of every answer; None: between 8 and 128, by call

    def factor(self, arm: Arm, phase: Phase) -> float:
        """The arm's true time over that of `neither`."""
        cache, speculation = {
            "prefill": (self.cache_on_prefill, self.speculation_on_prefill),
            "decode": (self.cache_on_decode, self.speculation_on_decode),
        }[phase]
        together = {"prefill": self.prefill_interaction, "decode": self.decode_interaction}[phase]
        reuses = arm.reuses if phase == "prefill" else arm.cache and arm.shared
        factor = (cache if reuses else 1) * (speculation if arm.speculation else 1)
        factor *= together if reuses and arm.speculation else 1
        factor *= self.different_prefix if not arm.shared and phase == "prefill" else 1
        return factor * (self.again if arm.name == "neither-again" else 1)


@dataclass(frozen=True)
class Times:
    """By arm, (calls, repeats); `tokens` (calls,); `places` are the blocks' orders of sending."""

    ttft: Mapping[str, NDArray[np.float64]]
    tpot: Mapping[str, NDArray[np.float64]]
    tokens: NDArray[np.int64]
    places: Mapping[str, NDArray[np.int64]]

    def outcomes(self) -> dict[Phase, Outcomes]:
        total = {arm: self.ttft[arm] + self.tpot[arm] * (self.tokens[:, None] - 1) for arm in self.ttft}
        return {"prefill": self.ttft, "decode": self.tpot, "end to end": total}


def times(truth: Truth, seed: int) -> Times:
    rng = np.random.default_rng(seed)
    shape = (truth.calls, truth.repeats)
    base = rng.lognormal(0, 0.5, truth.calls)[:, None]
    session = np.arange(truth.calls) // truth.calls_per_session
    places = _places(truth, rng)
    last = len(ARMS) * truth.repeats * truth.calls
    ttft, tpot = {}, {}
    for arm in ARMS:
        moment = truth.drift ** (places[arm.name] / last)
        of_session = rng.normal(0, truth.session_sd, session[-1] + 1)[session][:, None] if arm.cache else 0.0
        ttft[arm.name] = (
            base * PROMPT * TOKEN_MS * truth.factor(arm, "prefill") * moment * np.exp(of_session)
        ) * np.exp(truth.noise(rng, shape))
        tpot[arm.name] = STEP_MS * truth.factor(arm, "decode") * moment * np.exp(of_session + truth.noise(rng, shape))
    tokens = rng.integers(8, 129, truth.calls) if truth.tokens is None else np.full(truth.calls, truth.tokens)
    return Times(ttft, tpot, tokens, places)


def _places(truth: Truth, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
    """Each repeat is a block: every arm, in an order of its own, sends every call."""
    places = {arm.name: np.zeros((truth.calls, truth.repeats), dtype=np.int64) for arm in ARMS}
    for repeat in range(truth.repeats):
        order = rng.permutation(len(ARMS)) if truth.randomised else np.arange(len(ARMS))
        for at, arm in enumerate(order):
            first = (repeat * len(ARMS) + at) * truth.calls
            if not truth.randomised:  # each arm sends all of its repeats before the next one starts
                first = (at * truth.repeats + repeat) * truth.calls
            places[ARMS[arm].name][:, repeat] = first + np.arange(truth.calls)
    return places


def records(truth: Truth, seed: int = 1, load: str = "1", accounts: bool = True) -> list[Record]:
    """A whole study of an honest server."""
    measured = times(truth, seed)
    return [
        _record(truth, measured, arm, call, repeat, load, accounts)
        for arm in ARMS
        for call in range(truth.calls)
        for repeat in range(truth.repeats)
    ]


def _record(truth: Truth, measured: Times, arm: Arm, call: int, repeat: int, load: str, accounts: bool) -> Record:
    ttft = float(measured.ttft[arm.name][call, repeat])
    decode = float(measured.tpot[arm.name][call, repeat]) * (int(measured.tokens[call]) - 1)
    tokens, place = int(measured.tokens[call]), int(measured.places[arm.name][call, repeat])
    accepted = tokens // 2 if arm.speculation else 0
    cached = int(PROMPT * 0.9) if arm.reuses else 0
    account = ServerAccount(
        queue_ms=0.1 * ttft,
        prefill_ms=0.85 * ttft,
        prefill_saved_ms=ttft * (1 / truth.cache_on_prefill - 1) if arm.reuses else 0.0,
        decode_ms=decode,
        decode_saved_ms=decode * (1 / truth.speculation_on_decode - 1) if arm.speculation else 0.0,
        draft_ms=0.01 * decode if arm.speculation else 0.0,
        steps=tokens - accepted,
    )
    return Record(
        call=f"c{call}",
        session=f"s{call // truth.calls_per_session}",
        arm=arm.name,
        repeat=repeat,
        load=load,
        place=place,
        sent_s=float(place) * 10,
        ttft_ms=ttft,
        total_ms=ttft + decode,
        gaps_ms=(decode / (tokens - 1),) * (tokens - 1) if tokens > 1 else (),
        output_tokens=tokens,
        text=f"the answer to c{call}",
        finish_reason="length",
        prompt_tokens=PROMPT,
        cached_tokens=cached,
        drafted=accepted * 2,
        accepted=accepted,
        accepted_per_position=(accepted,) if arm.speculation else (),
        account=account if accounts else None,
    )
