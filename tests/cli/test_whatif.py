"""The arithmetic as a person meets it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.cli.whatif import Terms, whatif
from twostroke.govern.cost import CostCurves

CURVES = CostCurves(step_ms={1: 50.0, 2: 55.0, 5: 70.0}, draft_ms={1: 10.0})


def test_measured_terms_are_shares_of_a_plain_step() -> None:
    terms = Terms.of(CURVES, None, None, None)
    assert (terms.cost, terms.verify) == (pytest.approx(0.2), pytest.approx(0.1))
    assert Terms.of(CURVES, 1, None, None).verify == pytest.approx(0.1)


def test_given_terms_win_over_measured_ones() -> None:
    assert Terms.of(CURVES, None, 0.5, None).cost == 0.5
    assert Terms.of(CURVES, None, None, 0.0).verify == 0.0


@given(st.floats(0, 1), st.floats(0, 2), st.floats(0, 2), st.none() | st.integers(0, 64))
def test_sentences_and_json_say_the_same(alpha: float, cost: float, verify: float, drafts: int | None) -> None:
    found = json.loads(whatif(alpha, Terms(cost, verify), drafts, as_json=True))
    text = whatif(alpha, Terms(cost, verify), drafts, as_json=False)
    assert f"{found['expected_tokens']:.3f} tokens a step, {found['speedup']:.3f} times as fast" in text
    assert f"Best number of drafts: {found['best_k']}." in text
    assert ("never pays" in text) == (found["break_even_alpha"] >= 1)
