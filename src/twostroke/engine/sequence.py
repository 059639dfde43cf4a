"""One continuation of one request: the tokens it knows and how many positions of them are computed.

Invariant: `computed <= len(tokens) - 1` whenever no step is under way, for the last known token's output is what comes
next.  A sequence knows when it is over; it knows no blocks but the table it is given, and nothing of its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence as Tokens
from dataclasses import dataclass, field

from twostroke.cache.table import Table
from twostroke.types import FinishReason, Request, Sampling, StopCondition


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

    def __post_init__(self) -> None:
        self.tokens = list(self.request.prompt)
        self.stop = self.request.stop() if self.request.stop else None

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
        try:
            stops = token in self.request.stop_ids or (self.stop is not None and self.stop(token))
        except Exception as error:  # the request's own condition: it ends its answer and nobody else's
            self.error = f"the stop condition failed: {error}"
            return FinishReason.ERROR
        if stops:
            return FinishReason.STOP
        return FinishReason.LENGTH if self.remaining <= 0 else None
