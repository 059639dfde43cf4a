"""Suffix decoding: what most often followed the longest known end of the text.

The end of the text is looked up in a suffix automaton of the request itself and in those of its namespace's history
(finished prompts and answers), candidates are scored by empirical counts, and a draft may be as long as its match
(Oliaro et al., "SuffixDecoding", arXiv 2411.04975).  So a warm prefix cache speeds decoding too.  The
invariants: no text of another namespace is ever looked at, and a request that keeps out of the prefix cache neither
reads nor feeds the history.  A step costs what the text grew by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from twostroke.engine.protocols import SequenceView
from twostroke.speculate.automaton import ROOT, Automaton, walk
from twostroke.speculate.history import History
from twostroke.speculate.lookup import NO_MATCH, Guess
from twostroke.types import FinishReason, Report

SHORTEST_MATCH = 2
LOOK_BACK = 64  # how far a reader of the history goes back into a prompt
OVERLAP = 32  # tokens of a cached prefix that are fed again, so that matches reach across its end
OWN_BITE = 1024  # prompt tokens indexed in one step, about 4 ms
OWN_MOST = 32_768  # of a longer prompt only the last so many tokens are indexed
BITE, IDLE_BITE = 256, 8192  # tokens of finished text taken in beside running answers, and without
REASON_LATER = "catching_up"


@dataclass(slots=True)
class Reader:
    """Where the text's end is found in one automaton."""

    automaton: Automaton
    state: int = ROOT
    matched: int = 0

    def read(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self.state, self.matched = self.automaton.advance(self.state, self.matched, token)


@dataclass(slots=True)
class Place:
    """What is kept for one sequence."""

    view: SequenceView
    own: Automaton = field(default_factory=Automaton)
    readers: list[Reader] = field(default_factory=list)
    read: int = 0  # tokens that the readers have read
    first: int = 0  # where the indexed text begins
    feeds: bool = True  # the text may enter the history when it ends

    def __post_init__(self) -> None:
        self.first = max(0, len(self.view.tokens) - OWN_MOST)

    def catch_up(self) -> bool:
        """Index the text, at most a bite of it; whether all of it is."""
        tokens, known = self.view.tokens, self.first + self.own.size
        for token in tokens[known : known + OWN_BITE]:
            self.own.extend(token)
        return self.first + self.own.size == len(tokens)

    def follow(self, chapters: Sequence[Automaton]) -> None:
        """Bring the readers to the end of the text, one for each chapter that there is now."""
        tokens = self.view.tokens
        for reader in self.readers:
            reader.read(tokens[self.read :])
        self.read = len(tokens)
        if [reader.automaton for reader in self.readers] != list(chapters):
            kept = {id(reader.automaton): reader for reader in self.readers}
            self.readers = [kept.get(id(chapter)) or self._fresh(chapter) for chapter in chapters]

    def matches(self) -> list[tuple[int, Automaton, int]]:
        """The length of the longest match in each automaton, and its state there."""
        own = self.own.link[self.own.last]
        found = [(self.own.length[own], self.own, own)] if own > ROOT else []
        for reader in self.readers:
            found.append((reader.matched, reader.automaton, reader.automaton.settle(reader.state, reader.matched)))
        return found

    def _fresh(self, chapter: Automaton) -> Reader:
        reader = Reader(chapter)
        reader.read(self.view.tokens[-LOOK_BACK:])
        return reader


class Suffix:
    """The lookup named `suffix`.

    A draft has at most `factor` tokens per token matched, and ends before its probability by the counts falls under
    `least`.
    """

    name = "suffix"

    def __init__(self, history: History | None = None, factor: float = 1.0, least: float = 0.1) -> None:
        self.history = history or History()
        self.factor = factor
        self.least = least
        self._places: dict[int, Place] = {}
        self._left: dict[int, Place] = {}  # forgotten since the last report, which may say that they finished

    def guess(self, sequence: SequenceView, limit: int) -> Guess:
        place = self._place(sequence)
        if not place.catch_up():
            return Guess(reason=REASON_LATER)
        if sequence.prefix_cache:
            place.follow(self.history.chapters(sequence.namespace))
        return self._best(place.matches(), limit)

    def read(self, sequence: SequenceView) -> None:
        self._place(sequence).catch_up()

    def observe(self, report: Report) -> None:
        """Finished sequences enter their namespace's history: the answer, and what the prefix cache did not hold."""
        for row in report.rows:
            if row.finished in (FinishReason.STOP, FinishReason.LENGTH):
                self._feed(self._places.pop(row.sequence, None) or self._left.get(row.sequence))
        self._left.clear()
        self.history.digest(BITE if report.running else IDLE_BITE)

    def forget(self, sequence: int) -> None:
        if (place := self._places.pop(sequence, None)) is not None:
            self._left[sequence] = place

    def purge(self, namespace: str) -> None:
        """Forget the namespace's history.  Sequences that run keep their own text until they end, and feed nothing."""
        self.history.purge(namespace)
        for place in self._places.values():
            if place.view.namespace == namespace:
                place.readers = []
                place.feeds = False

    def _place(self, sequence: SequenceView) -> Place:
        place = self._places.get(sequence.id)
        if place is None:
            place = self._places[sequence.id] = Place(sequence)
        return place

    def _feed(self, place: Place | None) -> None:
        if place is not None and place.feeds and place.view.prefix_cache:
            view = place.view
            self.history.add(view.namespace, tuple(view.tokens[max(0, view.cached - OVERLAP) :]))

    def _best(self, matches: list[tuple[int, Automaton, int]], limit: int) -> Guess:
        """The candidate whose counts promise most, of the two longest matches."""
        best, promised = NO_MATCH, 0.0
        for matched, automaton, state in sorted(matches, key=lambda match: -match[0])[:2]:
            if matched < SHORTEST_MATCH:
                break
            tokens, total, first = walk(automaton, state, min(limit, max(1, int(self.factor * matched))), self.least)
            if total > promised:
                best, promised = Guess(tokens, strength(matched, first)), total
        return best


def strength(matched: int, first: float) -> int:
    """What makes guesses come true: how sure the counts are of the first token, and how long the match is."""
    if first < 0.5:
        return 0
    return 1 + (matched >= 4) + (matched >= 16)
