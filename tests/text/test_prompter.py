"""What a prompt is made of: answers that come back, parts that are found, templates that know no tools."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.vocabularies import SPECIAL, byte_level
from twostroke.errors import InvalidParameter
from twostroke.text.codec import Codec
from twostroke.text.conversation import Conversation, Message, Part, Role, Tool, ToolCall, ToolChoice
from twostroke.text.formats import Regex
from twostroke.text.prompt import Prompt
from twostroke.text.template import CHATML, ChatTemplate
from twostroke.text.tokenizer import Tokenizer

TOOL = Tool("look", "Looks.", {"type": "object"}, path="tools[0]")
CALL = ToolCall("call_1", "look", '{"at": 1}')
WITH_TOOLS = "{% if tools %}<tools>{% for t in tools %}{{ t | tojson }}{% endfor %}<tool_call>{% endif %}" + CHATML
FIRST_ONLY = (
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('no') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
DROPS_ANSWERS = (
    "{% for m in messages if m.role != 'assistant' %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}<|im_start|>"
)


def codec(template: str | None = CHATML) -> Codec:
    return Codec(Tokenizer.from_metadata(byte_level()), ChatTemplate(template, SPECIAL))


def said(role: Role, *texts: str, index: int = 0, ttl_s: float | None = None) -> Message:
    path = f"messages[{index}]"
    return Message(role, tuple(Part(t, f"{path}.content[{i}]", ttl_s) for i, t in enumerate(texts)), path=path)


def text(over: Codec, prompt: Prompt) -> str:
    return over.tokenizer.decode(prompt.ids, special=True)


def turns(answer: str, *, index: int = 1) -> Conversation:
    return Conversation((said("user", "hello"), said("assistant", answer, index=index), said("user", "more", index=2)))


def test_a_prompt_is_what_the_template_writes() -> None:
    over = codec()
    assert text(over, over.prompt(turns("hi"))) == (
        "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\nhi<|im_end|>\n"
        "<|im_start|>user\nmore<|im_end|>\n<|im_start|>assistant\n"
    )


def test_an_answer_that_comes_back_keeps_its_ids_and_nobody_elses() -> None:
    over = codec()
    first = over.prompt(Conversation((said("user", "hello"),)), "a")
    written = tuple(over.tokenizer.encode("hel") + over.tokenizer.encode("lo"))  # whole it would be one token
    over.remember("a", "hello", "", (), (*written, *over.end_ids))
    known = (*first.ids, *written)
    assert over.prompt(turns("hello"), "a").ids[: len(known)] == known
    assert over.prompt(turns("hello"), "b").ids[: len(known)] != known
    assert text(over, over.prompt(turns("hello"), "a")) == text(over, over.prompt(turns("hello"), "b"))
    over.forget()
    assert over.prompt(turns("hello"), "a").ids == over.prompt(turns("hello"), "b").ids


def test_a_template_that_drops_an_answer_is_given_its_text() -> None:
    over = codec(DROPS_ANSWERS)
    over.remember("", "hello", "", (), over.tokenizer.encode("hel"))
    assert (
        text(over, over.prompt(turns("hello"))) == "<|im_start|>hello<|im_end|><|im_start|>more<|im_end|><|im_start|>"
    )


def test_user_text_is_never_taken_for_an_answer() -> None:
    over = codec()
    over.remember("", "hello", "", (), (1, 2, 3))
    conversation = Conversation((said("user", "hello"), said("user", "more", index=1)))
    assert "hello" in text(over, over.prompt(conversation))


def test_the_last_message_may_be_the_beginning_of_the_answer() -> None:
    over = codec()
    conversation = Conversation((said("user", "hi"), said("assistant", "One, ", index=1)), continue_final=True)
    assert text(over, over.prompt(conversation)).endswith("<|im_start|>assistant\nOne,")


def test_a_template_without_tools_is_told_of_them_in_its_system_message() -> None:
    over = codec()
    said_so = Message("tool", (Part("seen"),), call_id="call_1", path="messages[2]")
    called = Message("assistant", calls=(CALL,), path="messages[1]")
    written = text(over, over.prompt(Conversation((said("user", "hi"), called, said_so), (TOOL,))))
    assert written.startswith("<|im_start|>system\n# Tools")
    assert json.dumps({"name": "look", "description": "Looks."})[1:-1] in written
    assert '<tool_call>\n{"name": "look", "arguments": {"at": 1}}\n</tool_call><|im_end|>' in written
    assert "<|im_start|>user\n<tool_response>\nseen\n</tool_response><|im_end|>" in written


def test_late_system_messages_speak_as_users_where_the_template_takes_none() -> None:
    over = codec(FIRST_ONLY)
    conversation = Conversation((said("system", "be"), said("user", "a", index=1), said("system", "kind", index=2)))
    assert "<|im_start|>user\na\nkind<|im_end|>" in text(over, over.prompt(conversation))


def test_parts_are_found_where_the_template_put_them() -> None:
    over = codec(WITH_TOOLS)
    messages = (said("system", "You are.", "Kind.", ttl_s=300.0), said("user", "hello", index=1))
    prompt = over.prompt(Conversation(messages, (TOOL,)))
    ends = {part.path: text(over, Prompt(prompt.ids[: part.end])) for part in prompt.parts}
    assert ends["tools[0]"].endswith('"parameters": {"type": "object"}}}')
    assert ends["messages[0].content[0]"].endswith("You are.")
    assert ends["messages[0].content[1]"].endswith("Kind.")
    assert ends["messages[1].content[0]"].endswith("hello")
    assert [part.path for part in prompt.breakpoints] == ["messages[0].content[0]", "messages[0].content[1]"]
    assert prompt.part_at(0) == "tools[0]"
    assert prompt.part_at(len(prompt.ids) - 1) == ""


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12), min_size=1, max_size=5))
def test_every_part_ends_with_the_token_that_holds_its_last_byte(texts: list[str]) -> None:
    over = codec()
    messages = tuple(said("user", each, index=i) for i, each in enumerate(texts))
    prompt = over.prompt(Conversation(messages))
    ends = [part.end for part in prompt.parts]
    assert ends == sorted(ends)
    for part in prompt.parts:
        own = texts[int(part.path.split("[")[1].split("]")[0])]
        before = b"".join(map(over.piece, prompt.ids[: part.end]))
        if own.strip():
            assert own.strip().encode() in before


def test_what_may_follow_depends_on_format_and_tools() -> None:
    over = codec(WITH_TOOLS)
    asked = Conversation((said("user", "hi"),), (TOOL,))
    forced = Conversation((said("user", "hi"),), (TOOL,), ToolChoice("required"))
    assert over.grammar(None, None) is None
    assert over.grammar(None, Conversation((said("user", "hi"),))) is None
    free, calls, shaped = over.grammar(None, asked), over.grammar(None, forced), over.grammar(Regex("ab"), asked)
    assert free is not None
    assert calls is not None
    assert shaped is not None
    hello, call = over.encode("hello"), over.encode('<tool_call>\n{"name": "look"')
    assert (free().valid(hello), calls().valid(hello), shaped().valid(hello)) == (len(hello), 0, 0)
    assert (free().valid(call), calls().valid(call)) == (len(call), len(call))


def test_a_bad_tool_is_named() -> None:
    bad = Conversation((said("user", "hi"),), (TOOL, Tool("x", None, {"type": 7}, path="tools[1]")))
    with pytest.raises(InvalidParameter) as caught:
        codec(WITH_TOOLS).grammar(None, bad)
    assert (caught.value.param or "").startswith("tools[1]")


def test_a_model_without_tokens_for_it_cannot_fill_in_the_middle() -> None:
    with pytest.raises(InvalidParameter, match="fill-in-the-middle"):
        codec().infill("a", "b")
