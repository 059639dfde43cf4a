"""A family is chosen by what the template writes; a call of any family is read back as its own markers write it."""

from __future__ import annotations

from typing import Any

import llguidance
import pytest

from tests.text.tools.reading import TOOLS, call, read, words
from twostroke.errors import InvalidParameter
from twostroke.text.conversation import Tool
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


TRIGGERED = [family for family in FAMILIES if family.trigger and family.arguments]
CITY = {QWEN3_CODER: "<parameter=city>\nRome\n</parameter>\n"}


def allowed(family: Family, text: str) -> bool:
    """Whether the family's tags, in free text, allow the text."""
    tags = family.tags(TOOLS, _tag)
    grammar = llguidance.StructTag.to_grammar(list(tags), assume_special=False)
    matcher = llguidance.LLMatcher(llguidance.LLTokenizer("byte"), llguidance.grammar_from("lark", grammar))
    assert not matcher.get_error()
    taken = matcher.try_consume_tokens(list(text.encode()))
    return taken == len(text.encode()) and bool(matcher.is_accepting())


def _tag(begin: str, arguments: Any, end: str, trigger: str) -> llguidance.StructTag:
    given = arguments if isinstance(arguments, str) else dict(arguments)
    return llguidance.StructTag(trigger=trigger, begin=begin, grammar=given, end=end)


@pytest.mark.parametrize("family", TRIGGERED, ids=lambda family: family.name)
def test_tags_allow_calls_of_the_tools_with_arguments_that_fit(family: Family) -> None:
    arguments = CITY.get(family, '{"city": "Rome"}')
    text = "I look." + family.opening("get_weather") + arguments + family.closing
    assert allowed(family, text + " Done.")
    assert read(family, text) == [words("I look."), call("get_weather", '{"city": "Rome"}')]


@pytest.mark.parametrize("family", TRIGGERED, ids=lambda family: family.name)
def test_tags_refuse_other_names_and_arguments_that_do_not_fit(family: Family) -> None:
    empty = "" if family is QWEN3_CODER else "{}"
    assert allowed(family, "No call at all.")
    assert not allowed(family, family.opening("other") + empty + family.closing)
    assert not allowed(family, family.opening("get_weather") + empty + family.closing)
    assert allowed(family, family.opening("now") + empty + family.closing)


@pytest.mark.parametrize("family", TRIGGERED, ids=lambda family: family.name)
def test_a_tool_that_is_no_schema_is_named(family: Family) -> None:
    with pytest.raises(InvalidParameter, match="parameters of tools") as caught:
        family.tags((Tool("f", parameters={"type": "array"}, path="tools[2]"),), _tag)
    assert caught.value.param == "tools[2]"
