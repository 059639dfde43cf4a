"""What one step decides, as pure functions and values.

Acceptance is here once, for the whole codebase; so are the sharing out of a draft allowance and the value that `plan`
hands to `commit`.  Nothing here keeps state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twostroke.types import Admission, End, Row


def accept(drafts: Sequence[int], samples: Sequence[int]) -> tuple[int, ...]:
    """`samples[i]` is the target's own choice after `drafts[:i]`; keep them up to the first disagreement.

    Exact at any temperature because the choice is drawn with noise keyed by seed, choice, position and token: what is
    kept is what would have been drawn without drafts.  `len(samples) == len(drafts) + 1`.
    """
    agreed = next((i for i, draft in enumerate(drafts) if draft != samples[i]), len(drafts))
    return tuple(samples[: agreed + 1])


def allot(wishes: Mapping[int, int], allowance: int) -> dict[int, int]:
    """Share `allowance` draft tokens out by level: nobody gets more than asked, and who asks little is served whole."""
    granted: dict[int, int] = {}
    waiting = len(wishes)
    for sequence, wish in sorted(wishes.items(), key=lambda item: item[1]):
        granted[sequence] = min(wish, allowance // waiting)
        allowance -= granted[sequence]
        waiting -= 1
    return granted


@dataclass(frozen=True, slots=True)
class Plan:
    """What a step will do, and what changed while it was planned."""

    rows: tuple[Row, ...]
    admitted: tuple[Admission, ...] = ()
    preempted: tuple[int, ...] = ()
    ended: tuple[End, ...] = ()
