"""A plan follows the formulas, adds up, says what matters most, and finds alpha again from what it implies."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.errors import ConfigError
from twostroke.govern import formulas
from twostroke.study.plan import Plan, Terms, alpha, plan, survival, table

TERMS = Terms(0.7, 4, 0.01, 0.05, 0.95, 1001, 101, 4.0, 25.0)


def totals(made: Plan) -> dict[str, float]:
    return {arm.arm: arm.total_ms for arm in made.arms}


def test_the_arms_follow_the_formulas() -> None:
    made = plan(TERMS)
    assert [arm.arm for arm in made.arms] == ["neither", "cache", "speculation", "both"]
    assert made.arm("neither").ttft_ms == 25 + 1000 * 4
    assert made.arm("cache").ttft_ms == pytest.approx(25 + (1001 * 0.05 - 1) * 4)
    assert made.arm("neither").decode_ms == 2500
    assert made.arm("both").decode_ms == 2500 / formulas.speedup(0.7, 0.01, 0.05, 4)


def test_a_hit_on_everything_still_computes_the_last_token() -> None:
    assert plan(replace(TERMS, hit_rate=1.0)).arm("cache").ttft_ms == 25


terms = st.builds(
    Terms,
    alpha=st.floats(0, 1),
    drafts=st.integers(0, 16),
    draft_cost=st.floats(0, 1),
    verify_cost=st.floats(0, 1),
    hit_rate=st.floats(0, 1),
    prompt_tokens=st.integers(1, 100_000),
    output_tokens=st.integers(1, 10_000),
    prefill_ms=st.floats(0, 100),
    decode_ms=st.floats(0.1, 1000),
)


@given(terms)
def test_each_switch_touches_its_own_phase_and_the_savings_add_up(terms: Terms) -> None:
    made = plan(terms)
    arm = {arm.arm: arm for arm in made.arms}
    assert arm["both"].ttft_ms == arm["cache"].ttft_ms
    assert arm["speculation"].ttft_ms == arm["neither"].ttft_ms
    assert arm["both"].decode_ms == arm["speculation"].decode_ms
    total = totals(made)
    assert total["both"] - total["cache"] == pytest.approx(total["speculation"] - total["neither"], abs=1e-3)


@given(terms)
def test_no_term_that_gets_better_makes_the_answer_later(terms: Terms) -> None:
    assert all(weight.ms <= 1e-6 * totals(plan(terms))["both"] for weight in plan(terms).weights)


def test_the_heaviest_term_comes_first() -> None:
    long_prompt = plan(replace(TERMS, prompt_tokens=50_000, hit_rate=0.0))
    assert {weight.term for weight in long_prompt.weights[:3]} == {"prefill_ms", "prompt_tokens", "hit_rate"}
    assert plan(replace(TERMS, output_tokens=5000)).weights[0].term == "decode_ms"


def test_end_to_end_ratios_do_not_multiply_though_nothing_interacts() -> None:
    total = totals(plan(TERMS))
    assert total["both"] / total["cache"] < 0.9 * total["speculation"] / total["neither"]


def test_speculation_that_would_hurt_is_said() -> None:
    assert "would slow these answers down: it pays above an acceptance of 0.06" in table(
        plan(replace(TERMS, alpha=0.05))
    )
    assert "slow" not in table(plan(TERMS))


def test_the_table_has_the_arms_and_every_term() -> None:
    shown = table(plan(TERMS))
    for word in ("neither", "cache", "speculation", "both", "alpha", "hit_rate", "verify_cost", "prefill_ms"):
        assert word in shown
    assert table(plan(replace(TERMS, output_tokens=1)))


@pytest.mark.parametrize("name", ["alpha", "hit_rate", "draft_cost", "prefill_ms", "output_tokens"])
def test_a_term_out_of_range_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is -1, must be"):
        replace(TERMS, **{name: -1})


@given(st.floats(0, 1), st.integers(1, 16))
def test_alpha_is_found_again_from_its_survival(true: float, drafts: int) -> None:
    assert alpha([true**position for position in range(1, drafts + 1)]) == pytest.approx(true)


def test_survival_is_a_share_of_the_steps_that_drafted() -> None:
    assert survival((60, 30, 0), 100) == (0.6, 0.3, 0.0)
    assert alpha((0.6, 0.3, 0.0)) == pytest.approx(0.9 / 1.9)
    assert survival((), 0) == ()
    assert alpha(()) is None
    with pytest.raises(ConfigError, match="60 drafts were accepted at one position, in 50 steps"):
        survival((60,), 50)
