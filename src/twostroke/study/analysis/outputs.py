"""The answers of the arms beside one another: switches should change the time, not the text.

`neither-again` is compared as well: a server that answers differently when nothing at all was changed is no witness
against its switches.
"""

from __future__ import annotations

from collections.abc import Iterator

from twostroke.study.analysis.result import Finding, OutputComparison
from twostroke.study.analysis.table import Table
from twostroke.study.arms import ARMS, NEITHER

LENGTHS_SHARE = 0.05  # of pairs: above, the arms did different amounts of work


def outputs(table: Table) -> tuple[OutputComparison, ...]:
    """One for each arm that was sent the same prompts as `neither`."""
    same = (arm.name for arm in ARMS if arm.shared and arm != NEITHER and arm.name in table.sent)
    return tuple(_comparison(arm, table) for arm in same)


def differences(found: tuple[OutputComparison, ...]) -> Iterator[Finding]:
    """Arms whose answers differ."""
    for comparison in found:
        if comparison.differing:
            yield Finding("warning", comparison.arm, _sentence(comparison))


def _comparison(arm: str, table: Table) -> OutputComparison:
    pairs = table.pairs(arm, NEITHER.name)
    differing = [(one, other) for one, other in pairs if one.text != other.text]
    lengths = sum(one.output_tokens != other.output_tokens for one, other in differing)
    return OutputComparison(arm, len(pairs), len(differing), len(differing) / len(pairs) if pairs else None, lengths)


def _sentence(found: OutputComparison) -> str:
    said = f"{found.arm}: {found.differing} of {found.compared} answers differ from those of {NEITHER.name}"
    if found.differing_lengths > LENGTHS_SHARE * found.compared:
        return (
            f"{said}, {found.differing_lengths} of them in length; end to end, the arms are compared over different "
            "amounts of work, and only the time per token is comparable."
        )
    return f"{said}."
