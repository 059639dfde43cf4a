"""What a grammar of a schema lets through fits the schema, whatever is chosen."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from tests.text.schemas import schemas
from tests.text.walks import STRUCTURES, TOKENIZER, follow_text, walk
from twostroke.text.formats import AnyJson, JsonSchema
from twostroke.text.structure.schemas import MOST_DEPTH, schema_text

SCHEMAS = schemas()
CHECKER = FormatChecker()


@CHECKER.checks("date-time", raises=ValueError)
def _is_moment(value: object) -> bool:
    return not isinstance(value, str) or bool(datetime.fromisoformat(value.upper().replace(":60", ":59")))


@CHECKER.checks("time", raises=ValueError)
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or _is_moment(f"2000-01-01T{value}")


def test_there_are_two_hundred_schemas() -> None:
    assert len(SCHEMAS) >= 200


@pytest.mark.parametrize("name", SCHEMAS)
def test_whatever_the_grammar_allows_fits_the_schema(name: str) -> None:
    made = STRUCTURES.compile(JsonSchema(SCHEMAS[name]))
    for seed in range(3):
        text = _text(walk(made(), seed))
        Draft202012Validator(SCHEMAS[name], format_checker=CHECKER).validate(json.loads(text))


def test_a_schema_that_is_not_the_answers_refuses_it() -> None:
    """The check above can fail: answers to one schema do not fit its neighbour."""
    text = _text(walk(STRUCTURES.compile(JsonSchema(SCHEMAS["bare/integer"]))(), 0))
    assert not Draft202012Validator(SCHEMAS["person"]).is_valid(json.loads(text))


def test_any_json_is_an_object() -> None:
    for seed in range(20):
        assert isinstance(json.loads(_text(walk(STRUCTURES.compile(AnyJson())(), seed))), dict)


def test_white_space_is_that_of_one_line_and_nothing_more() -> None:
    made = STRUCTURES.compile(JsonSchema({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]}))
    assert follow_text(made(), '{"a": [1, 2], "b": {"c": null}}') == ""
    assert follow_text(made(), '{"a":1}') == "1}"
    assert follow_text(made(), '{ "a"') == ' "a"'
    assert follow_text(made(), "\n{") == "\n{"


def test_a_client_cannot_set_the_parsers_options() -> None:
    schema = {"type": "object", "x-guidance": {"whitespace_flexible": True, "lenient": True}}
    assert '"lenient"' not in schema_text(schema, "")
    assert follow_text(STRUCTURES.compile(JsonSchema(schema))(), "{  }") == "  }"


@pytest.mark.parametrize(
    ("remark", "plain"),
    [
        ({"type": "string", "format": "password"}, {"type": "string"}),
        ({"type": "object", "propertyNames": {"type": "string"}}, {"type": "object"}),
        ({"type": "array", "uniqueItems": False, "items": {}}, {"type": "array", "items": {}}),
        ({"items": [{"format": "x"}], "anyOf": [{"format": "x"}]}, {"items": [{}], "anyOf": [{}]}),
    ],
)
def test_words_that_constrain_nothing_are_left_out(remark: dict[str, Any], plain: dict[str, Any]) -> None:
    assert schema_text(remark, "") == schema_text(plain, "")


def test_properties_and_values_named_like_keywords_stay() -> None:
    schema = {
        "properties": {"format": {"const": {"format": "x", "uniqueItems": False}}, "uniqueItems": False},
        "required": ["format"],
    }
    assert json.loads(schema_text(schema, "")).items() >= schema.items()


def test_a_lenient_schema_is_held_as_far_as_a_grammar_can() -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    assert '"lenient": true' in schema_text(schema, "", lenient=True)


def test_depth_is_counted_without_recursion() -> None:
    schema: dict[str, Any] = {}
    for _ in range(MOST_DEPTH // 2 - 1):
        schema = {"properties": {"a": schema}}
    STRUCTURES.compile(JsonSchema(schema))


def _text(ids: list[int]) -> str:
    return b"".join(map(TOKENIZER.text_bytes, ids)).decode()
