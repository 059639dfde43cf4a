"""A suffix automaton that grows token by token: every substring of its texts, with how often each occurred.

Each state stands for a set of substrings with the same occurrences; `link` leads to the longest proper suffix that
occurs elsewhere too (Blumer et al., "The smallest automaton recognizing the subwords of a text", 1985).  Growing costs
amortised constant time, a text of n tokens makes at most 2n states.  The invariant: following a text's tokens from the
root never fails, and no other string gets through.  Knows tokens, not who wrote them.
"""

from __future__ import annotations

ROOT = 0
COUNTED = 64  # suffixes of a new end that are counted, longest first: a bound on the cost of repetitive text


class Automaton:
    """States are integers; parallel lists hold what is known of each."""

    __slots__ = ("count", "end", "last", "length", "link", "next", "size")

    def __init__(self) -> None:
        self.next: list[dict[int, int]] = [{}]
        self.link: list[int] = [-1]
        self.length: list[int] = [0]  # of the longest string in the state
        self.count: list[int] = [0]  # occurrences
        self.end: list[int] = [0]  # the number of tokens taken in when it occurred last
        self.last = ROOT  # the state of the whole current text
        self.size = 0  # tokens taken in

    def start(self) -> None:
        """Begin another text; substrings do not reach across."""
        self.last = ROOT

    def extend(self, token: int) -> None:
        """Append one token to the current text."""
        known = self.next[self.last].get(token)
        if known is None:
            self.last = self._append(token)
        elif self.length[known] == self.length[self.last] + 1:
            self.last = known
        else:
            self.last = self._split(self.last, token, known)
        self.size += 1
        self._count(self.last)

    def advance(self, state: int, matched: int, token: int) -> tuple[int, int]:
        """Read `token` in `state` with `matched` tokens matched: the longest suffix found now, as the same pair."""
        state = self.settle(state, matched)
        while token not in self.next[state]:
            if state == ROOT:
                return ROOT, 0
            state = self.link[state]
            matched = self.length[state]
        return self.next[state][token], matched + 1

    def settle(self, state: int, matched: int) -> int:
        """The state that holds the `matched` last tokens read, after the automaton may have split `state`."""
        while state != ROOT and self.length[self.link[state]] >= matched:
            state = self.link[state]
        return state

    def _append(self, token: int) -> int:
        new = self._state({}, self.length[self.last] + 1, 0, 0)
        state = self.last
        while state != -1 and token not in self.next[state]:
            self.next[state][token] = new
            state = self.link[state]
        if state == -1:
            self.link[new] = ROOT
        else:
            target = self.next[state][token]
            fits = self.length[target] == self.length[state] + 1
            self.link[new] = target if fits else self._split(state, token, target)
        return new

    def _split(self, state: int, token: int, target: int) -> int:
        """Part the shorter strings of `target`, which now occur where the longer do not; their state."""
        clone = self._state(dict(self.next[target]), self.length[state] + 1, self.count[target], self.end[target])
        self.link[clone] = self.link[target]
        self.link[target] = clone
        while state != -1 and self.next[state].get(token) == target:
            self.next[state][token] = clone
            state = self.link[state]
        return clone

    def _state(self, following: dict[int, int], length: int, count: int, end: int) -> int:
        self.next.append(following)
        self.link.append(ROOT)
        self.length.append(length)
        self.count.append(count)
        self.end.append(end)
        return len(self.next) - 1

    def _count(self, state: int) -> None:
        for _ in range(COUNTED):
            if state == ROOT:
                return
            self.count[state] += 1
            self.end[state] = self.size
            state = self.link[state]


def likeliest(automaton: Automaton, state: int) -> tuple[int, int, float]:
    """What followed `state` most often, of equals most recently: the token, the state after it, its share."""
    following, count, end = automaton.next[state], automaton.count, automaton.end
    if len(following) == 1:
        ((token, after),) = following.items()
        return token, after, 1.0
    token, after = max(following.items(), key=lambda edge: (count[edge[1]], end[edge[1]]))
    return token, after, count[after] / max(1, sum(count[other] for other in following.values()))


def walk(automaton: Automaton, state: int, limit: int, least: float) -> tuple[tuple[int, ...], float, float]:
    """The likeliest continuation of `state` by empirical counts, at most `limit` tokens.

    Returns the tokens, the sum over them of the probability that the counts give to the path so far, and the first
    token's.  Stops before that probability falls under `least`.  At the end of a text it goes on after the longest
    suffix that was followed by something.
    """
    tokens: list[int] = []
    probability, total, first = 1.0, 0.0, 0.0
    while len(tokens) < limit:
        while state > ROOT and not automaton.next[state]:
            state = automaton.link[state]
        if state <= ROOT:
            break
        token, state, share = likeliest(automaton, state)
        probability *= share
        if probability < least:
            break
        first = first or probability
        total += probability
        tokens.append(token)
    return tuple(tokens), total, first
