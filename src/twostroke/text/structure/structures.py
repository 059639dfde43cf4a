"""Formats and tools to grammars, compiled once each.

Compiling takes a fraction of a millisecond for most schemas; what was compiled is kept by its text, and every answer
gets a copy of its own.  Safe to share between threads.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import singledispatch
from threading import Lock

from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from twostroke.errors import InvalidParameter
from twostroke.text.formats import AnyJson, Choices, Format, JsonSchema, Lark, Regex
from twostroke.text.reasoning import Thinking
from twostroke.text.structure.answer import AnswerGrammar
from twostroke.text.structure.calls import Tag, free_text_then, only
from twostroke.text.structure.faults import explained
from twostroke.text.structure.grammars import Grammars
from twostroke.text.structure.lark import lark_of_choices, lark_of_grammar, lark_of_regex
from twostroke.text.structure.schemas import schema_text
from twostroke.text.structure.words import llguidance_tokenizer
from twostroke.text.tokenizer import Tokenizer
from twostroke.types import Grammar

KEPT = 64  # compiled grammars


class Structures:
    """Makes grammars for one model's vocabulary, which is prepared at the first use."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._special = tokenizer.vocabulary.special_ids
        self._words: LLTokenizer | None = None
        self._compiled: OrderedDict[str, LLMatcher] = OrderedDict()
        self._lock = Lock()
        self._closed = _mask_of(tokenizer.end_ids, tokenizer.vocab_size)

    def compile(
        self, format: Format, thinking: Thinking | None = None, *, opened: bool = False
    ) -> Callable[[], Grammar]:
        """Makes the grammars of answers in this format.

        With `thinking` a thought may stand before the answer; with `opened` the prompt began one, so it must.

        Raises:
            InvalidParameter: no grammar can be made of it; `param` is the format's path.
        """
        return self._maker(self._thoughtful(_answer(format), thinking, opened), _path(format))

    def tools(
        self,
        tags: Sequence[Tag],
        *,
        required: bool = False,
        format: Format | None = None,
        parallel: bool = True,
        separator: str = "",
        thinking: Thinking | None = None,
        opened: bool = False,
    ) -> Callable[[], Grammar] | None:
        """Makes the grammars of answers that may call, or with `required` do nothing else, after a thought if any.

        With a `format` an answer is either calls alone or a text of that format.  Without `parallel` at most one call
        is made, and it ends the answer; `separator` stands between calls alone.  None where nothing can be
        constrained: no tags, or calls in free text that nothing announces.

        Raises:
            InvalidParameter: no grammar can be made of a tool's schema, or of the format; `param` is its path.
        """
        if not tags or (not required and format is None and not all(tag.trigger for tag in tags)):
            return None
        at_most = None if parallel else 1
        if required or format is not None:
            grammars = only(tags, self._special, separator=separator, at_most=at_most)
        else:
            grammars = free_text_then(tags, self._special, at_most=at_most)
        if format is not None:
            grammars = grammars.or_else(_answer(format))
        thoughtful = self._thoughtful(grammars, thinking, opened)
        if not self._known(thoughtful.text):
            self._judge(tags, format)
        return self._maker(thoughtful, "tools")

    def _judge(self, tags: Sequence[Tag], format: Format | None) -> None:
        """Each tag and the format alone, so that a fault is told of the one that has it."""
        for tag in tags:
            self._pristine(Grammars((("arguments", tag.lark),)).text, tag.path, keep=False)
        if format is not None:
            self._pristine(_answer(format).text, _path(format), keep=False)

    def _thoughtful(self, grammars: Grammars, thinking: Thinking | None, opened: bool) -> Grammars:
        return grammars if thinking is None else grammars.after(thinking, self._special, opened=opened)

    def _maker(self, grammars: Grammars, path: str) -> Callable[[], Grammar]:
        pristine = self._pristine(grammars.text, path)
        return lambda: AnswerGrammar(self._copy(pristine), self._tokenizer.end_ids, self._closed)

    def _copy(self, pristine: LLMatcher) -> LLMatcher:
        with self._lock:  # a matcher may not be used by two threads at once
            return pristine.deep_copy()

    def _known(self, text: str) -> LLMatcher | None:
        with self._lock:
            found = self._compiled.get(text)
            if found is not None:
                self._compiled.move_to_end(text)
            return found

    def _pristine(self, text: str, path: str, *, keep: bool = True) -> LLMatcher:
        found = self._known(text)
        if found is None:
            found = compiled(self._prepared(), text, path)
            if keep:
                self._keep(text, found)
        return found

    def _keep(self, text: str, matcher: LLMatcher) -> None:
        with self._lock:
            self._compiled[text] = matcher
            if len(self._compiled) > KEPT:
                self._compiled.popitem(last=False)

    def _prepared(self) -> LLTokenizer:
        with self._lock:
            if self._words is None:
                self._words = llguidance_tokenizer(self._tokenizer)
            return self._words


def compiled(words: LLTokenizer, text: str, path: str) -> LLMatcher:
    """A matcher at the beginning of an answer, its first mask computed.  Raises `InvalidParameter`."""
    matcher = LLMatcher(words, text, log_level=0, limits=LLParserLimits(verbose_errors=False))
    if not matcher.is_error():
        matcher.compute_bitmask()  # finds what allows nothing; copies of the matcher have this mask for free
    if matcher.is_error():
        raise InvalidParameter(explained(matcher.get_error()), param=path)
    return matcher


def _answer(format: Format) -> Grammars:
    return Grammars((("answer", lark_of(format)),))


def _path(format: Format) -> str:
    return getattr(format, "path", "response_format")


@singledispatch
def lark_of(format: Format) -> str:
    """A format as Lark.  Raises `InvalidParameter` for one that is malformed, empty or too large."""
    raise TypeError(f"{format!r} is no format")


@lark_of.register
def _(format: AnyJson) -> str:
    return f"start: %json {schema_text({'type': 'object'}, '')}"


@lark_of.register
def _(format: JsonSchema) -> str:
    return f"start: %json {schema_text(format.schema, format.path)}"


@lark_of.register
def _(format: Regex) -> str:
    return lark_of_regex(format.pattern, format.path)


@lark_of.register
def _(format: Choices) -> str:
    return lark_of_choices(format.texts, format.path)


@lark_of.register
def _(format: Lark) -> str:
    return lark_of_grammar(format.grammar, format.path)


def _mask_of(tokens: frozenset[int], size: int) -> bytes:
    """A mask of `size` bits in whole 32-bit words, those of `tokens` set."""
    bits = sum(1 << token for token in tokens)
    return bits.to_bytes(4 * -(-size // 32), "little")
