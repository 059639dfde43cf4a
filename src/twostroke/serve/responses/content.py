"""An answer's pieces become output items, one after another.

White space between items opens none: it is held until text follows, and is dropped at the end.  Log-probabilities of
tokens go with the text they brought; those of thoughts and calls are not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from twostroke.serve.responses.output import CustomCall, FunctionCall, Item, Message, Reasoning, Told
from twostroke.serve.responses.tools import Toolbox
from twostroke.serve.submission import Json
from twostroke.text.pieces import CallArguments, CallEnd, CallStart, Piece, Thought, Words


class Content:
    """The output of one answer.  `name` names its items, `call_id` its calls."""

    def __init__(self, name: str, call_id: Callable[[int], str], box: Toolbox, *, seal: bool) -> None:
        self._name, self._call_id, self._box, self._seal = name, call_id, box, seal
        self._items: list[Item] = []
        self._open: Item | None = None
        self._blank = ""  # white space no item has yet
        self._logprobs: list[Json] = []  # of tokens whose text is not told yet

    @property
    def bodies(self) -> list[Json]:
        """The items so far."""
        return [item.body() for item in self._items]

    def add(self, pieces: Sequence[Piece], logprobs: Sequence[Json], status: str = "completed") -> Iterator[Told]:
        """The events of what has become certain; `logprobs` are those of the tokens that brought it.

        `status` is that of the calls that end: one that the limit cut off is "incomplete".
        """
        self._logprobs += logprobs
        for piece in pieces:
            match piece:
                case Words(text):
                    yield from self._words(text)
                case Thought(text):
                    yield from self._thought(text)
                case CallStart(index, name):
                    yield from self._call(index, name)
                case CallArguments(_, text) if self._open is not None and text:
                    yield from self._open.grow(text)
                case CallEnd():
                    yield from self._close(status)

    def end(self, status: str) -> Iterator[Told]:
        """The events that end the last item.  An answer without any has one message without text."""
        if not self._items:
            yield from self._begin(Message(self._id("msg"), 0))
        yield from self._close(status)

    def _words(self, text: str) -> Iterator[Told]:
        if not isinstance(self._open, Message):
            text, self._blank = self._blank + text, ""
            if not text.strip():
                self._blank = text
                return
            self._logprobs = bearing(text, self._logprobs)
            yield from self._begin(Message(self._id("msg"), len(self._items)))
        if text and self._open is not None:
            told, self._logprobs = self._logprobs, []
            yield from self._open.grow(text, told)

    def _thought(self, text: str) -> Iterator[Told]:
        if not text:
            return
        if not isinstance(self._open, Reasoning):
            yield from self._begin(Reasoning(self._id("rs"), len(self._items), seal=self._seal))
        assert self._open is not None
        self._logprobs = []
        yield from self._open.grow(text)

    def _call(self, index: int, name: str) -> Iterator[Told]:
        known, place, call = self._box.of(name), len(self._items), self._call_id(index)
        if known.custom:
            yield from self._begin(CustomCall(self._id("ctc"), place, call, known))
        else:
            yield from self._begin(FunctionCall(self._id("fc"), place, call, known))

    def _begin(self, item: Item) -> Iterator[Told]:
        if not isinstance(item, Message):
            self._logprobs = []
        yield from self._close("completed")
        self._items.append(item)
        self._open = item
        yield from item.open()

    def _close(self, status: str) -> Iterator[Told]:
        if self._open is not None:
            item, self._open = self._open, None
            yield from item.close(status)

    def _id(self, kind: str) -> str:
        return f"{kind}_{self._name}{len(self._items):02x}"


def bearing(text: str, logprobs: Sequence[Json]) -> list[Json]:
    """The last of the entries, as many as bear the text: those before are of markers that nobody is shown."""
    missing, kept = len(text.encode("utf-8")), len(logprobs)
    while missing > 0 and kept > 0:
        kept -= 1
        missing -= len(logprobs[kept]["bytes"])
    return list(logprobs[kept:])
