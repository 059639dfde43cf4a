"""`twostroke whatif`: the arithmetic of speculation, as sentences or as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from twostroke.govern import formulas


def whatif(alpha: float, cost: float, verify: float, draft_tokens: int | None, *, as_json: bool) -> str:
    """What `draft_tokens` drafts a step gain, or the best number of them.  Raises `InvalidParameter`."""
    found = formulas.whatif(alpha, cost, verify, draft_tokens)
    if as_json:
        return json.dumps(asdict(found))
    drafts = found.best_k if draft_tokens is None else draft_tokens
    lines = [
        f"With {drafts} drafts a step: {found.expected_tokens:.3f} tokens a step, {found.speedup:.3f} times as fast.",
        f"Best number of drafts: {found.best_k}.",
        _break_even(found.break_even_alpha),
    ]
    return "\n".join(lines)


def _break_even(alpha: float) -> str:
    if alpha >= 1:
        return "Drafting never pays: a draft and its check take longer than a step."
    return f"Drafting pays where more than {alpha:.3f} of the drafts are accepted."
