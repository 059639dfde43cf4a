"""What an answer took, in the fields clients already read: OpenAI's and DeepSeek's counts.

A prompt, and what was reused of it, count once for all its continuations.
"""

from __future__ import annotations

from collections.abc import Sequence

from twostroke.serve.accounts import thought_tokens
from twostroke.serve.answer import Choice
from twostroke.serve.service import Text
from twostroke.serve.submission import Json

NOTHING_PUBLISHED = frozenset({"disabled", "fault"})  # reasons of a miss after which the prompt is not kept


def counts(choices: Sequence[Choice]) -> Json:
    """The three counts that are known at any time."""
    prompt = sum(len(choice.request.prompt) for choice in firsts(choices))
    written = sum(choice.written for choice in choices)
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}


def usage(choices: Sequence[Choice], text: Text, *, explicit: bool) -> Json:
    """The usage of choices that have ended.  `explicit`: only explicit breakpoints count as written."""
    found = counts(choices)
    cached = sum(_cached(choice) for choice in firsts(choices))
    written = sum(cache_write_tokens(choice, explicit=explicit) for choice in firsts(choices))
    predicted = sum(len(choice.request.prediction) for choice in choices)
    kept = sum(choice.phases.decode.accepted_by.get("prediction", 0) for choice in choices if choice.phases)
    return found | {
        "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "completion_tokens_details": {
            "accepted_prediction_tokens": kept,
            "rejected_prediction_tokens": max(predicted - kept, 0),
            "reasoning_tokens": sum(thought_tokens(choice, text) for choice in choices),
        },
        "prompt_cache_hit_tokens": cached,
        "prompt_cache_miss_tokens": found["prompt_tokens"] - cached,
    }


def cache_write_tokens(choice: Choice, *, explicit: bool) -> int:
    """Prompt tokens that this request added to the cache: what the same prompt would now reuse beyond `cached_tokens`.

    The last token of a prompt is always computed and so never counts: `cached_tokens + cache_write_tokens` is
    `prompt_tokens - 1`.  Where breakpoints are explicit, tokens count up to the last breakpoint, and without one none
    do.  0 where the request kept nothing: prefix cache off, or a fault in it.
    """
    if not choice.request.prefix_cache or choice.phases is None:
        return 0
    if choice.phases.prefill.miss_reason in NOTHING_PUBLISHED:
        return 0
    end = len(choice.request.prompt) - 1
    if explicit:
        marks = choice.submission.prompts[choice.place].breakpoints
        end = min(end, max((mark.end for mark in marks), default=0))
    return max(end - _cached(choice), 0)


def firsts(choices: Sequence[Choice]) -> Sequence[Choice]:
    """The first continuation of each prompt."""
    return choices[:: choices[0].submission.choices]


def _cached(choice: Choice) -> int:
    return choice.phases.prefill.cached_tokens if choice.phases else 0
