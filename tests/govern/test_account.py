import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.govern.account import CEILING, GRANT, MOST_OWED, OVERDRAFT, SHARE, Accounts, DraftBudget

STEP = 0.1


def test_before_anything_was_gained_the_machine_may_lose_a_grant_and_its_share():
    assert Accounts().draft_budget([1], STEP, STEP).most == pytest.approx((GRANT + SHARE) * STEP)


def test_the_grant_is_given_once():
    accounts = Accounts()
    accounts.draft_budget([1], STEP, STEP)
    accounts.book_machine(STEP, GRANT * STEP + SHARE * STEP, 0.0)
    assert accounts.draft_budget([1], STEP, STEP).most == pytest.approx(SHARE * STEP)


def test_a_sequence_that_drafts_nothing_pays_its_share_of_time_and_no_more():
    accounts = Accounts()
    draft_budget = accounts.draft_budget([1], STEP, STEP)
    assert draft_budget.cannot_afford(0.99 * SHARE * STEP) is None
    assert draft_budget.cannot_afford(1.01 * SHARE * STEP) == 1


def test_unused_shares_add_up():
    accounts = Accounts()
    for _ in range(9):
        accounts.book(1, STEP, 0.0, 0.0)
    assert accounts.draft_budget([1], STEP, STEP).cannot_afford(9.9 * SHARE * STEP) is None
    assert accounts.draft_budget([1], STEP, STEP).cannot_afford(10.1 * SHARE * STEP) == 1


def test_a_sequence_with_drafts_may_owe_a_part_of_the_time_it_still_takes():
    accounts = Accounts()
    accounts.trust(1, 100, STEP)
    accounts.trust(1, 200, STEP)  # a second time changes nothing
    assert accounts.free(1) == pytest.approx(OVERDRAFT * 100 * STEP)
    accounts.book(1, STEP, 0.5 * STEP, 0.0)
    assert accounts.free(1) == pytest.approx(OVERDRAFT * 100 * STEP + SHARE * STEP - 0.5 * STEP)


def test_an_answer_without_a_limit_may_owe_no_more_than_a_step_or_two():
    accounts = Accounts()
    accounts.trust(1, 100_000, STEP)
    assert accounts.free(1) == MOST_OWED * STEP


def test_the_grant_is_of_a_step_that_reads_no_prompt():
    draft_budget = Accounts().draft_budget([1], 3 * STEP, STEP)
    assert draft_budget.most == pytest.approx(GRANT * STEP + SHARE * 3 * STEP)


def test_gains_add_up_to_a_ceiling():
    accounts = Accounts()
    for _ in range(100):
        accounts.book(1, STEP, 0.1 * STEP, 3 * STEP)
        accounts.book_machine(STEP, 0.1 * STEP, 3 * STEP)
    assert accounts.free(1) == accounts.machine == pytest.approx(CEILING * STEP)


def test_a_closed_account_is_gone():
    accounts = Accounts()
    accounts.book(1, STEP, 0.0, 5 * STEP)
    accounts.close(1)
    accounts.close(1)
    assert accounts.free(1) == 0.0


def test_the_poorest_is_named_and_hope_lifts_it():
    draft_budget = DraftBudget(1.0, {1: 0.02, 2: 0.01}, STEP)
    assert draft_budget.cannot_afford(0.03) == 2
    draft_budget.count_on(2, 0.5)
    assert draft_budget.cannot_afford(0.03) == 1
    draft_budget.count_on(1, 0.5)
    assert draft_budget.cannot_afford(0.03) is None


def test_nobody_counts_on_more_than_a_steps_time():
    draft_budget = DraftBudget(1.0, {1: 0.0}, STEP)
    for _ in range(20):
        draft_budget.count_on(1, 0.9)
    assert draft_budget.cannot_afford(0.999 * STEP) is None
    assert draft_budget.cannot_afford(1.001 * STEP) == 1


def test_hope_of_a_sequence_that_is_not_there_changes_nothing():
    draft_budget = DraftBudget(1.0, {1: 0.0}, STEP)
    draft_budget.count_on(7, 1.0)
    assert draft_budget.cannot_afford(0.01) == 1
    assert DraftBudget(1.0, {}, STEP).cannot_afford(9.0) is None


@given(st.lists(st.tuples(st.floats(0.001, 1), st.floats(0, 1), st.integers(0, 8)), min_size=1, max_size=80))
def test_the_machine_never_loses_more_than_its_share_and_its_grant(steps):
    """Whatever is wished, what is spent stays inside the budget; accepted drafts only ever help."""
    accounts, spent, saved, time = Accounts(), 0.0, 0.0, 0.0
    first = steps[0][0]
    for step_s, wished, accepted in steps:
        drafts_s = min(wished, accounts.draft_budget([1], step_s, step_s).most)
        accounts.book_machine(step_s, drafts_s, accepted * step_s)
        spent, saved, time = spent + drafts_s, saved + accepted * step_s, time + step_s
        assert spent - saved <= SHARE * time + GRANT * first + 1e-9
