"""What is absent says nothing and limits nothing."""

from __future__ import annotations

from tests.composition.simulation import Setting, Simulation
from twostroke.engine.null import FixedLimits, NoDraft
from twostroke.types import Proposal


def test_no_draft_is_silent() -> None:
    drafter = NoDraft()
    simulation = Simulation(Setting())
    report = simulation.engine.step()
    drafter.observe(report)
    drafter.forget(1)
    assert tuple(drafter.propose(())) == ()
    assert drafter.groups == ()


def test_fixed_limits_cut_every_proposal_to_one_depth() -> None:
    view = Simulation(Setting()).engine.view
    long, short = Proposal(1, (1, 2, 3), (0.9, 0.8, 0.7), "x"), Proposal(2, (1,), (0.5,))
    limits = FixedLimits(tokens=7, sequences=3, draft_tokens=2).price([long, short], view)
    assert (limits.tokens, limits.sequences) == (7, 3)
    assert limits.drafts == {1: Proposal(1, (1, 2), (0.9, 0.8), "x"), 2: short}


def test_fixed_limits_learn_nothing() -> None:
    simulation = Simulation(Setting())
    governor = FixedLimits()
    before = governor.price((), simulation.engine.view)
    governor.observe(simulation.engine.step())
    assert governor.price((), simulation.engine.view) == before
