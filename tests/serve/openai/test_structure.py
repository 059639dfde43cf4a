"""What shape an answer must have, by each of the fields that say so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serve.openai.talk import TaggedText, chat, refused, tagged, text
from twostroke.text.formats import AnyJson, Choices, Format, JsonSchema, Lark, Regex

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def read(**fields: Any) -> Format | None:
    over = tagged()
    for parse in (chat, text):
        parse(over, **fields)
    assert isinstance(over.text, TaggedText)
    (of_chat, conversation), (of_text, none) = over.text.shapes
    assert conversation is not None
    assert (of_chat, none) == (of_text, None)
    return of_chat


def wanted(**more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", **more}}


@pytest.mark.parametrize(
    ("fields", "shape"),
    [
        ({}, None),
        ({"response_format": {"type": "text"}}, None),
        ({"response_format": {"type": "json_object"}}, AnyJson()),
        ({"response_format": wanted(schema=SCHEMA, strict=True)}, JsonSchema(SCHEMA)),
        ({"response_format": wanted(schema=SCHEMA, strict=None)}, JsonSchema(SCHEMA)),
        ({"response_format": wanted()}, AnyJson()),
        ({"structured_outputs": {"json": SCHEMA}}, JsonSchema(SCHEMA, "structured_outputs.json")),
        ({"structured_outputs": {"json": '{"type": "object"}'}},
         JsonSchema({"type": "object"}, "structured_outputs.json")),
        ({"structured_outputs": {"json_object": True}}, AnyJson()),
        ({"structured_outputs": {"regex": "a+", "json_object": False}}, Regex("a+")),
        ({"structured_outputs": {"choice": ["a", "b"]}}, Choices(("a", "b"))),
        ({"structured_outputs": {"grammar": "start: 'a'"}}, Lark("start: 'a'")),
        ({"guided_json": SCHEMA}, JsonSchema(SCHEMA, "guided_json")),
        ({"guided_regex": "a"}, Regex("a", "guided_regex")),
        ({"guided_choice": ["a"]}, Choices(("a",), "guided_choice")),
        ({"guided_grammar": "root ::= 'a'"}, Lark("root ::= 'a'", "guided_grammar")),
        ({"grammar": "root ::= 'a'"}, Lark("root ::= 'a'", "grammar")),
        ({"json_schema": SCHEMA}, JsonSchema(SCHEMA, "json_schema")),
        ({"guided_regex": "a", "response_format": {"type": "text"}}, Regex("a", "guided_regex")),
    ],
)  # fmt: skip
def test_shapes(fields: dict[str, Any], shape: Format | None) -> None:
    assert read(**fields) == shape


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"response_format": wanted(name="a b")}, "response_format.json_schema.name"),
        ({"response_format": wanted(name="x" * 65)}, "response_format.json_schema.name"),
        ({"response_format": wanted(name=None)}, "response_format.json_schema.name"),
        ({"response_format": wanted(schema=5)}, "response_format.json_schema.schema"),
        ({"response_format": wanted(schema="{")}, "response_format.json_schema.schema"),
        ({"response_format": wanted(schema=SCHEMA, strict="yes")}, "response_format.json_schema.strict"),
        ({"structured_outputs": {}}, "structured_outputs"),
        ({"structured_outputs": {"json": SCHEMA, "regex": "a"}}, "structured_outputs"),
        ({"structured_outputs": {"structural_tag": "x"}}, "structured_outputs.structural_tag"),
        ({"structured_outputs": {"json_object": 1}}, "structured_outputs.json_object"),
        ({"guided_choice": []}, "guided_choice"),
        ({"guided_choice": [1]}, "guided_choice"),
        ({"guided_choice": [""]}, "guided_choice"),
        ({"guided_regex": ""}, "guided_regex"),
        ({"guided_regex": 5}, "guided_regex"),
        ({"guided_regex": "a", "guided_choice": ["a"]}, "guided_choice"),
        ({"guided_regex": "a", "response_format": {"type": "json_object"}}, "guided_regex"),
    ],
)
def test_wrong_shapes_are_refused_by_path(fields: dict[str, Any], path: str) -> None:
    for parse in (chat, text):
        error = refused(parse, **fields)
        assert error.param == path
        assert path in error.message
