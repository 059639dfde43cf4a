"""The shape of a chat's choices: a message, or the deltas that add up to it.

A forced call of a named tool ends with `tool_calls`, as any call does; OpenAI says "stop" there, which many clients
take for an answer without a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twostroke.serve.answer import Choice
from twostroke.serve.openai.logprobs import of_chat
from twostroke.serve.openai.writer import AnswerWriter
from twostroke.serve.submission import Json
from twostroke.text.conversation import ToolCall
from twostroke.text.pieces import CallArguments, CallEnd, CallStart, Piece, Thought, Words
from twostroke.types import Logprobs


class ChatWriter(AnswerWriter):
    """Writes `/v1/chat/completions`."""

    body_object = "chat.completion"
    chunk_object = "chat.completion.chunk"

    def opening(self, choice: Choice) -> Iterator[Json]:
        yield self.body(choice, {"delta": {"role": "assistant", "content": ""}})

    def parts(self, choice: Choice, pieces: Sequence[Piece]) -> Sequence[Json]:
        return [{"delta": delta} for piece in merged(pieces) if (delta := self._delta(choice, piece))]

    def nothing(self) -> Json:
        return {"delta": {"content": ""}}

    def nothing_more(self) -> Json:
        return {"delta": {}}

    def message(self, choice: Choice) -> Json:
        found: Json = {
            "role": "assistant",
            "content": choice.words if choice.words or not choice.calls else None,
            "refusal": None,
        }
        if choice.thoughts:
            found["reasoning_content"] = choice.thoughts
        calls = choice.tool_calls
        if calls and self.details.legacy:
            found["function_call"] = _function(calls[0])
        elif calls:
            found["tool_calls"] = [{"id": c.id, "type": "function", "function": _function(c)} for c in calls]
        return {"message": found}

    def logprobs(self, choice: Choice, entries: Sequence[Logprobs]) -> Json | None:
        return of_chat(entries, self.text) if entries else None

    def all_logprobs(self, choice: Choice) -> Json | None:
        return of_chat(choice.logprobs, self.text) if self.details.logprobs else None

    def extra(self) -> Json:
        return self.first() | self.prompt_logprobs(self.choices[0])

    def first(self) -> Json:
        return {"prompt_token_ids": list(self.choices[0].request.prompt)} if self.details.token_ids else {}

    def _delta(self, choice: Choice, piece: Piece) -> Json | None:
        match piece:
            case Words(text):
                return {"content": text}
            case Thought(text):
                return {"reasoning_content": text}
            case CallStart(index, name):
                return self._call(index, {"name": name, "arguments": ""}, choice.calls[index].id)
            case CallArguments(index, text):
                return self._call(index, {"arguments": text})
            case CallEnd():
                return None

    def _call(self, index: int, function: Json, name: str | None = None) -> Json | None:
        if self.details.legacy:  # which knows one call
            return None if index else {"function_call": function}
        head = {} if name is None else {"id": name, "type": "function"}
        return {"tool_calls": [{"index": index, **head, "function": function}]}


def _function(call: ToolCall) -> Json:
    return {"name": call.name, "arguments": call.arguments}


def merged(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """The pieces with neighbours of one kind as one, and without empty ones."""
    found: list[Piece] = []
    for piece in pieces:
        last = found[-1] if found else None
        match last, piece:
            case (_, Words("") | Thought("")) | (_, CallArguments(_, "")):
                pass
            case Words(before), Words(text):
                found[-1] = Words(before + text)
            case Thought(before), Thought(text):
                found[-1] = Thought(before + text)
            case CallArguments(index, before), CallArguments(same, text) if same == index:
                found[-1] = CallArguments(index, before + text)
            case _:
                found.append(piece)
    return found
