"""Pages for a browser: they say what is served, and fetch nothing from elsewhere."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.serve.scripted import service
from twostroke.serve import pages
from twostroke.serve.openapi import document

DOCUMENT = document("1.2.3")


class Tags(HTMLParser):
    """What a page refers to, and whether its tags are balanced."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.targets: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.targets += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("page", [pages.index(service()), pages.docs(DOCUMENT)])
def test_a_page_is_whole_and_fetches_nothing(page: str) -> None:
    tags = Tags(page)
    assert tags.open == []
    assert not tags.names & {"script", "link", "img", "iframe"}
    assert all(target.startswith("/") for target in tags.targets)


def test_the_first_page_says_what_is_served_and_where_more_is_told() -> None:
    served = replace(service(), models=("coder", "*"), context_reason="64 tokens (the model's own)")
    page = pages.index(served)
    assert "coder, any other name" in page
    assert "64 tokens (the model&#x27;s own)" in page
    assert "1.2.3" in page
    assert set(Tags(page).targets) >= {"/docs", "/metrics", "/v1/models"}
    assert "256 tokens" in pages.index(service())


def test_names_cannot_become_markup() -> None:
    assert "<script>" not in pages.index(replace(service(), models=("<script>alert(1)</script>",)))


def test_the_docs_name_every_operation_field_and_status() -> None:
    page = pages.docs(DOCUMENT)
    for path, item in DOCUMENT["paths"].items():
        for method in set(item) & set(pages.METHODS):
            assert f"{method.upper()} {path}" in page
    for field in DOCUMENT["components"]["schemas"]["ChatRequest"]["properties"]:
        assert f"<td>{field}" in page
    assert "messages (required)" in page
    assert "529" in page


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": ["integer", "null"], "minimum": 0, "maximum": 9}, "integer ≥ 0 ≤ 9"),
        ({"type": ["string", "null"], "enum": ["a", "b", None]}, "a | b"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/Tool"}}, "array of Tool"),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
         "string or array of string"),
        ({"type": "number", "exclusiveMinimum": 0}, "number > 0"),
        ({}, "anything"),
    ],
)  # fmt: skip
def test_a_schema_in_a_few_words(schema: dict[str, Any], words: str) -> None:
    assert pages.kind(schema) == words
