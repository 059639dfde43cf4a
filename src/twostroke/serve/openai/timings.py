"""What an answer took in time, as llama.cpp and vLLM tell it."""

from __future__ import annotations

from itertools import pairwise

from twostroke.serve.submission import Json
from twostroke.types import Phases


def timings(phases: Phases) -> Json:
    """The `timings` object of llama.cpp; the draft counts are there where drafts were verified."""
    prefill, decode = phases.prefill, phases.decode
    found = {
        "cache_n": prefill.cached_tokens,
        **_speed("prompt", prefill.computed_tokens, prefill.ms),
        **_speed("predicted", decode.output_tokens, decode.ms),
    }
    return found | ({"draft_n": decode.drafted, "draft_n_accepted": decode.accepted} if decode.drafted else {})


def _speed(name: str, tokens: int, ms: float) -> Json:
    return {
        f"{name}_n": tokens,
        f"{name}_ms": round(ms, 3),
        f"{name}_per_token_ms": round(ms / tokens, 3) if tokens else 0.0,
        f"{name}_per_second": round(1000 * tokens / ms, 3) if ms > 0 else 0.0,
    }


def metrics(phases: Phases) -> Json:
    """The `metrics` object of vLLM, field by field; `speculative_decoding` is null where nothing was drafted."""
    decode = phases.decode
    return {
        "time_to_first_token_ms": round(phases.ttft_ms, 3),
        "generation_time_ms": round(decode.ms, 3),
        "queue_time_ms": round(phases.queue_ms, 3),
        "mean_itl_ms": round(phases.tpot_ms, 3),
        "tokens_per_second": round(1000 / phases.tpot_ms, 3) if phases.tpot_ms > 0 else 0.0,
        "speculative_decoding": speculative_decoding(phases) if decode.drafted_steps else None,
    }


def speculative_decoding(phases: Phases) -> Json:
    """vLLM's account of one answer's drafts; `acceptance_histogram[j]` counts steps that kept j drafts."""
    decode = phases.decode
    reached = (decode.drafted_steps, *decode.accepted_per_position, 0)  # steps that kept at least j drafts
    return {
        "mean_acceptance_length": round(1 + decode.accepted / decode.drafted_steps, 6),
        "draft_acceptance_rate": round(decode.accepted / decode.drafted, 6),
        "acceptance_histogram": [here - beyond for here, beyond in pairwise(reached)],
        "num_spec_steps": decode.drafted_steps,
        "num_accepted_draft_tokens": decode.accepted,
        "num_draft_tokens": decode.drafted,
        "num_spec_tokens": len(decode.accepted_per_position),
    }
