"""The four cells, what they saved by the accounts, and what they saved really."""

from __future__ import annotations

import pytest
from bench.embedded import Outcome
from bench.two_by_two import BOTH, CACHING, CELLS, PLAIN, SPECULATING, Result

from bench import two_by_two
from twostroke.types import DecodePhase, FinishReason, Phases, PrefillPhase


def outcome(
    first_s: float, decode_s: float, prefill_saved: float = 0, decode_saved: float = 0, cached: int = 0
) -> Outcome:
    tokens = tuple(range(9))
    prefill = PrefillPhase(100, cached, 100 - cached, first_s * 1000, first_s * 1000, prefill_saved, None)
    decode = DecodePhase(9, 5, 8, 4, (4,), decode_s * 1000, decode_s * 1000, 0, decode_saved)
    phases = Phases(0, first_s * 1000, decode_s * 1000 / 8, prefill, decode)
    return Outcome(tokens, FinishReason.LENGTH, first_s, first_s + decode_s, phases)


OUTCOMES = {
    PLAIN: [outcome(2.0, 4.0)],
    SPECULATING: [outcome(2.1, 2.0, decode_saved=1800)],
    CACHING: [outcome(0.5, 4.1, prefill_saved=1600, cached=75)],
    BOTH: [outcome(0.6, 2.1, 1500, 2100, cached=75)],
}
RESULT = Result("small", "auto", ("q",), OUTCOMES)


def test_there_are_four_cells_each_with_its_label() -> None:
    assert [cell.label for cell in CELLS] == [
        "cache off, speculation off",
        "cache off, speculation on",
        "cache on, speculation off",
        "cache on, speculation on",
    ]


def test_what_was_really_saved_is_the_cell_with_that_switch_alone_off() -> None:
    prefill_said, prefill_real, decode_said, decode_real = RESULT.saved(BOTH)
    assert (prefill_said, decode_said) == (1500, 2100)
    assert prefill_real == pytest.approx(1500)  # speculating alone, 2.1 s, against 0.6 s
    assert decode_real == pytest.approx(2000)  # caching alone, 4.1 s, against 2.1 s


def test_the_accounts_stand_beside_the_truth() -> None:
    page = two_by_two.markdown(RESULT)
    assert "| prefix cache alone: prefill | 1600 | 1500 | 1.07 |" in page
    assert "| speculation alone: decode | 1800 | 2000 | 0.900 |" in page


def test_a_cell_shows_its_times_and_what_it_reused() -> None:
    (row,) = [line for line in two_by_two.markdown(RESULT).splitlines() if line.startswith(f"| {BOTH.label}")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1].startswith("600 ")
    assert cells[2].startswith("262 ")  # 2.1 s over eight tokens after the first
    assert cells[4] == "75 %"
    assert cells[5].startswith("2.00 ")  # eight tokens in four passes


def test_cells_that_answer_alike_pass_and_others_end_the_run() -> None:
    two_by_two._same("q", [outcome(1, 1), outcome(2, 2)])
    other = Outcome((1, 2), FinishReason.STOP, 1, 2, outcome(1, 1).phases)
    with pytest.raises(AssertionError, match="q: the cells answered with 2 different"):
        two_by_two._same("q", [outcome(1, 1), other])


def test_savings_that_are_not_there_have_no_ratio() -> None:
    assert two_by_two._over(100, -5) == "—"
