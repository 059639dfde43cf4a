"""An answer's content blocks as they grow: pieces become blocks, one open at a time, and the events that tell of them.

The whole content is what the events add up to.  White space alone makes no block (clients may not send one back), but
for an answer that is nothing else.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from hashlib import sha256

from twostroke.serve.submission import Json
from twostroke.text.pieces import CallArguments, CallEnd, CallStart, Piece, Thought, Words

EMPTY: dict[str, Json] = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
}


class Content:
    """The blocks of one answer.  `call_id` names a call by its index; `thoughts`: whether the client wants them."""

    def __init__(self, call_id: Callable[[int], str], *, thoughts: bool = True) -> None:
        self._blocks: list[Json] = []
        self._call_id = call_id
        self._thoughts = thoughts
        self._kind = ""  # of the block that is being written, "" between blocks
        self._started = False  # its start was told
        self._text: list[str] = []  # what it holds; not yet told unless it was started

    def add(self, piece: Piece) -> Iterator[Json]:
        """The events of a piece."""
        match piece:
            case Words(text):
                yield from self._write("text", text)
            case Thought(text):
                yield from self._write("thinking", text)
            case CallStart(index, name):
                yield from self._close()
                self._kind = "tool_use"
                yield self._start({"type": "tool_use", "id": self._call_id(index), "name": name, "input": {}})
            case CallArguments(_, text):
                self._text.append(text)
                if text:
                    yield self._delta({"type": "input_json_delta", "partial_json": text})
            case CallEnd():
                yield from self._close()

    def end(self) -> Iterator[Json]:
        """The events that the end of the answer makes."""
        if not self._blocks and self._kind == "text" and any(self._text):
            yield from self._tell("".join(self._text))
        yield from self._close()

    @property
    def blocks(self) -> list[Json]:
        """The blocks that are complete."""
        return self._blocks

    def _write(self, kind: str, text: str) -> Iterator[Json]:
        if self._kind != kind:
            yield from self._close()
            self._kind = kind
        self._text.append(text)
        if self._started:
            yield from self._grow(text)
        elif (held := "".join(self._text)).strip():
            yield from self._tell(held)

    def _tell(self, text: str) -> Iterator[Json]:
        yield self._start(EMPTY[self._kind])
        yield from self._grow(text)

    def _grow(self, text: str) -> Iterator[Json]:
        if text and (self._thoughts or self._kind != "thinking"):
            yield self._delta({"type": f"{self._kind}_delta", self._kind: text})

    def _start(self, block: Json) -> Json:
        self._started = True
        self._blocks.append(dict(block))
        return {"type": "content_block_start", "index": len(self._blocks) - 1, "content_block": block}

    def _delta(self, delta: Json) -> Json:
        return {"type": "content_block_delta", "index": len(self._blocks) - 1, "delta": delta}

    def _close(self) -> Iterator[Json]:
        if self._started:
            yield from self._complete(self._blocks[-1], "".join(self._text))
            yield {"type": "content_block_stop", "index": len(self._blocks) - 1}
        self._kind, self._started, self._text = "", False, []

    def _complete(self, block: Json, text: str) -> Iterator[Json]:
        if self._kind == "tool_use":
            block["input"] = _arguments(text)
        elif self._kind == "text":
            block["text"] = text
        else:
            block["thinking"] = text if self._thoughts else ""
            block["signature"] = signature(text)
            yield self._delta({"type": "signature_delta", "signature": block["signature"]})


def signature(thought: str) -> str:
    """An opaque string that stands for a thought; clients send it back unread."""
    return base64.b64encode(sha256(thought.encode()).digest()).decode()


def _arguments(text: str) -> Json:
    """A call's arguments as an object: an empty one where the answer was cut off inside them."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
