"""How often guesses come true, by position in the draft.

The invariant: what a request is told rests on its own record and its namespace's, never on another namespace's.
Records forget (old evidence decays), so a text that turns predictable or stops being so is noticed within a dozen
guesses.  Nothing here knows what a guess was made from or what it costs.
"""

from __future__ import annotations

from collections import OrderedDict
from math import sqrt

SEQUENCE_DECAY = 0.97  # a sequence remembers about its last thirty guesses …
SURPRISE = 0.005  # … unless as many came true, or failed, in a row as would happen by chance this rarely
NAMESPACE_DECAY = 0.99
AGEING = 0.995  # of positions that a guess did not reach
FADING = 0.8  # of what a namespace has taught, per sequence, where guesses that nobody makes cannot correct it
SEQUENCE_WEIGHT = 6.0  # guesses of its own that count as much as the namespace's record
NAMESPACE_WEIGHT = 8.0
DEVIATIONS = 0.7  # above the mean, that guesses which cost time to make are taken to be, optimistically


class Rates:
    """Decayed counts of successes and trials by position; position i is tried only where 0…i-1 succeeded."""

    __slots__ = ("decay", "hits", "streaks", "trials")

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.hits: list[float] = []
        self.trials: list[float] = []
        self.streaks: list[int] = []  # equal outcomes in a row: successes above 0, failures below

    def add(self, first: int, agreed: int, failed: bool) -> None:
        """Positions from `first` up to `agreed` came true; `failed` says that the one after did not."""
        tried = agreed + failed
        while len(self.trials) < tried:
            self.hits.append(0.0)
            self.trials.append(0.0)
            self.streaks.append(0)
        for i in range(first, tried):
            self._count(i, i < agreed)
        # A position that was not reached ages too: or one bad start could keep drafts from ever going that deep again.
        for i in range(tried, len(self.trials)):
            self.trials[i] *= AGEING
            self.hits[i] *= AGEING

    def rate(self, position: int, prior: float, weight: float) -> float:
        """The posterior mean of a Beta prior of `weight` trials, `prior` of them successes; at most 1."""
        if position >= len(self.trials):
            return prior
        return min(1.0, (self.hits[position] + weight * prior) / (self.trials[position] + weight))

    def fade(self, share: float) -> None:
        """Keep only this share of all evidence."""
        self.trials = [trials * share for trials in self.trials]
        self.hits = [hits * share for hits in self.hits]

    def _count(self, i: int, success: bool) -> None:
        streak = self.streaks[i]
        streak = max(streak, 0) + 1 if success else min(streak, 0) - 1
        self.streaks[i] = streak
        self.trials[i] = self.trials[i] * self.decay + 1.0
        self.hits[i] = self.hits[i] * self.decay + success
        chance = self.hits[i] / self.trials[i]
        if (chance if success else 1.0 - chance) ** abs(streak) < SURPRISE:
            # The text has changed: what was before the streak tells nothing about it.
            self.trials[i] = float(abs(streak))
            self.hits[i] = float(max(streak, 0))


class Acceptance:
    """Estimates of survival for one drafter, by sequence, with the namespace as the prior.

    `strength` is a small number by which a drafter sorts its guesses (a longer match is stronger); each has its own
    record.  Namespaces are bounded: beyond `namespaces`, the one unused for longest is forgotten.
    """

    def __init__(self, first: float = 0.5, namespaces: int = 1024) -> None:
        self.first = first  # what is believed of a position before anything was seen
        self.namespaces = namespaces
        self._shared: OrderedDict[tuple[str, int], Rates] = OrderedDict()
        self._own: dict[int, dict[int, Rates]] = {}

    def add(self, sequence: int, namespace: str, strength: int, first: int, agreed: int, failed: bool) -> None:
        """Record what became of one guess of `sequence`, or of its positions from `first` on."""
        own = self._own.setdefault(sequence, {})
        if strength not in own:
            own[strength] = Rates(SEQUENCE_DECAY)
        own[strength].add(first, agreed, failed)
        self._namespace(namespace, strength).add(first, agreed, failed)

    def survival(self, sequence: int, namespace: str, strength: int, count: int) -> tuple[float, ...]:
        """For each of `count` positions, the probability that it and all before it come true; never increasing."""
        shared = self._namespace(namespace, strength)
        own = self._own.get(sequence, {}).get(strength)
        product, belief = 1.0, self.first
        survival = []
        for position in range(count):
            # A position nobody has reached yet is believed to be like the one before it.
            belief = shared.rate(position, belief, NAMESPACE_WEIGHT)
            if own is not None:
                belief = own.rate(position, belief, SEQUENCE_WEIGHT)
            product *= belief
            survival.append(product)
        return tuple(survival)

    def optimistic(self, sequence: int, strength: int, survival: tuple[float, ...]) -> tuple[float, ...]:
        """A survival of `sequence` as it may be: the first position is believed better while it has shown little.

        For guesses that cost time before they are seen: those that are not made show nothing, so a few failures must
        not silence them for good.  The bound is of the kind of UCB1 (Auer et al. 2002), some deviations above the mean.
        """
        if not survival or not 0.0 < survival[0] < 1.0:
            return survival
        own = self._own.get(sequence, {}).get(strength)
        seen = own.trials[0] if own is not None and own.trials else 0.0
        believed = survival[0]
        first = min(1.0, believed + DEVIATIONS * sqrt(believed * (1.0 - believed) / (seen + SEQUENCE_WEIGHT)))
        return tuple(each * first / believed for each in survival)

    def forget(self, sequence: int) -> None:
        """The sequence is gone; what it taught its namespace stays."""
        self._own.pop(sequence, None)

    def fade(self, namespace: str) -> None:
        """Believe the namespace's record a little less: a drafter that is no longer asked must get another chance."""
        for (name, _), rates in self._shared.items():
            if name == namespace:
                rates.fade(FADING)

    def purge(self, namespace: str) -> None:
        """Forget everything a namespace has taught."""
        for key in [key for key in self._shared if key[0] == namespace]:
            del self._shared[key]

    def _namespace(self, namespace: str, strength: int) -> Rates:
        key = (namespace, strength)
        if key not in self._shared:
            self._shared[key] = Rates(NAMESPACE_DECAY)
            if len(self._shared) > self.namespaces:
                self._shared.popitem(last=False)
        self._shared.move_to_end(key)
        return self._shared[key]
