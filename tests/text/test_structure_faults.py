"""What no grammar can be made of is refused in words that name what is at fault, quickly, and with the field's path."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.text.walks import STRUCTURES, follow_text, tokens
from twostroke.errors import InvalidParameter
from twostroke.text.formats import Choices, Format, JsonSchema, Lark, Regex

SECONDS = 2.0  # what the slowest may take; each takes milliseconds


def chain(links: int, word: str = "$defs") -> dict[str, Any]:
    """Objects that refer to each other, one inside the other."""
    inner = {f"d{i}": {"properties": {"x": {"$ref": f"#/{word}/d{i + 1}"}}} for i in range(links)}
    return {"$ref": "#/$defs/d0", "$defs": {**inner, f"d{links}": {"type": "string"}}}


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


def branches(rows: int) -> dict[str, Any]:
    """Alternatives of which every combination counts."""
    options = [[{"properties": {f"p{i}_{j}": {"type": "string"}}} for j in range(9)] for i in range(rows)]
    return {"type": "object", "allOf": [{"anyOf": row} for row in options]}


def rules(count: int, brackets: int = 0) -> str:
    lines = [f"r{i}: {'(' * brackets}r{i + 1} 'b'{')?' * brackets}" for i in range(count)]
    return "\n".join(("start: r0", *lines, f'r{count}: "a"')).replace("'", '"')


SCHEMAS: list[tuple[Any, str]] = [
    ({"type": 7}, "type must be a string"),
    ({"type": "text"}, "Invalid type: text"),
    ({"not": {"type": "string"}}, 'keywords "not"'),
    ({"type": "array", "uniqueItems": True}, 'keywords "uniqueItems"'),
    ({"if": {}, "then": {}}, 'keywords "if", "then"'),
    ({"properties": {"a": {"properties": {"b": {"contains": {}}}}}}, 'keywords "contains"'),
    ({"properties": 7}, "properties must be an object"),
    ({"enum": []}, "nothing fits the schema"),
    ({"type": "integer", "minimum": 5, "maximum": 3}, "minimum (5) is greater than maximum (3)"),
    ({"type": "string", "minLength": 5, "maxLength": 2}, "minLength (5) is greater than maxLength (2)"),
    ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "nothing fits the schema"),
    ({"properties": {"a": False}, "required": ["a"], "type": "object"}, "required property 'a'"),
    (False, "nothing fits the schema false"),
    ("text", "send a JSON object"),
    ({"$ref": "#/$defs/missing"}, "#/$defs/missing"),
    ({"$ref": "https://example.com/schema"}, "https://example.com/schema"),
    ({"$ref": "#"}, "allows no answer"),
    ({"oneOf": [{"type": "string"}, {"minLength": 3}]}, '"oneOf"'),
    ({"type": "string", "pattern": "a(b"}, "'a(b' cannot be used at character 2 ('('): unclosed group"),
    ({"type": "string", "pattern": "(?=a)b"}, "look-around"),
    ({"type": "string", "pattern": "a" * 5000}, '"pattern" of 5000 characters'),
    ({"type": "integer", "multipleOf": 99_999_999}, '"multipleOf"'),
    ({"type": "integer", "allOf": [{"multipleOf": 9973}, {"multipleOf": 9967}]}, '"multipleOf"'),
    ({"const": object()}, "no JSON"),
    ({"minimum": float("nan")}, "no JSON"),
    (nested(65), "more than 64 deep"),
    (nested(100_000), "more than 64 deep"),
    (chain(20_000), "bytes"),
    (chain(2_000), 'levels deep along its "$ref"'),
    (chain(2_000, "%24defs"), 'levels deep along its "$ref"'),
    (branches(40), "too large"),
    ({"enum": [f"value {i}" for i in range(50_000)]}, "bytes"),
    ({"properties": {f"p{i}": {"type": "string"} for i in range(8_000)}}, '8000 "properties"'),
    ({"patternProperties": {f"^a{i}_": {"type": "string"} for i in range(500)}}, '500 "patternProperties"'),
]
OTHERS: list[tuple[Format, str]] = [
    (Regex("a(b"), "'a(b' cannot be used at character 2 ('('): unclosed group"),
    (Regex("a[z-b]"), "at character 3 ('z')"),
    (Regex(r"(a)\1"), "backreferences"),
    (Regex(r"a\bb"), "lookarounds"),
    (Regex(""), "is empty"),
    (Regex("(" * 4000), "unclosed group"),
    (Regex("a?" * 100_000), "200000 characters"),
    (Choices(()), "at least one text"),
    (Choices(("a", "")), "none empty"),
    (Lark("start: missing"), 'line 1, column 8: unknown name: "missing"'),
    (Lark("start: start"), "allows no answer"),
    (Lark('start: "a" & "b"'), "line 1"),
    (Lark('root ::= "a" | ["b"'), "Unexpected end of input"),
    (Lark(""), "cannot be read"),
    (Lark('start: %json {"type": 7}'), "type must be a string"),
    (Lark('start: %json {"not": {}}'), 'keywords "not"'),
    (Lark('start: %json {"type": '), "schema behind %json"),
    (Lark("start: %json " + '{"items":' * 5000 + "{}" + "}" * 5000), "schema behind %json"),
    (Lark("start: " + "(" * 3000 + '"a"' + ")" * 3000), "rules and brackets"),
    (Lark(rules(20_000)), "characters"),
    (Lark(rules(100, 28)), "rules and brackets"),
    (Lark('start: "a"' + " " * 20_000), "characters"),
]


@pytest.mark.parametrize(("schema", "words"), SCHEMAS, ids=[words for _, words in SCHEMAS])
def test_a_schema_is_refused_in_plain_words(schema: Any, words: str) -> None:
    assert words in _refusal(JsonSchema(schema, "the.path"), "the.path")


@pytest.mark.parametrize(("format", "words"), OTHERS, ids=[words for _, words in OTHERS])
def test_other_formats_are_refused_in_plain_words(format: Format, words: str) -> None:
    assert words in _refusal(format, getattr(format, "path", ""))


@pytest.mark.parametrize(
    "make",
    [
        lambda: JsonSchema(chain(190)),
        lambda: JsonSchema(nested(60)),
        lambda: JsonSchema({"type": "integer", "multipleOf": 9973}),
        lambda: JsonSchema({"type": "string", "maxLength": 1_000_000_000}),
        lambda: Lark(rules(490)),
        lambda: Lark(rules(16, 28)),
        lambda: JsonSchema({"properties": {f"p{i}": {"type": "string"} for i in range(2000)}}),
        lambda: Regex("a?" * 2000),
        lambda: Regex("[ab]*a[ab]{200}"),
        lambda: Regex("(((a{1,1000}){1,1000}){1,1000}){1,1000}"),
    ],
)
def test_what_is_just_small_enough_is_taken_in_time(make: Callable[[], Format]) -> None:
    begun = time.monotonic()
    assert tokens(STRUCTURES.compile(make())().allowed(()))
    assert time.monotonic() - begun < SECONDS


def test_grammars_of_either_kind_are_read() -> None:
    for text in ('start: "a" B\nB: /b+/', 'root ::= "a" b\nb ::= "b" | "b" b'):
        grammar = STRUCTURES.compile(Lark(text))()
        assert follow_text(grammar, "abb") == ""
        assert follow_text(STRUCTURES.compile(Lark(text))(), "b") == "b"


def test_choices_may_hold_any_text() -> None:
    texts = ('say "x"', "back\\slash", "line\nbreak", "😀", "<|im_end|>", "a", "ab")
    for text in texts:
        assert follow_text(STRUCTURES.compile(Choices(texts))(), text) == ""


def test_a_regex_may_hold_slashes_and_anchors() -> None:
    assert follow_text(STRUCTURES.compile(Regex("^a/[/]b$"))(), "a//b") == ""


def _refusal(format: Format, path: str) -> str:
    begun = time.monotonic()
    with pytest.raises(InvalidParameter) as caught:
        STRUCTURES.compile(format)
    assert time.monotonic() - begun < SECONDS
    assert caught.value.param == path
    assert len(caught.value.message) < 300
    return caught.value.message
