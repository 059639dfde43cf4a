"""One continuation of one request: the tokens it knows and how many positions of them are computed.

Invariant: `computed <= len(tokens) - 1` whenever no step is under way, for the last known token's output is what comes
next.  A sequence knows when it is over; it knows no blocks but the table it is given, and nothing of its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence as Tokens
from dataclasses import dataclass, field

from twostroke.cache.table import Table
from twostroke.types import FinishReason, Grammar, Request, Sampling, StopCondition


@dataclass(eq=False, slots=True)
class Sequence:
    """Satisfies `SequenceView`.  `limit` is the length at which the answer must end."""

    id: int
    request: Request
    choice: int
    limit: int
    tokens: list[int] = field(init=False)
    computed: int = 0
    cached: int = 0  # target positions reused when it was first admitted
    table: Table | None = None  # while it runs
    served: int = 0  # the number of its last row
    admissions: int = 0
    finished: FinishReason | None = None
    error: str | None = None  # why it failed
    stop: StopCondition | None = field(init=False)
    grammar: Grammar | None = field(init=False)  # advanced by committed tokens alone, so it survives a preemption
    scored: int = 0  # prompt positions whose scores were told

    def __post_init__(self) -> None:
        self.tokens = list(self.request.prompt)
        self.stop = self.request.stop() if self.request.stop else None
        self.grammar = self.request.grammar() if self.request.grammar else None

    @property
    def prompt_length(self) -> int:
        return len(self.request.prompt)

    @property
    def remaining(self) -> int:
        """Tokens the answer may still grow by."""
        return self.limit - len(self.tokens)

    @property
    def pending(self) -> int:
        """Known positions that are not yet computed: at least 1."""
        return len(self.tokens) - self.computed

    @property
    def ready(self) -> bool:
        """All known tokens but the last are computed: the next row can verify drafts."""
        return self.table is not None and self.pending == 1

    @property
    def namespace(self) -> str:
        return self.request.namespace

    @property
    def prefix_cache(self) -> bool:
        return self.request.prefix_cache

    @property
    def priority(self) -> int:
        """Lower is admitted earlier."""
        return self.request.priority

    @property
    def unscored(self) -> int:
        """Prompt positions whose next token is still to be scored; one choice does it for all of them."""
        if self.request.prompt_logprobs is None or self.choice:
            return 0
        return self.prompt_length - 1 - self.scored

    @property
    def sampling(self) -> Sampling:
        return self.request.sampling

    @property
    def speculate(self) -> str | None:
        return self.request.speculate

    @property
    def draft_tokens(self) -> int | None:
        return self.request.draft_tokens

    @property
    def prediction(self) -> Tokens[int]:
        return self.request.prediction

    @property
    def depth(self) -> int:
        """How many drafts may be verified at once: the last token the answer may grow by is sampled, not drafted."""
        if self.request.speculate == "off":
            return 0
        most = self.remaining - 1
        asked = self.request.draft_tokens
        return max(0, most if asked is None else min(most, asked))

    def extend(self, kept: Tokens[int]) -> int:
        """Grow by the accepted tokens, one by one, until the answer is over; how many of them it took."""
        for count, token in enumerate(kept, 1):
            self.tokens.append(token)
            self.finished = self._verdict(token)
            if self.finished is not None:
                return count
        return len(kept)

    def _verdict(self, token: int) -> FinishReason | None:
        if token in self.request.stop_ids:
            return FinishReason.STOP
        try:
            stops = self.stop is not None and self.stop(token)
        except Exception as error:  # the request's own condition: it ends its answer and nobody else's
            return self.fail(f"the stop condition failed: {error}")
        try:
            complete = self.grammar is not None and _advanced(self.grammar, token)
        except Exception as error:  # likewise
            return self.fail(f"the grammar failed: {error}")
        if stops or complete:
            return FinishReason.STOP
        return FinishReason.LENGTH if self.remaining <= 0 else None

    def fail(self, error: str) -> FinishReason:
        """The answer is over because something of its own failed."""
        self.error, self.finished = error, FinishReason.ERROR
        return self.finished


def _advanced(grammar: Grammar, token: int) -> bool:
    """Whether the answer is complete with `token`."""
    grammar.advance(token)
    return grammar.finished
