"""What an analysis says: frozen values that a report prints without computing anything.

`dataclasses.asdict(analysis)` is the `results.json` of a study; these docstrings are its schema.  Times are
milliseconds.  A ratio is always time over time: 0.25 means four times as fast, and 1 means no difference.  Whatever
could not be measured is None, and a finding says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Phase = Literal["prefill", "decode", "end to end"]
Kind = Literal["independent", "help", "fight", "inconclusive", "invalid"]
Severity = Literal["invalid", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % and 90 % intervals, and what it was estimated from."""

    value: float  # a ratio (geometric mean over prompts), or milliseconds (mean over prompts)
    low: float  # 95 %
    high: float
    low_90: float  # within the margin of equivalence: "no difference that matters" is shown at 5 %
    high_90: float
    low_97_5: float  # for the overall verdict, which tests two phases
    high_97_5: float
    standard_error: float  # of the value, or of its logarithm where the value is a ratio
    prompts: int
    pairs: int  # prompts × repeats that every arm of the comparison answered
    clusters: int  # what was resampled: sessions, or prompts where there are too few sessions


@dataclass(frozen=True, slots=True)
class Needed:
    """How many requests an inconclusive comparison would take, if the spread and the value stay what they are."""

    purpose: Literal["equivalence", "decision", "interval"]  # "interval": too few prompts for any interval
    prompts: int
    repeats: int
    requests_per_arm: int  # prompts × repeats
    requests: int  # over the four arms


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison shows, in one word and in one sentence."""

    kind: Kind
    sentence: str
    needed: Needed | None = None  # only where inconclusive
    negligible: bool = False  # independent, though the 95 % interval excludes no difference: real, but within ±10 %


@dataclass(frozen=True, slots=True)
class Effect:
    """What one switch does to one phase, the other switch being off or on: time with it over time without it."""

    switch: Literal["cache", "speculation"]
    phase: Phase
    other_on: bool  # whether the other switch was on
    arm: str  # numerator
    over: str  # denominator
    expected: bool  # cache on prefill, speculation on decode; the others are cross effects
    ratio: Estimate | None
    difference_ms: Estimate | None  # `arm` less `over`
    below_noise_floor: bool  # no farther from 1 than the same arm may be from itself
    valid: bool  # False where an arm of it, or a control, is invalid
    sentence: str


@dataclass(frozen=True, slots=True)
class Interaction:
    """Whether the switches change each other's effect on one phase.

    `ratio` is (both / cache) / (speculation / neither), `difference_ms` is (both - cache) - (speculation - neither).
    Above 1, or above 0, the switches fight.  Prefill and decode are judged by the ratio.  End to end is judged by the
    difference: see `twostroke.study.analysis.interaction` for the reason.
    """

    phase: Phase
    ratio: Estimate | None
    difference_ms: Estimate | None
    below_noise_floor: bool
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Control:
    """A comparison that must show nothing."""

    name: Literal["different-prefix", "neither-again"]
    phase: Phase
    ratio: Estimate | None  # over the arm `neither`
    passed: bool | None  # None: not measured
    sentence: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something the reader must know.  "invalid": what depends on `subject` is not to be used."""

    severity: Severity
    subject: str  # an arm's name, or "study"
    sentence: str


@dataclass(frozen=True, slots=True)
class Distribution:
    """A sample in figures; `curve` holds the percentiles 0, 5, ..., 100."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    curve: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Stages:
    """Where an arm's time went: means over its requests, in milliseconds; the known ones add up to `total_ms`.

    `source` "server": from the server's accounts.  "client": `prefill_ms` is the time to the first token, which has
    queueing in it, `decode_ms` is the rest, and `queue_ms` and `draft_ms` are None.
    """

    source: Literal["server", "client"]
    queue_ms: float | None
    prefill_ms: float
    draft_ms: float | None
    decode_ms: float  # without drafting
    other_ms: float  # network, parsing and rendering: what the client waited beyond the server's account
    total_ms: float


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What became of the drafts of one arm."""

    arm: str
    drafted: int
    accepted: int
    rate: float | None  # accepted / drafted
    tokens_per_step: float | None  # output tokens over target passes that emitted tokens
    by_position: tuple[float, ...]  # share of the target passes in which the draft at that position was accepted


@dataclass(frozen=True, slots=True)
class WarmCold:
    """Acceptance on cache hits (arm `both`) beside acceptance without a cache (arm `speculation`)."""

    cold: Acceptance | None
    warm: Acceptance | None
    tokens_per_step_ratio: Estimate | None  # warm over cold, paired by prompt


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """One arm under one load."""

    arm: str
    sent: int
    failed: int
    errors: tuple[tuple[str, int], ...]  # each reason and how often, most frequent first
    missing: int  # calls that another arm has in the same block and this one has not
    valid: bool
    prompt_tokens: int | None  # sums
    cached_tokens: int | None
    cached_share: float | None
    output_tokens: int
    drafted: int | None
    accepted: int | None
    ttft_ms: Distribution | None
    tpot_ms: Distribution | None
    itl_ms: Distribution | None  # between chunks of an answer
    total_ms: Distribution | None
    tokens_per_s: float | None  # output tokens per second in which at least one request of the arm was in flight
    stages: Stages | None


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """The answers of one arm beside those of `neither`, to the same calls in the same blocks."""

    arm: str
    compared: int
    differing: int
    differing_share: float | None
    differing_lengths: int  # of these, answers with another number of tokens


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the accounts say was saved, beside what really switching off shows, summed over the calls."""

    phase: Phase  # "prefill" or "decode"
    arm: str  # the arm whose accounts are checked, or "all": both arms of the phase together
    over: str  # the arm with that switch off
    claimed_ms: float
    measured_ms: float
    error_percent: Estimate | None  # 100 × (claimed / measured - 1); None where the measured saving may be zero
    pairs: int
    sentence: str


@dataclass(frozen=True, slots=True)
class LoadAnalysis:
    """Everything about one load.  Effects, interactions and the rest are in a fixed order, absent ones included."""

    load: str
    clustered_by: Literal["session", "call"]
    repeats: int
    valid: bool
    overall: Verdict
    arms: tuple[ArmSummary, ...]
    effects: tuple[Effect, ...]
    interactions: tuple[Interaction, ...]  # prefill, decode, end to end
    controls: tuple[Control, ...]
    outputs: tuple[OutputComparison, ...]
    acceptance: WarmCold
    calibration: tuple[Calibration, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """A study's results.  `headline` is one request at a time: under load a shorter prefill also helps neighbours."""

    seed: int
    resamples: int
    margin: float  # 0.1: two times are equivalent within [1 / 1.1, 1.1]
    headline: LoadAnalysis
    loaded: tuple[LoadAnalysis, ...]
