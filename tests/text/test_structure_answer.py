"""An answer's grammar: masks of drafts are those of really advancing, and looking ahead leaves no trace."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.schemas import schemas
from tests.text.walks import MASK_BYTES, STRUCTURES, TOKENIZER, follow_text, tokens, walk
from twostroke.text.formats import AnyJson, Choices, Format, JsonSchema, Regex
from twostroke.text.structure.answer import AnswerGrammar
from twostroke.types import Grammar

FORMATS: tuple[Format, ...] = (
    AnyJson(),
    Choices(("hello", "hello world", "help", "é😀")),
    Regex(r"(he|ll|o w){1,6}\d*"),
    *(JsonSchema(schema) for name, schema in schemas().items() if name.startswith(("openai/", "pydantic/", "tree/"))),
)
END = min(TOKENIZER.end_ids)
HIDDEN = TOKENIZER.vocabulary.special
ids = st.lists(st.integers(0, TOKENIZER.vocab_size - 1), max_size=5)


def check(grammar: Grammar, replay: Grammar, drafts: Sequence[int]) -> None:
    """`grammar` says of the drafts what `replay` finds by advancing, and is where it was."""
    first = grammar.allowed(())
    masks = grammar.allowed(drafts)
    assert len(masks) == (1 + len(drafts)) * MASK_BYTES
    kept = 0
    for index in range(1 + len(drafts)):
        mask = masks[index * MASK_BYTES : (index + 1) * MASK_BYTES]
        assert mask == replay.allowed(())
        if index == len(drafts) or drafts[index] not in tokens(mask):
            break
        kept += 1
        if drafts[index] in TOKENIZER.end_ids:
            break
        replay.advance(drafts[index])
    assert grammar.valid(drafts) == kept
    assert grammar.valid(grammar.forced()) == len(grammar.forced())
    assert grammar.allowed(()) == first


def in_pieces(drafts: Sequence[int]) -> list[int]:
    """The same text in the smallest tokens."""
    letters = {TOKENIZER.token_bytes(token): token for token in range(TOKENIZER.vocab_size) if token not in HIDDEN}
    return [letters[bytes([byte])] for draft in drafts for byte in TOKENIZER.text_bytes(draft)]


@given(st.sampled_from(FORMATS), st.integers(0, 99), st.integers(0, 40), st.integers(0, 6), ids, st.booleans())
def test_masks_of_drafts_are_those_of_advancing(
    format: Format, seed: int, behind: int, ahead: int, wild: list[int], cut: bool
) -> None:
    made = STRUCTURES.compile(format)
    whole = [*walk(made(), seed), END]
    grammar, replay = made(), made()
    for token in whole[:behind]:
        grammar.advance(token)
        replay.advance(token)
    if END not in whole[:behind]:
        next_ids = whole[behind : behind + ahead]
        check(grammar, replay, (*(in_pieces(next_ids) if cut else next_ids), *wild))


@given(st.sampled_from(FORMATS), st.integers(0, 99), st.lists(ids, max_size=30))
def test_what_is_committed_is_all_that_counts(format: Format, seed: int, tries: list[list[int]]) -> None:
    """One grammar looks ahead in every way, at every place; the other only advances."""
    made = STRUCTURES.compile(format)
    looking, plain = made(), made()
    for token, drafts in zip(walk(made(), seed), tries, strict=False):
        looking.valid(drafts)
        looking.allowed(drafts)
        looking.forced()
        assert looking.allowed(()) == plain.allowed(())
        assert looking.forced() == plain.forced()
        assert looking.finished == plain.finished
        looking.advance(token)
        plain.advance(token)


class MovesOnDrafts(AnswerGrammar):
    """Planted: drafts are tried on the answer itself."""

    def allowed(self, drafts: Sequence[int]) -> bytes:
        masks = super().allowed(drafts)
        self._matcher.try_consume_tokens(list(drafts))
        return masks


class ShiftsMasks(AnswerGrammar):
    """Planted: the mask behind a draft is the one before it."""

    def allowed(self, drafts: Sequence[int]) -> bytes:
        masks = super().allowed(drafts)
        return masks[:MASK_BYTES] + masks[: -MASK_BYTES or None] if drafts else masks


class KeepsOneTooMany(AnswerGrammar):
    """Planted: a draft that the grammar refuses is kept."""

    def valid(self, drafts: Sequence[int]) -> int:
        return min(super().valid(drafts) + 1, len(drafts))


@pytest.mark.parametrize("broken", [MovesOnDrafts, ShiftsMasks, KeepsOneTooMany])
def test_a_planted_fault_is_seen(broken: type[AnswerGrammar]) -> None:
    made = STRUCTURES.compile(Choices(("hello", "held")))
    whole = made()
    assert isinstance(whole, AnswerGrammar)
    with pytest.raises(AssertionError):
        check(broken(whole._matcher, whole._ends, whole._closed), made(), (*TOKENIZER.encode("hel"), 0))


def test_an_answer_ends_where_the_grammar_does() -> None:
    grammar = STRUCTURES.compile(Choices(("a",)))()
    assert not grammar.finished
    assert follow_text(grammar, "a") == ""
    assert grammar.finished
    assert set(tokens(grammar.allowed(()))) == TOKENIZER.end_ids
    assert grammar.forced() == ()
    assert grammar.valid((END, END)) == 1
    grammar.advance(END)
    assert grammar.finished


def test_an_answer_may_end_early_or_go_on() -> None:
    grammar = STRUCTURES.compile(Regex("ab*"))()
    assert TOKENIZER.end_ids.isdisjoint(tokens(grammar.allowed(())))
    assert follow_text(grammar, "ab") == ""
    assert not grammar.finished
    assert set(tokens(grammar.allowed(()))) == TOKENIZER.end_ids | set(TOKENIZER.encode("b"))


def test_a_token_outside_the_grammar_is_refused_and_changes_nothing() -> None:
    grammar = STRUCTURES.compile(Choices(("ab",)))()
    before = grammar.allowed(())
    for wrong in (*TOKENIZER.encode("x"), END, TOKENIZER.vocab_size + 1000):
        with pytest.raises(ValueError, match=f"token {wrong} is not allowed"):
            grammar.advance(wrong)
    assert grammar.allowed(()) == before
    assert follow_text(grammar, "ab") == ""


def test_forced_text_is_in_the_tokens_that_encoding_gives() -> None:
    grammar = STRUCTURES.compile(Choices(("hello world",)))()
    assert grammar.forced() == TOKENIZER.encode("hello world")


def test_every_answer_has_a_grammar_of_its_own() -> None:
    made = STRUCTURES.compile(Choices(("ab",)))
    first, second = made(), made()
    assert follow_text(first, "ab") == ""
    assert not second.finished
