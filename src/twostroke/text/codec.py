"""One model's text, whole: prompts to ids, ids to text, and where an answer stops.

The face that servers and the embedded engine share; the tokenizer, the template and the stream do the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from twostroke.text.stream import StopSet, StopStrings, TextStream
from twostroke.text.template import ChatTemplate
from twostroke.text.tokenizer import Tokenizer
from twostroke.types import StopCondition


class Codec:
    """Immutable and shared; streams and stop conditions are made per answer."""

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate) -> None:
        self.tokenizer = tokenizer
        self.template = template

    @property
    def vocabulary(self) -> int:
        """How many token ids there are."""
        return self.tokenizer.vocab_size

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end an answer."""
        return self.tokenizer.end_ids

    def encode(self, text: str, *, bos: bool = True) -> tuple[int, ...]:
        """A plain prompt, begun as the file asks, or text that goes on; special strings in it stay text."""
        return self.tokenizer.encode(text, bos=bos)

    def chat(self, messages: Sequence[Mapping[str, object]]) -> tuple[int, ...]:
        """The prompt of a conversation, ready for the assistant's next words."""
        rendered = self.template.render(messages)
        return self.tokenizer.encode_marked(rendered.marked, rendered.mark)

    def decode(self, tokens: Iterable[int]) -> str:
        """Text without special tokens; invalid UTF-8 becomes U+FFFD."""
        return self.tokenizer.decode(tokens)

    def piece(self, token: int) -> bytes:
        """The bytes of one token, special tokens by their names."""
        return self.tokenizer.token_bytes(token)

    def stream(self, stops: Sequence[str] = ()) -> TextStream:
        """Turns one answer's tokens into text as they come."""
        return TextStream(self.tokenizer.text_bytes, StopSet(stops))

    def stop(self, stops: Sequence[str]) -> Callable[[], StopCondition] | None:
        """Makes the conditions that end an answer at one of `stops`; None without any."""
        if not stops:
            return None
        automaton = StopSet(stops)
        return lambda: StopStrings(self.tokenizer.text_bytes, automaton)
