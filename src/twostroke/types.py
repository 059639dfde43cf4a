"""The values that cross borders, all frozen.

Tokens and blocks are integers, times are seconds unless the name says otherwise, and positions count from the first
prompt token.  Nothing here knows how a token is computed, cached, guessed or sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class FinishReason(StrEnum):
    """Why a sequence ended.  Every accepted request ends in exactly one of these per choice."""

    STOP = "stop"  # an end-of-text token or a stop condition
    LENGTH = "length"  # max_tokens or the context
    ABORT = "abort"  # the client went away
    ERROR = "error"  # we failed


class StopCondition(Protocol):
    """Decides, token by token, whether an answer is over.  Stateful, one per sequence, fed committed tokens only."""

    def __call__(self, token: int) -> bool:
        """Whether the answer ends with `token` (which is then its last one)."""
        ...


class Grammar(Protocol):
    """Which tokens may come next in one answer.  Stateful, one per sequence; only `advance` moves it for good."""

    @property
    def finished(self) -> bool:
        """Whether the answer is complete: nothing but an end of text may follow."""
        ...

    def advance(self, token: int) -> None:
        """`token` was committed.  Raises ValueError where the grammar does not allow it."""
        ...

    def allowed(self, drafts: Sequence[int]) -> bytes:
        """`1 + len(drafts)` masks, end to end: the tokens allowed after drafts[:i].

        A mask has one bit per token id, in little-endian 32-bit words, the lowest bit first.  Where drafts leave the
        grammar, later masks are unspecified: no such row can be accepted.
        """
        ...

    def valid(self, drafts: Sequence[int]) -> int:
        """How many leading drafts the grammar allows."""
        ...

    def forced(self) -> tuple[int, ...]:
        """The tokens that must come next, as far as there is no choice."""
        ...


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the target chooses a token.  Greedy at temperature 0.

    The draw is `argmax(logits / temperature + gumbel(seed, choice, position, token))` over the candidates that
    top-k, then top-p, then min-p leave; `position` is the absolute position of the token being chosen.  Before that,
    in this order: penalties and bias change the logits (repetition divides a positive and multiplies a negative logit
    of a token of prompt or answer; presence and frequency subtract for a token of the answer; bias adds), then tokens
    that are withheld or outside the grammar are removed.
    """

    temperature: float = 0.0
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    logprobs: int | None = None  # how many alternatives to report beside the chosen token; None: report nothing
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    bias: tuple[tuple[int, float], ...] = ()  # (token id, added to its logit), by id
    min_tokens: int = 0  # tokens of the answer before which none of `withheld` may be chosen
    withheld: tuple[int, ...] = ()

    @property
    def penalizes(self) -> bool:
        """Whether tokens of the prompt or the answer change the logits."""
        return bool(self.presence_penalty or self.frequency_penalty or self.repetition_penalty != 1.0)

    def reads_history(self, written: int) -> bool:
        """Whether the choice depends on the tokens before it, other than through the model, after `written` of them."""
        return self.penalizes or (bool(self.withheld) and written < self.min_tokens)


@dataclass(frozen=True, slots=True)
class Retention:
    """A wish that the first `tokens` positions of a prompt stay cached for `ttl_s` seconds; eviction orders by it."""

    tokens: int
    ttl_s: float


@dataclass(frozen=True, slots=True)
class Request:
    """What the client asked, already tokenized and judged."""

    id: str
    prompt: tuple[int, ...]
    max_tokens: int
    sampling: Sampling = Sampling()
    choices: int = 1  # independent continuations; choice c draws with its own noise
    stop_ids: frozenset[int] = frozenset()  # ends the answer; kept in the token list, not delivered as text
    stop: Callable[[], StopCondition] | None = None  # makes one condition per sequence
    grammar: Callable[[], Grammar] | None = None  # makes one grammar per sequence
    prompt_logprobs: int | None = None  # alternatives to report for each prompt token; reads nothing from the cache
    retain: tuple[Retention, ...] = ()
    priority: int = 0  # lower is admitted earlier
    namespace: str = ""  # who may share KV and draft history with whom
    prefix_cache: bool = True  # may read and publish prefixes
    speculate: str | None = None  # a drafter's name, "off", or None for the server's choice
    draft_tokens: int | None = None  # at most so many drafts a step; None for the server's choice
    prediction: tuple[int, ...] = ()  # text the client expects, as tokens; a draft source only, never part of a key
    arrived_s: float = 0.0  # by the server's clock


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy the first `tokens` cells of block `source` into block `target`, before anything in the step is computed."""

    source: int
    target: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Row:
    """A sequence's share of one step: compute `tokens` at positions start…start+len(tokens).

    The last `drafts` of `tokens` are guesses.  `samples` is how many trailing positions to sample after: 0 while a
    prefill chunk stops short of the last known token, else `1 + drafts`.

    `prompt` and `written` are the sequence's prompt and the answer so far, where its sampling reads them: the history
    of the i-th sample is prompt + written + drafts[:i].  Both are empty where nothing reads them.
    """

    sequence: int  # unique for the life of the engine
    start: int
    tokens: tuple[int, ...]
    drafts: int
    samples: int
    blocks: tuple[int, ...]  # the target group's block table, covering start + len(tokens) positions
    sampling: Sampling
    choice: int = 0
    copies: tuple[Copy, ...] = ()
    prompt: tuple[int, ...] = ()
    written: tuple[int, ...] = ()
    grammar: Grammar | None = None  # stands after prompt + written; whoever executes the row asks, never advances
    scores: tuple[int, ...] = ()  # the known next tokens after the row's first positions, whose logprobs are wanted
    alternatives: int = 0  # how many to report beside each of `scores`


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """The log-probability (natural log, of the unmodified distribution) of one token."""

    token: int
    logprob: float


@dataclass(frozen=True, slots=True)
class Logprobs:
    """What was chosen at one position, and the most likely alternatives, best first."""

    chosen: TokenLogprob
    top: tuple[TokenLogprob, ...]


@dataclass(frozen=True, slots=True)
class Picks:
    """The target's own choices for one `Row`: `row.samples` of them, in order of position."""

    tokens: tuple[int, ...]
    logprobs: tuple[Logprobs, ...] = ()  # same length as tokens when asked for, else empty
    scores: tuple[Logprobs, ...] = ()  # of `row.scores`
    error: str | None = None  # why the row's own grammar failed: its tokens mean nothing, other rows' are right


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a drafter suggests for one sequence.

    `survival[i]` estimates the probability that drafts 0…i are all accepted (not increasing).  An empty proposal
    says why in `reason`.
    """

    sequence: int
    tokens: tuple[int, ...] = ()
    survival: tuple[float, ...] = ()
    source: str = ""  # the drafter's name, for the accounts
    reason: str = ""  # "no_match", "catching_up", "disabled", "tail" … when there are no tokens


@dataclass(frozen=True, slots=True)
class Limits:
    """What the next step may do; the governor's only output."""

    tokens: int = 512  # new positions computed in the step, drafts included
    sequences: int = 16  # running at once
    drafts: Mapping[int, Proposal] = field(default_factory=dict)  # by sequence id, already cut to the admitted depth


