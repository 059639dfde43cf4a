"""Calls in free text and calls alone; what may stand before them, and after how many the answer ends."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

import twostroke.text.structure.structures as module
from tests.text.vocabularies import byte_level
from tests.text.walks import MASK_BYTES, STRUCTURES, TOKENIZER, follow_text, tokens
from twostroke.errors import InvalidParameter
from twostroke.text.conversation import Tool
from twostroke.text.formats import AnyJson, Choices, Format, JsonSchema, Lark, Regex
from twostroke.text.reasoning import Thinking
from twostroke.text.structure import Structures, Tag
from twostroke.text.tokenizer import Tokenizer
from twostroke.text.tools.hermes import HERMES
from twostroke.text.tools.qwen3_coder import QWEN3_CODER
from twostroke.types import Grammar

SPECIAL = TOKENIZER.vocabulary.special_ids
NUMBER = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
TOOLS = (Tool("add", None, NUMBER), Tool("list"))
TAGS = HERMES.tags(TOOLS, Tag)
ADD = '<tool_call>\n{"name": "add", "arguments": {"x": 12}}\n</tool_call>'
LIST = '<tool_call>\n{"name": "list", "arguments": {}}\n</tool_call>'
THINKING = Thinking("<think>", "</think>")


def auto(tags: tuple[Tag, ...] = TAGS, **options: object) -> Grammar:
    made = STRUCTURES.tools(tags, **options)  # type: ignore[arg-type]
    assert made is not None
    return made()


def may_end(grammar: Grammar) -> bool:
    return bool(TOKENIZER.end_ids & set(tokens(grammar.allowed(()))))


@pytest.mark.parametrize("text", ["", "hello {<b>} 😀", f"words {ADD}", f"{ADD}\n{LIST} more <tool", ADD + ADD])
def test_free_text_and_whole_calls_may_end(text: str) -> None:
    grammar = auto()
    assert follow_text(grammar, text) == ""
    assert may_end(grammar)
    assert not grammar.finished


@pytest.mark.parametrize("cut", [-12, -13, -20, 13])
def test_an_answer_cannot_end_inside_a_call(cut: int) -> None:
    grammar = auto()
    assert follow_text(grammar, ADD[:cut]) == ""
    assert not may_end(grammar)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <tool_call>{", "{"),
        ('<tool_call>\n{"name": "other', "other"),
        ('<tool_call>\n{"name": "add", "arguments": {"x": "1', '"1'),
        ('<tool_call>\n{"name": "list", "arguments": {"x', "x"),
        (f"{ADD} and <tool_call>x", "x"),
    ],
)
def test_a_call_is_constrained_from_its_opening_on(text: str, left: str) -> None:
    assert follow_text(auto(), text).lstrip(' "') == left.lstrip(' "')


def test_an_opening_in_pieces_opens_a_call_too() -> None:
    grammar = auto()
    pieces = [token for letter in "<tool_call>" for token in TOKENIZER.encode(letter)]
    assert len(pieces) == len("<tool_call>")
    for token in pieces:
        grammar.advance(token)
    assert grammar.forced() == TOKENIZER.encode('\n{"name": "')


def test_one_call_and_the_answer_is_over() -> None:
    grammar = auto(parallel=False)
    assert follow_text(grammar, f"words {ADD}") == ""
    assert grammar.finished
    assert follow_text(auto(parallel=False), "only words") == ""


def test_required_calls_are_all_there_is() -> None:
    grammar = auto(required=True, separator="\n")
    assert follow_text(auto(required=True), "words") == "words"
    assert not may_end(grammar)
    assert follow_text(grammar, f"{ADD}\n{LIST}") == ""
    assert may_end(grammar)


def test_one_required_call_is_one() -> None:
    grammar = auto(required=True, parallel=False, separator="\n")
    assert follow_text(grammar, ADD) == ""
    assert grammar.finished


def test_a_trigger_that_is_a_special_token_is_that_token_or_its_text_as_readers_see_it() -> None:
    marked = tuple(
        replace(tag, trigger="<|im_start|>", begin=tag.begin.replace("<tool_call>", "<|im_start|>"), end="}<unk>")
        for tag in TAGS
    )
    grammar = auto(marked)
    assert follow_text(auto(marked), "text <|im_start|>{ is none") == "{ is none"
    assert follow_text(grammar, "text <|im_start|") == ""
    grammar.advance(SPECIAL["<|im_start|>"])
    assert follow_text(grammar, '\n{"name": "add", "arguments": {"x": 1}}') == ""
    assert tokens(grammar.allowed(())) == [SPECIAL["<unk>"]]


def test_free_text_allows_no_special_token_and_no_unused_one() -> None:
    allowed = set(tokens(auto().allowed(()))) - TOKENIZER.end_ids
    unused = TOKENIZER.vocabulary.tokens.index("[PAD]")
    assert allowed.isdisjoint({*SPECIAL.values(), unused})
    assert allowed >= {token for letter in map(chr, range(128)) for token in TOKENIZER.encode(letter)}


def test_every_end_of_text_ends_an_answer_and_masks_span_the_vocabulary() -> None:
    assert len(TOKENIZER.end_ids) > 1
    mask = auto().allowed(())
    assert TOKENIZER.end_ids <= set(tokens(mask))
    assert len(mask) == MASK_BYTES


def test_a_special_tokens_text_is_plain_text_inside_a_string() -> None:
    grammar = STRUCTURES.compile(JsonSchema({"type": "string"}))()
    assert follow_text(grammar, '"<|im_end|>') == ""
    assert TOKENIZER.end_ids.isdisjoint(tokens(grammar.allowed(())))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("yes", ""),
        ("no", "no"),
        (ADD, ""),
        (f"{ADD}\n{LIST}", ""),
        (f"yesterda {ADD}", f" {ADD}"),
        (f"{ADD}\nyes", "yes"),
        ("<think>hm</think>\nyes", ""),
        (f"<think>hm</think>\n\n{LIST}", ""),
        ('<tool_call>\n{"name": "add", "arguments": {"x": "', '"'),
    ],
)
def test_an_answer_is_of_the_format_or_calls(text: str, left: str) -> None:
    grammar = auto(format=Choices(("yes", "yesterday")), separator="\n", thinking=THINKING)
    assert follow_text(grammar, text) == left
    assert may_end(grammar) == (not left)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        (AnyJson(), '{"a": [1, {}]}'),
        (JsonSchema(NUMBER), '{"x": 7}'),
        (Regex(r"\d{3}"), "123"),
        (Choices(("<tool", "b")), "<tool"),
        (Lark('start: "a" start | "b"'), "aab"),
    ],
)
def test_every_kind_of_format_stands_beside_calls(format: Format, text: str) -> None:
    for answer in (text, ADD):
        grammar = auto(format=format)
        assert follow_text(grammar, answer) == ""
        assert may_end(grammar)
    assert follow_text(auto(format=format), "I see") == "I see"


def test_one_call_beside_a_format_is_one() -> None:
    grammar = auto(format=Choices(("yes",)), parallel=False, separator="\n")
    assert follow_text(grammar, ADD) == ""
    assert grammar.finished


def test_the_format_at_fault_is_named() -> None:
    with pytest.raises(InvalidParameter, match="unclosed group") as caught:
        auto(format=Regex("a(b", "text.format"))
    assert caught.value.param == "text.format"


@pytest.mark.parametrize("text", ["<think>\na {b} c</think>\n\nyes", "yes", "<think></think>yes"])
def test_a_thought_may_stand_before_the_format(text: str) -> None:
    assert follow_text(STRUCTURES.compile(Choices(("yes", "no")), THINKING)(), text) == ""


def test_words_after_a_thought_are_held_to_the_format() -> None:
    made = STRUCTURES.compile(Choices(("yes", "no")), THINKING)
    assert follow_text(made(), "<think>maybe</think>\nmaybe") == "maybe"
    assert follow_text(made(), "maybe") == "maybe"


def test_a_thought_that_the_prompt_began_comes_first() -> None:
    made = STRUCTURES.compile(Choices(("yes", "no")), THINKING, opened=True)
    grammar = made()
    assert follow_text(grammar, "yes, so") == ""
    assert not may_end(grammar)
    assert follow_text(grammar, "</think>\n\nyes") == ""
    assert grammar.finished


def test_a_thought_between_special_tokens() -> None:
    grammar = STRUCTURES.compile(Choices(("yes",)), Thinking("<|im_start|>", "<unk>"))()
    grammar.advance(SPECIAL["<|im_start|>"])
    assert follow_text(grammar, "no </think> no <un") == ""
    grammar.advance(SPECIAL["<unk>"])
    assert follow_text(grammar, "\nyes") == ""
    assert grammar.finished


def test_calls_come_after_a_thought() -> None:
    assert follow_text(auto(required=True, thinking=THINKING), f"<think>a</think>\n{ADD}") == ""
    assert follow_text(auto(thinking=THINKING, opened=True), f"a</think>\nwords {ADD}") == ""


def test_a_call_without_a_trigger_is_constrained_only_where_required() -> None:
    bare = tuple(replace(tag, trigger="") for tag in TAGS)
    assert STRUCTURES.tools(bare) is None
    assert STRUCTURES.tools(()) is None
    assert follow_text(auto(bare, required=True), ADD) == ""


def test_arguments_may_be_a_grammar_of_their_own() -> None:
    grammar = auto(QWEN3_CODER.tags(TOOLS, Tag))
    call = "<tool_call>\n<function=add>\n<parameter=x>\n12\n</parameter>\n</function>\n</tool_call>"
    assert follow_text(grammar, call) == ""
    assert may_end(grammar)


def test_the_tool_at_fault_is_named() -> None:
    broken = replace(TAGS[1], schema={"not": {}}, path="tools[1]")
    with pytest.raises(InvalidParameter, match='"not"') as caught:
        STRUCTURES.tools((TAGS[0], broken))
    assert caught.value.param == "tools[1]"
    assert STRUCTURES.tools((TAGS[0], replace(broken, lenient=True))) is not None


def test_the_vocabulary_is_prepared_once_and_grammars_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[Tokenizer] = []
    original = module.llguidance_tokenizer
    monkeypatch.setattr(module, "llguidance_tokenizer", lambda each: prepared.append(each) or original(each))
    structures = Structures(Tokenizer.from_metadata(byte_level()))
    assert prepared == []
    threads = [threading.Thread(target=lambda: structures.compile(AnyJson())()) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(prepared) == 1
    compiled: list[str] = []
    original_compiled = module.compiled
    monkeypatch.setattr(
        module, "compiled", lambda words, text, path: compiled.append(path) or original_compiled(words, text, path)
    )
    structures.compile(AnyJson())
    assert compiled == []
    for index in range(module.KEPT):
        structures.compile(Regex(f"a{index}"))
    structures.compile(AnyJson())
    assert len(compiled) == module.KEPT + 1
