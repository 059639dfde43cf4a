"""What a study sends: calls in the shape of a chat request, and the contexts that are read before anything is timed.

A workload knows neither arms nor servers.  It is the same in every arm, byte for byte, and it is deterministic: the
same seed gives the same calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ANSWER_TO = "answer_to"  # in an assistant's message: stands for the answer to the call of that id

Message = Mapping[str, Any]  # OpenAI's chat shape: role, content, tool_calls, tool_call_id


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a workload.  Calls of one session follow one another and share a growing prefix.

    A message `{"role": "assistant", "answer_to": ID}` stands for the answer to an earlier call of the session.  It is
    recorded once, before anything is timed, so that every arm is sent the same text.
    """

    id: str  # unique in its workload; results of different arms are paired by it
    session: str
    messages: tuple[Message, ...]
    max_tokens: int
    tools: tuple[Mapping[str, Any], ...] = ()
    at_s: float | None = None  # arrival, in seconds after the first; None where the workload has no arrival times


@dataclass(frozen=True, slots=True)
class Workload:
    """Calls in the order in which they are sent, and `contexts`: calls that are read once per arm before timing starts.

    A call finds its context cached (where the arm's cache is on), so every measured call of such a workload is a hit.
    A workload without contexts finds what its own earlier calls left.
    """

    name: str
    seed: int
    calls: tuple[Call, ...]
    contexts: tuple[Call, ...] = ()
