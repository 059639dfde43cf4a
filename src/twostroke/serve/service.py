"""What a server needs of the engine behind it, as one frozen value.

Tests fill it with a scripted engine, the command line with a real one; the wire formats see nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from twostroke.config import Settings
from twostroke.serve.host import Host
from twostroke.serve.tenants import Tenants
from twostroke.text.conversation import Conversation, ToolCall
from twostroke.text.formats import Format
from twostroke.text.pieces import Reader
from twostroke.text.prompt import Prompt
from twostroke.types import Grammar, StopCondition


class TextStream(Protocol):
    """Turns one answer's tokens into text.

    Bytes of an unfinished character, and text that may become a stop string, are held back.
    """

    @property
    def hit(self) -> str | None:
        """The stop string that ended the answer."""
        ...

    def feed(self, tokens: Sequence[int]) -> str:
        """The text that is certain now and was not before."""
        ...

    def flush(self) -> str:
        """The rest, when the answer has ended; nothing of a stop string."""
        ...


class Text(Protocol):
    """IDs <-> text for one model."""

    @property
    def vocabulary(self) -> int:
        """How many token ids there are."""
        ...

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end an answer."""
        ...

    def encode(self, text: str, *, bos: bool = True) -> Sequence[int]:
        """A plain prompt, or without `bos` text that goes on; special strings in it stay text."""
        ...

    def prompt(self, conversation: Conversation, namespace: str) -> Prompt:
        """The prompt of a conversation, ready for the assistant's next words.

        Where an assistant message repeats an answer that `remember` was told of under `namespace`, it has the ids that
        were generated.  Raises `InvalidParameter`.
        """
        ...

    def remember(
        self, namespace: str, words: str, thoughts: str, calls: Sequence[ToolCall], tokens: Sequence[int]
    ) -> None:
        """Keep the ids of an answer for the turns that follow it."""
        ...

    def reader(self, conversation: Conversation | None) -> Reader:
        """Reads an answer to the conversation: words, thoughts and calls.  None: nothing but words."""
        ...

    def grammar(self, format: Format | None, conversation: Conversation | None) -> Callable[[], Grammar] | None:
        """Makes the grammars of an answer in this format, or with calls of the conversation's tools.

        None where anything may follow.  Raises `InvalidParameter` for what no grammar can be made of.
        """
        ...

    def infill(self, prefix: str, suffix: str) -> Sequence[int]:
        """The prompt for what belongs between two texts.  Raises `InvalidParameter` where the model cannot."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Text, without special tokens."""
        ...

    def piece(self, token: int) -> bytes:
        """The bytes of one token, as a log-probability reports them."""
        ...

    def stream(self, stops: Sequence[str]) -> TextStream: ...

    def stop(self, stops: Sequence[str]) -> Callable[[], StopCondition] | None:
        """Makes the conditions that end an answer at one of `stops`; None without any."""
        ...


@dataclass(frozen=True)
class Service:
    """One model, served."""

    host: Host
    text: Text
    models: Sequence[str]  # names clients may use, the preferred one first
    context: int  # tokens a prompt and its answer may span
    context_reason: str = ""  # how many that are and why, in words
    settings: Settings = field(default_factory=Settings)
    tenants: Tenants = field(default_factory=Tenants)
    kv_bytes: Mapping[str, int] = field(default_factory=dict)  # KV memory by group
    drafters: frozenset[str] = frozenset({"off"})  # values "speculate" may take, "off" included
    metrics: Callable[[], bytes] = lambda: b""  # the Prometheus text exposition
    rejected: Callable[[str], None] = lambda reason: None  # counts requests turned away
    clear_cache: Callable[[], bool] = lambda: False  # on the engine's thread: forgets every prefix nobody is using
    created: int = 0  # Unix time at which the model was loaded
    weights: str = ""  # names the model's weights and how they are computed; another name may answer otherwise
    version: str = "0"
