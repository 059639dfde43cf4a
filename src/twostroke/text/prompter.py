"""A conversation becomes a prompt: the template's text, with the ids of known answers kept and every part located.

An assistant message that returns an answer of this server enters the template as one reserved character and leaves it
as the ids that were generated, so that the next turn's prompt begins with what is cached.  Any other message is
tokenised as text.  Knows the family only through the values it is given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from twostroke.text.conversation import Conversation, Message, Part
from twostroke.text.layout import Layout, Wanted
from twostroke.text.messages import late_systems_as_users, takes_late_systems, template_message, template_tool
from twostroke.text.prompt import Prompt
from twostroke.text.recall import Recall
from twostroke.text.template import SLOT, ChatTemplate, Rendered
from twostroke.text.tools import CLOSE, OPEN, instructions

Found = Mapping[int, tuple[int, ...]]  # the ids of known answers, by index of their message


class Prompter:
    """Renders conversations for one model.  Safe to share between threads."""

    def __init__(self, template: ChatTemplate, layout: Layout, recall: Recall) -> None:
        self._template, self._layout, self._recall = template, layout, recall
        self._tells_tools = template.knows_tools

    def prompt(self, conversation: Conversation, namespace: str) -> Prompt:
        """The ids and the parts.  Raises `InvalidParameter` for what the template refuses."""
        if conversation.tools and not self._tells_tools:
            conversation = _told(conversation)
        if any(message.role == "system" for message in conversation.messages[1:]) and not self._takes_late_systems:
            conversation = replace(conversation, messages=late_systems_as_users(conversation.messages))
        found = self._known(conversation, namespace)
        rendered = self._render(conversation, found)
        if found and rendered.marked.count(rendered.slot) != len(found):  # a template that drops or repeats messages
            found, rendered = {}, self._render(conversation, {})
        answers = [found[index] for index in sorted(found)]
        slot = rendered.slot if found else ""
        return self._layout.prompt(
            rendered, slot, answers, self._tools(conversation, rendered), self._parts(conversation, rendered, found)
        )

    @cached_property
    def _takes_late_systems(self) -> bool:
        """Found out by asking the template, once."""
        return takes_late_systems(lambda messages: self._template.rendered({"messages": messages, "tools": None}).text)

    def _known(self, conversation: Conversation, namespace: str) -> Found:
        last = len(conversation.messages) - 1
        answers = {
            index: self._recall.find(namespace, message.text, message.reasoning, message.calls)
            for index, message in enumerate(conversation.messages)
            if message.role == "assistant" and not (conversation.continue_final and index == last)
        }
        return {index: ids for index, ids in answers.items() if ids is not None}

    def _render(self, conversation: Conversation, found: Found) -> Rendered:
        thinking = {} if conversation.thinking is None else {"enable_thinking": conversation.thinking}
        given = {
            **thinking,
            **conversation.arguments,
            "messages": [
                {"role": "assistant", "content": SLOT} if index in found else template_message(self._plain(message))
                for index, message in enumerate(conversation.messages)
            ],
            "tools": [template_tool(tool) for tool in conversation.tools] or None,
        }
        if not conversation.continue_final:
            return self._template.rendered(given)
        return _opened(self._template.rendered(given, add_generation_prompt=False), conversation, self._template)

    def _plain(self, message: Message) -> Message:
        return message if self._tells_tools else _called(message)

    def _tools(self, conversation: Conversation, rendered: Rendered) -> Sequence[Wanted]:
        """Tools are found where the template writes them as JSON, as all do that are known here."""
        return [
            Wanted(tool.path, json.dumps(marked, ensure_ascii=False), tool.ttl_s)
            for tool, marked in zip(conversation.tools, rendered.tools, strict=True)
        ]

    def _parts(self, conversation: Conversation, rendered: Rendered, found: Found) -> Sequence[Wanted]:
        wanted: list[Wanted] = []
        for index, message in enumerate(conversation.messages):
            if index in found:
                ttls = [*(part.ttl_s for part in message.parts), *(call.ttl_s for call in message.calls)]
                wanted.append(Wanted(message.path, "", max((t for t in ttls if t), default=None), slot=True))
            else:
                wanted += self._of(message, rendered)
        return wanted

    def _of(self, message: Message, rendered: Rendered) -> list[Wanted]:
        marked = self._template.marked
        texts = [Wanted(part.path or message.path, marked(part.text, rendered), part.ttl_s) for part in message.parts]
        calls = [Wanted(message.path, marked(call.name, rendered), call.ttl_s) for call in message.calls]
        return texts + calls


def _told(conversation: Conversation) -> Conversation:
    """The conversation with its tools in the system message, in the words that models without a form of their own get.

    Calls and results become text: the template would drop them.
    """
    first, *rest = (_as_text(message) for message in conversation.messages)
    told = Part(instructions(conversation.tools), "tools")
    if first.role == "system":
        messages = (replace(first, parts=(*first.parts, told)), *rest)
    else:
        messages = (Message("system", (told,), path="tools"), first, *rest)
    return replace(conversation, messages=messages, tools=())


def _as_text(message: Message) -> Message:
    if message.role == "tool":
        result = Part(f"<tool_response>\n{message.text}\n</tool_response>", message.path)
        return replace(message, role="user", parts=(result,), call_id=None)
    return message


def _called(message: Message) -> Message:
    """Calls as the model would have written them."""
    calls = (
        Part(f'{OPEN}\n{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}\n{CLOSE}', message.path)
        for call in message.calls
    )
    return replace(message, parts=(*message.parts, *calls), calls=())


def _opened(rendered: Rendered, conversation: Conversation, template: ChatTemplate) -> Rendered:
    """The prompt without what the template writes after the last message: the answer goes on from there."""
    last = template.marked(conversation.messages[-1].text, rendered).rstrip()
    at = rendered.marked.rfind(last)
    return replace(rendered, marked=rendered.marked[: at + len(last)]) if at >= 0 else rendered
