"""Cache breakpoints: the lifetimes that `cache_control` asks for, judged in the order of tools, system, messages.

They steer lifetimes and the accounts.  What is reused is reused without them, and never less because of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from twostroke.errors import InvalidParameter
from twostroke.serve.fields import Fields
from twostroke.text.conversation import Message

MOST = 4
LIFETIMES = {"5m": 300.0, "1h": 3600.0}  # seconds by the name of a ttl


def lifetime(block: Fields) -> float | None:
    """Seconds that the block's `cache_control` asks for; None without one.  Raises `InvalidParameter`."""
    control = block.object("cache_control")
    if control is None:
        return None
    if control.get("type") != "ephemeral":
        raise control.wrong("type", '"ephemeral"')
    ttl = control.text("ttl") or "5m"
    if ttl not in LIFETIMES:
        raise control.wrong("ttl", 'one of "5m", "1h"')
    return LIFETIMES[ttl]


class Markers:
    """The breakpoints of one body as they are met."""

    def __init__(self) -> None:
        self._met: list[tuple[str, float]] = []

    def read(self, block: Fields) -> float | None:
        """The block's lifetime, counted.  Raises `InvalidParameter` for one too many or one longer than an earlier."""
        ttl_s = lifetime(block)
        if ttl_s is not None:
            self.add(block.at("cache_control"), ttl_s)
        return ttl_s

    def add(self, path: str, ttl_s: float) -> None:
        """Count a breakpoint.  Raises as `read` does."""
        shorter = next((where for where, other in self._met if other < ttl_s), None)
        if shorter is not None:
            raise InvalidParameter(
                f'{path} asks for the ttl "1h" after {shorter} asked for "5m"; put longer lifetimes first', param=path
            )
        self._met.append((path, ttl_s))
        if len(self._met) > MOST:
            raise InvalidParameter(
                f"{path} is cache breakpoint number {len(self._met)}; at most {MOST} are allowed, leave some out",
                param=path,
            )

    def automatic(self, fields: Fields, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The messages with the body's own `cache_control` put on their last block.

        It adds nothing where that block asks for the same; raises `InvalidParameter` where it asks for another.
        """
        ttl_s = lifetime(fields)
        if ttl_s is None or not messages:
            return tuple(messages)
        last = messages[-1]
        own = last.calls[-1].ttl_s if last.calls else last.parts[-1].ttl_s if last.parts else None
        if own is None:
            self.add(fields.at("cache_control"), ttl_s)
        elif own != ttl_s:
            raise InvalidParameter(
                f"cache_control and the last block of {last.path} ask for different lifetimes; leave one of them out",
                param="cache_control",
            )
        return (*messages[:-1], _marked(last, ttl_s))


def _marked(message: Message, ttl_s: float) -> Message:
    if message.calls:
        return replace(message, calls=(*message.calls[:-1], replace(message.calls[-1], ttl_s=ttl_s)))
    if message.parts:
        return replace(message, parts=(*message.parts[:-1], replace(message.parts[-1], ttl_s=ttl_s)))
    return message
