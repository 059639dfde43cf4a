"""The arms of a study: both switches off, each one alone, both on, and two controls.

The controls show what the method itself would invent.  *different-prefix* has the cache on and nothing to reuse, so it
must show no gain; *neither-again* is the first arm once more, and its distance from that one is the noise floor.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arm:
    """One setting of the switches under which every call of a workload is sent."""

    name: str
    cache: bool
    speculation: bool
    shared: bool = True  # False: every prompt begins with text of its own

    @property
    def reuses(self) -> bool:
        """Whether this arm claims prefix-cache hits."""
        return self.cache and self.shared


NEITHER = Arm("neither", cache=False, speculation=False)
CACHE = Arm("cache", cache=True, speculation=False)
SPECULATION = Arm("speculation", cache=False, speculation=True)
BOTH = Arm("both", cache=True, speculation=True)
DIFFERENT_PREFIX = Arm("different-prefix", cache=True, speculation=False, shared=False)
NEITHER_AGAIN = Arm("neither-again", cache=False, speculation=False)

FACTORIAL = (NEITHER, CACHE, SPECULATION, BOTH)
CONTROLS = (DIFFERENT_PREFIX, NEITHER_AGAIN)
ARMS = FACTORIAL + CONTROLS
BY_NAME = {arm.name: arm for arm in ARMS}
