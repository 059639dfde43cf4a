"""One model's text, whole: prompts to ids, ids to text, what an answer says and may say, and where it stops.

The face that servers and the embedded engine share; the tokenizer, the template, the family, the grammars and the
stream do the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from twostroke.errors import InvalidParameter
from twostroke.text.conversation import Conversation, Tool, ToolCall
from twostroke.text.formats import Format
from twostroke.text.layout import Layout
from twostroke.text.pieces import Reader
from twostroke.text.prompt import Prompt
from twostroke.text.prompter import Prompter
from twostroke.text.reasoning import ThinkReader, thinking_of
from twostroke.text.recall import Recall
from twostroke.text.stream import StopSet, StopStrings, TextStream
from twostroke.text.structure import Structures, Tag
from twostroke.text.template import ChatTemplate
from twostroke.text.tokenizer import Tokenizer
from twostroke.text.tools import family_of
from twostroke.text.vocabulary import INFILL
from twostroke.types import Grammar, StopCondition


class Codec:
    """Shared by all answers; streams, readers and stop conditions are made per answer."""

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self.family = family_of(template.source, tokenizer.special_strings)
        self._thinking = thinking_of(template.source, tokenizer.special_strings)
        self.structures = Structures(tokenizer)
        self._recall = Recall()
        self._prompter = Prompter(template, Layout(tokenizer), self._recall)

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
        """The prompt of a conversation in OpenAI's form, ready for the assistant's next words."""
        rendered = self.template.render(messages)
        return self.tokenizer.encode_marked(rendered.marked, rendered.mark)

    def prompt(self, conversation: Conversation, namespace: str = "") -> Prompt:
        """The prompt of a conversation; answers that `remember` was told of keep the ids they were made of.

        Raises `InvalidParameter`.
        """
        return self._prompter.prompt(conversation, namespace)

    def remember(
        self, namespace: str, words: str, thoughts: str, calls: Sequence[ToolCall], tokens: Sequence[int]
    ) -> None:
        """Keep the ids of an answer for the turns that follow it, but for the token that ended it.

        Where the template's own opening begins the thought, an answer goes back with another beginning than it was
        written with: it is not kept.
        """
        if thoughts and self._opened:
            return
        ids = tuple(tokens)
        while ids and ids[-1] in self.end_ids:
            ids = ids[:-1]
        self._recall.add(namespace, words, thoughts, calls, ids)

    def forget(self) -> None:
        """Drop what `remember` kept."""
        self._recall.clear()

    def reader(self, conversation: Conversation | None = None) -> Reader:
        """Reads an answer to the conversation: words, thoughts and calls.  None: nothing but words."""
        if conversation is None:
            return self.family.reader(())
        inner = self.family.reader(conversation.callable_tools)
        if self._thinking is None or conversation.continue_final:
            return inner
        return ThinkReader(inner, opened=self._opened, begin=self._thinking.begin, end=self._thinking.end)

    def grammar(self, format: Format | None, conversation: Conversation | None) -> Callable[[], Grammar] | None:
        """Makes the grammars of an answer in this format, or with calls of the conversation's tools.

        With both, an answer is either a text of the format or calls; one that must call has no format.  None where
        anything may follow.  Raises `InvalidParameter` for what no grammar can be made of.
        """
        thinking = None if conversation is None or conversation.continue_final else self._thinking
        if conversation is None or not conversation.callable_tools:
            return None if format is None else self.structures.compile(format, thinking, opened=self._opened)
        required = conversation.choice.mode == "required"
        tags = self._tags(conversation.callable_tools)
        if not tags and (required or format is not None):
            raise InvalidParameter(
                f"this model's calls (of the {self.family.name} family) cannot be forced; send tool_choice auto",
                param="tool_choice",
            )
        return self.structures.tools(
            tags,
            required=required,
            format=None if required else format,
            parallel=conversation.choice.parallel,
            separator=self.family.separator,
            thinking=thinking,
            opened=self._opened,
        )

    def _tags(self, tools: Sequence[Tool]) -> Sequence[Tag]:
        tags = self.family.tags(tools, Tag)
        return [
            replace(tag, path=tool.path or "tools", lenient=not tool.strict)
            for tag, tool in zip(tags, tools, strict=False)
        ]

    def infill(self, prefix: str, suffix: str) -> tuple[int, ...]:
        """The prompt for what belongs between two texts (prefix, suffix, middle: Bavarian et al. 2022, section 3).

        Raises `InvalidParameter` where the vocabulary has no tokens for it.
        """
        if self._infill is None:
            raise InvalidParameter("this model has no fill-in-the-middle tokens; leave suffix out", param="suffix")
        before, after, middle = self._infill
        return (
            before,
            *self.encode(prefix, bos=False),
            after,
            *self.encode(suffix, bos=False),
            middle,
        )

    def decode(self, tokens: Iterable[int]) -> str:
        """Text without special tokens; invalid UTF-8 becomes U+FFFD."""
        return self.tokenizer.decode(tokens)

    def piece(self, token: int) -> bytes:
        """The bytes of one token, special tokens by their names."""
        return self.tokenizer.token_bytes(token)

    def stream(self, stops: Sequence[str] = ()) -> TextStream:
        """Turns one answer's tokens into text as they come."""
        return TextStream(self._answer_bytes, StopSet(stops))

    def stop(self, stops: Sequence[str]) -> Callable[[], StopCondition] | None:
        """Makes the conditions that end an answer at one of `stops`; None without any."""
        if not stops:
            return None
        automaton = StopSet(stops)
        return lambda: StopStrings(self._answer_bytes, automaton)

    def _answer_bytes(self, token: int) -> bytes:
        """What a token adds to an answer: text, and the names of the special tokens that calls and thoughts need."""
        return self._shown.get(token) or self.tokenizer.text_bytes(token)

    @cached_property
    def _shown(self) -> Mapping[int, bytes]:
        named = self.tokenizer.vocabulary.special_ids
        thinking = {self._thinking.begin, self._thinking.end} if self._thinking else set()
        markers = self.family.shown | thinking
        return {named[name]: name.encode() for name in markers if name in named and named[name] not in self.end_ids}

    @cached_property
    def _opened(self) -> bool:
        """Whether the template's own opening of an answer begins a thought."""
        return self._thinking is not None and self._thinking.opened_by(self.template.opening)

    @cached_property
    def _infill(self) -> tuple[int, int, int] | None:
        named = self.tokenizer.vocabulary.special_ids
        known = (names for names in INFILL if all(name in named for name in names))
        return next(((named[before], named[after], named[middle]) for before, after, middle in known), None)
