"""Messages to prompt text, by the chat template that the model file carries.

Invariant: only the template writes special tokens.  The caller's strings are marked before it runs (`guard`), and
`Tokenizer.encode_marked` reads the marks.  Knows nothing about ids, nor how a template is kept within bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from twostroke.errors import InvalidParameter
from twostroke.text.guard import Guard
from twostroke.text.messages import plain_messages
from twostroke.text.sandbox import compile_template, run_template
from twostroke.text.vocabulary import Vocabulary

SLOT = object()  # in place of a message's text that is put in after rendering
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + (message['content'] or '')"
    " + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt's text in which `mark` (if not empty) stands where the caller's text must not become a special token."""

    marked: str
    mark: str
    slot: str = ""  # a character that stands where the messages held `SLOT`
    tools: Sequence[Any] = ()  # the tools as the template was given them

    @property
    def text(self) -> str:
        """The prompt as the template wrote it."""
        return self.marked.replace(self.mark, "") if self.mark else self.marked


class ChatTemplate:
    """One model's template; with `source` None the model has none, and rendering says so.

    `special` are the names of special tokens; `variables` are what the template may use besides its arguments.

    Raises:
        ModelError: the template does not parse.
    """

    def __init__(
        self,
        source: str | None,
        special: Iterable[str] = (),
        variables: Mapping[str, object] | None = None,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self.source = source
        self._guard = Guard(special)
        self._variables = {"strftime_now": lambda form: now().strftime(form), **(variables or {})}
        self._template = None if source is None else compile_template(source)

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, object], vocabulary: Vocabulary) -> ChatTemplate:
        """The template of a model file; ChatML where the file has none but its tokens are ChatML's."""
        source = metadata.get("tokenizer.chat_template")
        if not isinstance(source, str):
            source = CHATML if "<|im_start|>" in vocabulary.special_ids else None
        named = {"bos_token": vocabulary.bos, "eos_token": vocabulary.eos}
        variables = {name: "" if i is None else vocabulary.tokens[i] for name, i in named.items()}
        return cls(source, vocabulary.special_ids, variables)

    def render(
        self,
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[Mapping[str, object]] | None = None,
        *,
        add_generation_prompt: bool = True,
        **arguments: object,
    ) -> Rendered:
        """The prompt of a conversation in OpenAI's message form; content is a string, text parts or None.

        Raises:
            InvalidParameter: a message is malformed, the template refuses it (in the template's own words) or does not
                end, or the model has no template.
        """
        given = {**arguments, "messages": plain_messages(messages), "tools": [*tools] if tools else None}
        return self.rendered(given, add_generation_prompt=add_generation_prompt)

    def rendered(self, given: Mapping[str, object], *, add_generation_prompt: bool = True) -> Rendered:
        """The prompt of a template's own variables, `messages` and `tools` among them; a text may be `SLOT`.

        Raises:
            InvalidParameter: as `render`.
        """
        if self._template is None:
            raise InvalidParameter("this model has no chat template; use /v1/completions", param="messages")
        mark, slot = self._guard.marks(given, 2)
        own = _filled(self._guard.marked(given, mark), slot)
        variables = {**self._variables, **own, "add_generation_prompt": add_generation_prompt}
        return Rendered(run_template(self._template, variables), mark, slot, own.get("tools") or ())

    @cached_property
    def knows_tools(self) -> bool:
        """Whether the template writes the tools it is given."""
        return self.source is not None and "tools" in self.source

    @cached_property
    def opening(self) -> str:
        """What the template writes to open an answer, "" where that cannot be told."""
        probe: dict[str, object] = {"messages": [{"role": "user", "content": "x"}], "tools": None}
        try:
            closed = self.rendered(probe, add_generation_prompt=False).text
            return self.rendered(probe).text.removeprefix(closed)
        except InvalidParameter:
            return ""

    def marked(self, text: str, rendered: Rendered) -> str:
        """The caller's text as it stands in a rendered prompt where the template wrote it unchanged."""
        return self._guard.marked_text(text, rendered.mark)


def _filled(value: Any, slot: str) -> Any:
    """A copy of plain data in which `slot` stands for every `SLOT`."""
    if value is SLOT:
        return slot
    if isinstance(value, dict):
        return {key: _filled(item, slot) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, slot) for item in value]
    return value
