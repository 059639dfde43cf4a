"""What every wire format parses a body into: requests for the engine, and what their answers are to be read with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from twostroke.text.conversation import Conversation
from twostroke.text.prompt import Prompt
from twostroke.types import Request

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Caller:
    """What the server knows of a request before it reads the body."""

    id: str  # unique; the request's own name
    key: str = ""  # the API key that was sent, "" where none is required
    arrived_s: float = 0.0
    created: int = 0  # Unix time
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case


@dataclass(frozen=True, slots=True)
class Submission:
    """A judged body.  `details` is the format's own: what its writer needs beside this and nobody else reads."""

    id: str
    created: int
    model: str  # as the client called it
    requests: tuple[Request, ...]  # one per prompt
    prompts: tuple[Prompt, ...]  # as many: where each part of a prompt ends
    stops: tuple[str, ...] = ()
    stream: bool = False
    conversation: Conversation | None = None  # None: the prompt was plain text
    prefilled_only: bool = False  # the client asked for no token: the one that is computed is not shown
    details: Any = None

    @property
    def choices(self) -> int:
        """Continuations of each prompt."""
        return self.requests[0].choices
