"""Why a prompt reused less than it could have of a response it is compared with.

Only what reaches the prompt can end a hit here: the tools, the reasoning effort, the input.  A prompt that goes on from
the other one and still missed lost its prefix to eviction or was never cached; no reason of OpenAI's says that.
"""

from __future__ import annotations

from collections.abc import Sequence

from twostroke.serve.responses.store import Stored
from twostroke.serve.submission import Json


def diagnostics(body: Json, prompt: Sequence[int], cached: int | None, other: Stored | None) -> Json:
    """`prompt_cache_diagnostics` of a finished response; `cached` is None where nothing is known of it."""
    if other is None:
        return {"type": "comparison_response_not_found"}
    if cached is None:
        return {"type": "unavailable"}
    common = next((i for i, (a, b) in enumerate(zip(prompt, other.prompt, strict=False)) if a != b), None)
    shared = min(len(prompt), len(other.prompt)) if common is None else common
    reusable = min(shared, len(prompt) - 1)  # the last token of a prompt is always computed
    if common is None:
        return {"type": "cache_hit"} if cached >= reusable else {"type": "unavailable"}
    missed = {"cache_missed_tokens": len(prompt) - cached, "comparison_reusable_tokens": reusable}
    return {"type": "cache_miss", "reason": _reason(body, other.body), **missed}


def _reason(body: Json, other: Json) -> str:
    if body["tools"] != other["tools"]:
        return "tools_changed"
    if body["reasoning"]["effort"] != other["reasoning"]["effort"]:
        return "reasoning_effort_changed"
    return "input_changed"
