"""Drafts from the text that the client expects.

A cursor stands where the answer has got to in the prediction.  While the answer follows, the drafts are what comes
next; after a divergence the cursor moves to the longest place where the prediction reads like the answer's end, the
nearest ahead of where it stood.  The prediction is a source of drafts and nothing else: it is in no key and no history.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from twostroke.engine.protocols import SequenceView
from twostroke.errors import InvalidParameter
from twostroke.speculate.lookup import NO_MATCH, Guess
from twostroke.types import Report

LONGEST = 8  # tokens compared to find the way again; after as many on end the way counts as safe


def check_prediction(tokens: Sequence[int], context: int) -> tuple[int, ...]:
    """`tokens`, if an answer could be as long.  Raises `InvalidParameter` with both numbers."""
    if len(tokens) > context:
        message = f"the prediction has {len(tokens)} tokens and the context is {context}; shorten it"
        raise InvalidParameter(message, param="prediction")
    return tuple(tokens)


@dataclass(slots=True)
class Cursor:
    """A place in one prediction."""

    prediction: tuple[int, ...]
    at: int = 0  # the prediction's next token, where the answer follows it
    read: int = 0  # tokens of the sequence that the cursor has seen
    run: int = LONGEST  # tokens on end in which answer and prediction agree; 0: lost
    places: dict[int, list[int]] = field(default_factory=dict)  # where each token occurs

    def __post_init__(self) -> None:
        for place, token in enumerate(self.prediction):
            self.places.setdefault(token, []).append(place)

    def follow(self, tokens: Sequence[int]) -> None:
        """Read what the answer grew by; find the way again where it left the prediction."""
        for i in range(self.read, len(tokens)):
            if self.run and self.at < len(self.prediction) and self.prediction[self.at] == tokens[i]:
                self.at += 1
                self.run += 1
            else:
                self._align(tokens[max(0, i + 1 - LONGEST) : i + 1])
        self.read = len(tokens)

    def _align(self, tail: Sequence[int]) -> None:
        """Move after the place that reads most like `tail`; stay, and be lost, where not even its last token occurs."""
        self.run = 0
        start = self.at
        for place in self._nearby(tail[-1], start):
            matched = common_end(self.prediction, place, tail)
            if matched > self.run:
                self.at, self.run = place + 1, matched

    def _nearby(self, token: int, start: int) -> Sequence[int]:
        """Where `token` occurs, the nearest places first: 16 from `start` on, then 16 before it."""
        places = self.places.get(token, [])
        cut = bisect_left(places, start)
        return places[cut : cut + 16] + places[max(0, cut - 16) : cut][::-1]


def common_end(text: Sequence[int], place: int, tail: Sequence[int]) -> int:
    """How many tokens up to and with `text[place]` agree with the end of `tail`."""
    most = min(len(tail), place + 1)
    return next((n for n in range(most) if text[place - n] != tail[-1 - n]), most)


class Prediction:
    """The lookup named `prediction`."""

    name = "prediction"

    def __init__(self) -> None:
        self._cursors: dict[int, Cursor] = {}

    def guess(self, sequence: SequenceView, limit: int) -> Guess:
        if not sequence.prediction:
            return NO_MATCH
        cursor = self._cursors.get(sequence.id)
        if cursor is None:
            cursor = self._cursors[sequence.id] = Cursor(tuple(sequence.prediction), read=sequence.prompt_length)
        cursor.follow(sequence.tokens)
        tokens = cursor.prediction[cursor.at : cursor.at + limit] if cursor.run else ()
        return Guess(tokens, strength=(cursor.run >= 2) + (cursor.run >= LONGEST)) if tokens else NO_MATCH

    def read(self, sequence: SequenceView) -> None:
        pass  # a prediction is of the answer: the prompt tells nothing

    def observe(self, report: Report) -> None:
        pass

    def forget(self, sequence: int) -> None:
        self._cursors.pop(sequence, None)

    def purge(self, namespace: str) -> None:
        pass  # keeps nothing beyond the sequences that run
