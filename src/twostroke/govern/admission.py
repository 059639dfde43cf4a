"""How many positions the next step may compute.

While answers are running, a step that also reads a prompt should take no longer than `step_ms`, so that nobody's answer
stalls behind another's prompt; without running answers a step is as large as the engine allows.  Drafts come on top:
they never take a prompt's place.  Knows costs, not sequences.
"""

from __future__ import annotations

from twostroke.govern.cost import CostCurves

SMALLEST_CHUNK = 8  # a prompt always moves, however slow the machine


def step_tokens(curves: CostCurves, answering: int, context: int, step_ms: float, most: int) -> int:
    """The step's budget in positions, drafts not counted.

    `answering` is how many sequences are writing, `context` the positions they attend to together, `most` the full
    budget (used whole when nobody is writing).
    """
    if not answering:
        return most
    fitting = curves.rows_within(step_ms / 1000, context, most)
    return max(fitting, min(most, answering + SMALLEST_CHUNK))
