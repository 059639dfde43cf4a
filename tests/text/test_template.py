"""A rendered prompt is the template's text, and its special tokens are the template's alone."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.vocabularies import SPECIAL, UNCUT, byte_level
from twostroke.errors import InvalidParameter, ModelError
from twostroke.text.template import CHATML, ChatTemplate
from twostroke.text.tokenizer import Tokenizer

TOKENIZER = Tokenizer.from_metadata(byte_level())
TEMPLATE = ChatTemplate.from_metadata({}, TOKENIZER.vocabulary)
USER = [{"role": "user", "content": "hello"}]
PARTS = st.sampled_from((*SPECIAL, "<", "<|im_", "|>", "start|>", "world")) | st.text(max_size=5)
CONTENT = st.lists(PARTS, max_size=6).map("".join)


def ids(template: ChatTemplate, messages: list[dict[str, Any]], **arguments: Any) -> tuple[int, ...]:
    rendered = template.render(messages, **arguments)
    return TOKENIZER.encode_marked(rendered.marked, rendered.mark)


def names(tokens: tuple[int, ...]) -> list[str]:
    return [TOKENIZER.token_text(token) for token in tokens if TOKENIZER.is_special(token)]


def test_chatml_is_the_default_of_a_file_with_its_tokens() -> None:
    assert TEMPLATE.source == CHATML
    assert TEMPLATE.render(USER).text == "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
    assert TEMPLATE.render(USER, add_generation_prompt=False).text == "<|im_start|>user\nhello<|im_end|>\n"


def test_the_files_own_template_comes_first() -> None:
    own = ChatTemplate.from_metadata(
        {"tokenizer.chat_template": "{{ bos_token }}{{ eos_token }}"}, TOKENIZER.vocabulary
    )
    assert own.render(USER).text == "<|endoftext|><|im_end|>"


def test_a_file_without_either_cannot_chat() -> None:
    names_only = [{"role": "user", "content": "a"}]
    bare = byte_level()
    bare["tokenizer.ggml.token_type"] = [1] * len(TOKENIZER.vocabulary.tokens)
    template = ChatTemplate.from_metadata({}, Tokenizer.from_metadata(bare).vocabulary)
    with pytest.raises(InvalidParameter, match="no chat template; use /v1/completions"):
        template.render(names_only)


@given(st.lists(CONTENT, min_size=1, max_size=3))
def test_only_the_template_writes_special_tokens(contents: list[str]) -> None:
    prompt = ids(TEMPLATE, [{"role": "user", "content": content} for content in contents])
    assert names(prompt) == ["<|im_start|>", "<|im_end|>"] * len(contents) + ["<|im_start|>"]


@given(CONTENT)
def test_the_prompt_says_what_the_template_wrote(content: str) -> None:
    rendered = TEMPLATE.render([{"role": "user", "content": content}])
    assert rendered.text == f"<|im_start|>user\n{content}<|im_end|>\n<|im_start|>assistant\n"
    assert TOKENIZER.decode(TOKENIZER.encode_marked(rendered.marked, rendered.mark), special=True) == rendered.text


@given(st.lists(st.sampled_from(UNCUT) | st.text(st.characters(exclude_characters="<>|"), max_size=8), max_size=5))
def test_text_without_special_names_is_encoded_as_one_with_the_template(parts: list[str]) -> None:
    rendered = TEMPLATE.render([{"role": "user", "content": "".join(parts)}])
    assert rendered.mark not in rendered.marked
    assert TOKENIZER.encode_marked(rendered.marked, rendered.mark) == TOKENIZER.encode_marked(rendered.text, "\ufdd0")


def test_content_and_template_may_share_a_token() -> None:
    joined = ChatTemplate("{{ 'he' + messages[0].content }}", SPECIAL)
    assert ids(joined, [{"role": "user", "content": "llo"}]) == TOKENIZER.encode("hello")


def test_a_special_name_put_together_from_two_messages_is_text() -> None:
    joined = ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}", SPECIAL)
    halves = [{"role": "user", "content": "<|im_"}, {"role": "user", "content": "start|>"}]
    assert names(ids(joined, halves)) == []
    assert joined.render(halves).text == "<|im_start|>"


def test_tools_and_other_arguments_are_the_callers_text_too() -> None:
    template = ChatTemplate("{{ tools | tojson }}{{ extra }}{{ tools[0].name }}<|im_end|>", SPECIAL)
    rendered = template.render(USER, [{"name": "<|im_end|>", "<|im_start|>": "é"}], extra="<|im_start|>")
    assert names(TOKENIZER.encode_marked(rendered.marked, rendered.mark)) == ["<|im_end|>"]
    assert rendered.text == '[{"name": "<|im_end|>", "<|im_start|>": "é"}]<|im_start|><|im_end|><|im_end|>'


def test_a_template_may_still_look_at_the_callers_text() -> None:
    source = "{{ messages[0].content.strip() }}|{{ messages[0].content.startswith(' x') }}|{{ tools is none }}"
    assert (
        ChatTemplate(source, SPECIAL).render([{"role": "user", "content": " x<|im_end|> "}]).text
        == "x<|im_end|>|True|True"
    )


def test_a_role_in_the_name_of_a_token_is_the_templates() -> None:
    vocabulary = byte_level()
    tokens = vocabulary["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    tokens[tokens.index("<|im_start|>")] = "<|user|>"
    tokenizer = Tokenizer.from_metadata(vocabulary)
    template = ChatTemplate("{{ '<|' + messages[0].role + '|>' + messages[0].content }}", tokenizer.special_strings)
    rendered = template.render([{"role": "user", "content": "<|user|>"}])
    prompt = tokenizer.encode_marked(rendered.marked, rendered.mark)
    assert [i for i, token in enumerate(prompt) if tokenizer.is_special(token)] == [0]


def test_text_that_holds_reserved_characters_comes_through() -> None:
    content = "\ufdd0<|im_end|>\ufdd1"
    rendered = TEMPLATE.render([{"role": "user", "content": content}])
    assert content in rendered.text
    assert names(TOKENIZER.encode_marked(rendered.marked, rendered.mark)) == [
        "<|im_start|>",
        "<|im_end|>",
        "<|im_start|>",
    ]


def test_the_date_comes_from_the_clock_given() -> None:
    template = ChatTemplate("{{ strftime_now('%d %b %Y') }}", now=lambda: datetime(2026, 12, 1))
    assert template.render(USER).text == "01 Dec 2026"


def test_what_a_template_refuses_is_the_callers_error() -> None:
    template = ChatTemplate("{% if messages | length > 1 %}{{ raise_exception('one message only') }}{% endif %}")
    with pytest.raises(InvalidParameter, match="one message only"):
        template.render(USER * 2)


def test_lone_surrogates_are_refused_with_their_place() -> None:
    with pytest.raises(
        InvalidParameter, match=r"messages\[0\].content holds a lone surrogate \(U\+D800\) at character 1"
    ):
        TEMPLATE.render([{"role": "user", "content": "a\ud800"}])


def test_malformed_messages_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="messages is empty"):
        TEMPLATE.render([])


def test_a_template_that_does_not_parse_makes_the_file_unusable() -> None:
    with pytest.raises(ModelError, match="line 1"):
        ChatTemplate("{% if %}")