@dataclass(frozen=True, slots=True)
class SequenceReport:
    """What one step did for one sequence."""

    sequence: int
    request: str
    choice: int
    namespace: str
    start: int
    computed: int  # positions computed, rejected drafts included
    context: int  # positions attended by the last row: start + computed
    drafted: int
    accepted: int  # drafts that were kept and delivered
    source: str  # the drafter whose proposal was verified, "" if none
    emitted: tuple[int, ...]  # tokens the answer grew by
    logprobs: tuple[Logprobs, ...]
    finished: FinishReason | None
    reason: str  # why nothing was drafted, "" where drafts were verified or none could be
    scores: tuple[Logprobs, ...] = ()  # of the prompt tokens that this step scored, from the second one on
    error: str | None = None  # why it failed, where `finished` is ERROR


@dataclass(frozen=True, slots=True)
class Admission:
    """A sequence started to run (or runs again after a preemption)."""

    sequence: int
    request: str
    choice: int
    namespace: str
    prompt_tokens: int
    cached: int  # positions reused, exact to the token
    miss_reason: str | None  # why `cached` is not more; None when all but the last prompt token was reused
    resumed: bool  # after a preemption: not a hit of the client's


@dataclass(frozen=True, slots=True)
class End:
    """A sequence left without a row in this step: aborted, or failed."""

    sequence: int
    request: str
    choice: int
    reason: FinishReason
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """One step, for everyone who watches: accounts, metrics, logs, drafters that learn, the host that delivers."""

    started_s: float
    planned_s: float
    executed_s: float
    ended_s: float  # after commit; times by the engine's clock
    rows: tuple[SequenceReport, ...]
    admitted: tuple[Admission, ...] = ()
    preempted: tuple[int, ...] = ()
    ended: tuple[End, ...] = ()
    waiting: int = 0
    running: int = 0
    kv_used: int = 0  # positions held by running sequences or published, target group
    kv_capacity: int = 0  # positions
    evicted: int = 0  # positions evicted from the index in this step
    draft_s: float = 0.0  # spent on proposing the drafts that this step could verify


@dataclass(frozen=True, slots=True)
class PrefillPhase:
    """Reading the prompt: what was reused and what was computed."""

    prompt_tokens: int
    cached_tokens: int
    computed_tokens: int
    ms: float
    own_ms: float
    saved_ms: float
    miss_reason: str | None


@dataclass(frozen=True, slots=True)
class DecodePhase:
    """Writing the answer: what was drafted and what was kept."""

    output_tokens: int
    steps: int  # target passes that emitted tokens for this request, the first included
    drafted: int
    accepted: int
    accepted_per_position: tuple[int, ...]
    ms: float
    own_ms: float
    draft_ms: float
    saved_ms: float
    undrafted: Mapping[str, int] = field(default_factory=dict)  # steps without drafts, by reason
    drafted_steps: int = 0  # steps in which drafts were verified
    drafted_by: Mapping[str, int] = field(default_factory=dict)  # `drafted` by the drafter's name
    accepted_by: Mapping[str, int] = field(default_factory=dict)  # `accepted` by the drafter's name


@dataclass(frozen=True, slots=True)
class Phases:
    """The account of one choice of one request (DESIGN section 7)."""

    queue_ms: float
    ttft_ms: float
    tpot_ms: float
    prefill: PrefillPhase
    decode: DecodePhase


@dataclass(frozen=True, slots=True)
class Delta:
    """Tokens that a request's choice grew by, as they are committed; none while only the prompt is scored."""

    choice: int
    tokens: tuple[int, ...]
    logprobs: tuple[Logprobs, ...] = ()
    scores: tuple[Logprobs, ...] = ()  # of prompt tokens, where asked for, from the second one on
    cached: int | None = None  # prompt tokens reused, with the first tokens of a choice


@dataclass(frozen=True, slots=True)
class Done:
    """The one terminal event of a request's choice."""

    choice: int
    reason: FinishReason
    phases: Phases | None
    error: str | None = None


Event = Delta | Done
