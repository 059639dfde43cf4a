"""How long the answers of a namespace get: what an investment into one of them may count on.

Lengths are taken to be exponential, with a mean that the namespace's answers tell.  Until they do, an answer shows that
it is long by getting long: what it has written counts as evidence, and as much is still to come (Lomax's law).  A
namespace learns from its own answers only.
"""

from __future__ import annotations

from collections import OrderedDict

FIRST = 8.0  # tokens believed of an answer before any was seen and anything written
DECAY = 0.9  # of what is known, per answer: about the last ten count


class Lengths:
    """Decayed sums by namespace.  Beyond `namespaces`, the one unused for longest is forgotten."""

    def __init__(self, namespaces: int = 1024) -> None:
        self.namespaces = namespaces
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens and answers, decayed

    def add(self, namespace: str, tokens: int) -> None:
        """An answer of this namespace has ended with so many tokens."""
        total, answers = self._known.pop(namespace, (0.0, 0.0))
        self._known[namespace] = DECAY * total + tokens, DECAY * answers + 1.0
        if len(self._known) > self.namespaces:
            self._known.popitem(last=False)

    def expected(self, namespace: str, written: int) -> float:
        """Tokens that an answer should still get which has `written` so far.

        The posterior mean under a gamma prior of shape 2 and scale `FIRST` on the rate at which answers end.
        """
        total, answers = self._known.get(namespace, (0.0, 0.0))
        return (FIRST + total + written) / (1.0 + answers)

    def purge(self, namespace: str) -> None:
        """Forget what a namespace has taught."""
        self._known.pop(namespace, None)
