"""A family is chosen by what the template writes; a call of any family is read back as its own markers write it."""

from __future__ import annotations

import pytest

from tests.text.tools.reading import TOOLS, call, read, words
from twostroke.text.tools import FAMILIES, Family, family_of
from twostroke.text.tools.gemma import GEMMA, GEMMA4
from twostroke.text.tools.generic import GENERIC
from twostroke.text.tools.hermes import HERMES
from twostroke.text.tools.llama3 import LLAMA3
from twostroke.text.tools.mistral import MISTRAL, MISTRAL_NAMED
from twostroke.text.tools.qwen3_coder import QWEN3_CODER


@pytest.mark.parametrize(
    ("source", "special", "family"),
    [
        (None, ["<tool_call>"], GENERIC),
        ("{{ messages }}", ["<tool_call>", "[TOOL_CALLS]"], GENERIC),
        ("{{ tools }} in a form that nobody knows", [], GENERIC),
        ("{% if tools %}<tool_call>{% endif %}", [], HERMES),
        ("{% if tools %}<tool_call><function=x><parameter=y>{% endif %}", [], QWEN3_CODER),
        ("<|start_header_id|>{{ tools }}<|python_tag|>", [], LLAMA3),
        ("<|start_header_id|>{{ tools }}", ["<|python_tag|>"], LLAMA3),
        ("{{ tools }}[TOOL_CALLS]", ["[ARGS]"], MISTRAL),
        ("{{ tools }}[TOOL_CALLS]x[ARGS]", [], MISTRAL_NAMED),
        ("{{ tools }}<start_function_call>", [], GEMMA),
        ("{{ tools }}<|tool_call>call:<tool_call|>", [], GEMMA4),
    ],
)
def test_the_template_says_which_family(source: str | None, special: list[str], family: Family) -> None:
    assert family_of(source, special) is family


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_call_without_arguments_is_read_as_the_family_opens_and_closes_it(family: Family) -> None:
    nothing = "" if family is QWEN3_CODER else "{}"
    text = family.opening("now") + nothing + family.closing
    assert text.startswith(family.trigger)
    assert read(family, text + family.separator + text) == [call("now"), call("now")]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_without_tools_everything_is_words(family: Family) -> None:
    text = " " + family.opening("now") + "{}" + family.closing
    assert read(family, text, tools=()) == [words(text)]
    assert not family.reader(TOOLS).flush()
