"""How long the answers of a namespace get: what an investment into one of them may count on.

Lengths are taken to be memoryless: whatever was written, as much is still to come as answers have on average.  A
namespace learns from its own answers only.
"""

from __future__ import annotations

from collections import OrderedDict

FIRST = 256.0  # tokens believed before any answer was seen, counted as one answer
DECAY = 0.9  # of what is known, per answer: about the last ten count


class Lengths:
    """Decayed means by namespace.  Beyond `namespaces`, the one unused for longest is forgotten."""

    def __init__(self, namespaces: int = 1024) -> None:
        self.namespaces = namespaces
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens and answers, decayed

    def add(self, namespace: str, tokens: int) -> None:
        """An answer of this namespace has ended with so many tokens."""
        total, answers = self._known.pop(namespace, (0.0, 0.0))
        self._known[namespace] = DECAY * total + tokens, DECAY * answers + 1.0
        if len(self._known) > self.namespaces:
            self._known.popitem(last=False)

    def expected(self, namespace: str) -> float:
        """Tokens that an answer under way should still get."""
        total, answers = self._known.get(namespace, (0.0, 0.0))
        return (FIRST + total) / (1.0 + answers)

    def purge(self, namespace: str) -> None:
        """Forget what a namespace has taught."""
        self._known.pop(namespace, None)
