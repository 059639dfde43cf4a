"""What counts as a proposal.

Drafters may be written by anyone, so what they say is judged before it is used: junk is dropped and told of, a guess
deeper than the answer can use is cut, also where it leaves the answer's grammar, and the good proposals beside a bad
one are kept.  Whether a guess is worth its cost is the governor's question; whether it is right, the target's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from twostroke.engine.sequence import Sequence as Running
from twostroke.types import Grammar, Proposal

MOST_DRAFTS = 1024  # in one proposal: more than any step can verify is not a guess but a fault


def usable_proposals(
    proposals: Iterable[Proposal], running: Iterable[Running], vocabulary: int
) -> tuple[list[Proposal], list[Exception]]:
    """The proposals that are such, at most one for each running sequence, and what was wrong with the others."""
    left = {sequence.id: sequence for sequence in running}
    kept: list[Proposal] = []
    faults: list[Exception] = []
    for proposal in proposals:
        try:
            sequence = _addressee(proposal, left)
            _check(proposal, vocabulary)
        except Exception as error:  # junk may be of any type and fail in any way
            faults.append(error)
            continue
        del left[proposal.sequence]
        kept.append(_cut(proposal, sequence))
    return kept, faults


def _addressee(proposal: Proposal, left: dict[int, Running]) -> Running:
    if proposal.sequence not in left:
        raise ValueError(f"a proposal for sequence {proposal.sequence!r}, which is not running or has one already")
    return left[proposal.sequence]


def _check(proposal: Proposal, vocabulary: int) -> None:
    tokens, survival = proposal.tokens, proposal.survival
    if not isinstance(tokens, tuple) or not isinstance(survival, tuple) or not isinstance(proposal.reason, str):
        raise ValueError("a proposal whose fields have the wrong types")
    if len(tokens) > MOST_DRAFTS:
        raise ValueError(f"a proposal of {len(tokens)} tokens; at most {MOST_DRAFTS}")
    if len(survival) != len(tokens):
        raise ValueError(f"a proposal of {len(tokens)} tokens with {len(survival)} survival estimates")
    if not all(type(token) is int and 0 <= token < vocabulary for token in tokens):
        raise ValueError(f"a proposal with token ids that are no integers in 0 … {vocabulary - 1}")
    if not all(isinstance(rate, float | int) and 0.0 <= rate <= 1.0 for rate in survival):
        raise ValueError("a proposal with survival estimates outside 0 … 1")


def _cut(proposal: Proposal, sequence: Running) -> Proposal:
    """No deeper than the answer may still use or its grammar allows, and nothing before the sequence can verify."""
    depth = sequence.depth if sequence.ready else 0
    reason = proposal.reason if depth or not sequence.ready else "tail"
    if depth and proposal.tokens and sequence.grammar is not None:
        depth = _allowed(sequence.grammar, proposal.tokens[:depth])
        reason = proposal.reason if depth else "grammar"
    if len(proposal.tokens) <= depth:
        return proposal
    return replace(proposal, tokens=proposal.tokens[:depth], survival=proposal.survival[:depth], reason=reason)


def _allowed(grammar: Grammar, drafts: Sequence[int]) -> int:
    try:
        return grammar.valid(drafts)
    except Exception:  # the pass that asks for its masks will end the answer and say why
        return 0
