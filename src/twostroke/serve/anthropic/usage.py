"""Token counts as Anthropic names them: disjoint, and adding up to the prompt exactly.

Reuse needs no breakpoints, so what was read is what the cache gave; what was computed counts as written up to the last
breakpoint, and as plain input beyond it.
"""

from __future__ import annotations

from twostroke.serve.anthropic.markers import LIFETIMES
from twostroke.serve.submission import Json
from twostroke.text.prompt import Prompt


def usage(prompt: Prompt, cached: int, written: int, thought: int, *, publishes: bool) -> Json:
    """The usage of an answer of `written` tokens, `thought` of which were thinking.

    `cached` positions were reused.  Without `publishes` (prefix_cache false) nothing is written to the cache.
    """
    short, long = _created(prompt, cached) if publishes else (0, 0)
    found: Json = {
        "input_tokens": len(prompt.ids) - cached - short - long,
        "cache_creation_input_tokens": short + long,
        "cache_read_input_tokens": cached,
        "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long},
        "output_tokens": written,
        "service_tier": "standard",
    }
    return found | ({"output_tokens_details": {"thinking_tokens": thought}} if thought else {})


def _created(prompt: Prompt, cached: int) -> tuple[int, int]:
    """Computed tokens in sections that end at a breakpoint of 5 minutes, and of an hour."""
    at, counts = cached, dict.fromkeys(LIFETIMES.values(), 0)
    for part in prompt.breakpoints:
        end = min(part.end, len(prompt.ids))
        if part.ttl_s is not None and end > at:
            counts[part.ttl_s] += end - at
            at = end
    return counts[LIFETIMES["5m"]], counts[LIFETIMES["1h"]]
