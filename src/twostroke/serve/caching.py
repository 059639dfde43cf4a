"""Cache breakpoints in OpenAI's words: where a client says that a prefix ends which it will send again, and how long it
should live.

Reuse is automatic and exact to the token whatever is marked: breakpoints steer lifetimes, and in explicit mode what
counts as written, and they never lose a hit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from twostroke.serve.fields import Fields
from twostroke.text.conversation import Message, Part

LIFETIMES = {"30m": 1800.0, "12h": 43200.0}  # seconds
KNOWN = frozenset({"mode", "ttl", "prewarm"})
MOST = {"implicit": 3, "explicit": 4}  # the latest breakpoints that count; an implicit one takes a place


@dataclass(frozen=True, slots=True)
class Caching:
    """`prompt_cache_options`, judged."""

    explicit: bool = False  # without an implicit breakpoint at the end of the prompt
    lifetime_s: float = LIFETIMES["30m"]  # of a breakpoint that names none
    chosen: bool = False  # the client chose that lifetime
    prewarm: bool = False  # fill the cache, write nothing

    def ttl_s(self, part: Fields) -> float | None:
        """The lifetime that a part's `prompt_cache_breakpoint` asks for, None without one."""
        mark = part.object("prompt_cache_breakpoint")
        if mark is None:
            return None
        if mark.get("mode") != "explicit":
            raise mark.wrong("mode", '"explicit"')
        return lifetime_s(mark) or self.lifetime_s

    def marked(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The messages with those breakpoints that count: the latest explicit ones, and the implicit one.

        The implicit one has a lifetime only where the client chose one: what is reused by itself needs no promise.
        """
        left = MOST["explicit" if self.explicit else "implicit"]
        kept: list[Message] = []
        for message in reversed(messages):
            marks = sum(part.ttl_s is not None for part in message.parts)
            kept.append(_latest(message, max(left, 0)) if marks > left else message)
            left -= marks
        found = tuple(reversed(kept))
        return found if self.explicit or not self.chosen else (*found[:-1], _ended(found[-1], self.lifetime_s))


def caching(fields: Fields) -> Caching:
    """Reads `prompt_cache_options`.  Raises `InvalidParameter`."""
    given = fields.object("prompt_cache_options")
    if given is None:
        return Caching()
    mode = given.text("mode") or "implicit"
    if mode not in MOST:
        raise given.wrong("mode", "one of " + ", ".join(MOST))
    chosen = lifetime_s(given)
    return Caching(mode == "explicit", chosen or LIFETIMES["30m"], chosen is not None, given.flag("prewarm", False))


def lifetime_s(holder: Fields) -> float | None:
    """The `ttl` of a breakpoint or of the options in seconds, None without one.  Raises `InvalidParameter`."""
    ttl = holder.text("ttl")
    if ttl is not None and ttl not in LIFETIMES:
        raise holder.wrong("ttl", "one of " + ", ".join(LIFETIMES))
    return None if ttl is None else LIFETIMES[ttl]


def _latest(message: Message, most: int) -> Message:
    """The message with at most its last `most` breakpoints."""
    parts: list[Part] = []
    for part in reversed(message.parts):
        parts.append(part if most or part.ttl_s is None else replace(part, ttl_s=None))
        most -= most > 0 and part.ttl_s is not None
    return replace(message, parts=tuple(reversed(parts)))


def _ended(message: Message, ttl_s: float) -> Message:
    """The message with a breakpoint at its end, if it has text and none there."""
    if not message.parts or message.parts[-1].ttl_s is not None:
        return message
    return replace(message, parts=(*message.parts[:-1], replace(message.parts[-1], ttl_s=ttl_s)))
