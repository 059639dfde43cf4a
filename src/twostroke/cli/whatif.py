"""`twostroke whatif`: the arithmetic of speculation, as sentences or as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from twostroke.govern import formulas
from twostroke.govern.cost import CostCurves

USUAL = 4  # drafts over which the cost of verifying is averaged where no number was given


@dataclass(frozen=True, slots=True)
class Terms:
    """What a draft costs, in plain decode steps."""

    cost: float  # to make
    verify: float  # to check

    @classmethod
    def of(cls, curves: CostCurves, draft_tokens: int | None, cost: float | None, verify: float | None) -> Terms:
        """This machine's terms, except those that were given."""
        made, checked = formulas.measured_terms(curves, draft_tokens or USUAL)
        return cls(made if cost is None else cost, checked if verify is None else verify)


def whatif(alpha: float, terms: Terms, draft_tokens: int | None, *, as_json: bool) -> str:
    """What `draft_tokens` drafts a step gain, or the best number of them.  Raises `InvalidParameter`."""
    found = formulas.whatif(alpha, terms.cost, terms.verify, draft_tokens)
    if as_json:
        return json.dumps(asdict(found))
    drafts = found.best_k if draft_tokens is None else draft_tokens
    lines = [
        f"A draft costs {terms.cost:.3f} of a plain step to make and {terms.verify:.3f} to verify.",
        f"With {drafts} drafts a step: {found.expected_tokens:.3f} tokens a step, {found.speedup:.3f} times as fast.",
        f"Best number of drafts: {found.best_k}.",
        _break_even(found.break_even_alpha),
    ]
    return "\n".join(lines)


def _break_even(alpha: float) -> str:
    if alpha >= 1:
        return "Drafting never pays: a draft and its check take longer than a step."
    return f"Drafting pays where more than {alpha:.3f} of the drafts are accepted."
