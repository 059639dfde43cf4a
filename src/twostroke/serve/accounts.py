"""The `phases` object of a response: what was reused, computed, drafted and saved, and which part a prefix missed at.

One shape for every wire format.  Several continuations are added up into one account.
"""

from __future__ import annotations

from collections.abc import Sequence

from twostroke.observe.phases import as_json, total
from twostroke.serve.answer import Choice
from twostroke.serve.service import Text
from twostroke.serve.submission import Json
from twostroke.types import Phases


def account(choices: Sequence[Choice]) -> Json:
    """`{"phases": …}` of the choices that have ended, null where none has an account."""
    ended = [choice for choice in choices if choice.phases]
    return {"phases": phases(ended[0], summed(ended)) if ended else None}


def summed(choices: Sequence[Choice]) -> Phases | None:
    """The accounts of the choices as one; None where no choice has one."""
    found = [choice.phases for choice in choices if choice.phases]
    return total(found) if found else None


def phases(choice: Choice, of: Phases | None = None) -> Json | None:
    """The choice's account, or `of`, as JSON.

    `prefill.miss_part` is the path of the part in which the prompt left what is cached ("diverged"), else null; the
    first token that differs stands at position `cached_tokens`.
    """
    body: Json | None = as_json(of or choice.phases)
    if body is not None:
        body["prefill"]["miss_part"] = miss_part(choice)
    return body


def miss_part(choice: Choice) -> str | None:
    """The path of the part in which the choice's prompt diverged from what is cached, None where it did not."""
    if choice.phases is None or choice.phases.prefill.miss_reason != "diverged":
        return None
    prompt = choice.submission.prompts[choice.place]
    return prompt.part_at(choice.phases.prefill.cached_tokens) or None


def thought_tokens(choice: Choice, text: Text) -> int:
    """Tokens of the answer that were thought: those its thoughts encode to, no more than were written."""
    return min(len(text.encode(choice.thoughts, bos=False)), choice.written) if choice.thoughts else 0
