from dataclasses import replace

import pytest

from tests.govern.views import line
from twostroke.govern.tally import Tally


def undrafted(reason):
    return replace(line(1), reason=reason)


def test_steps_without_drafts_are_counted_by_reason():
    tally = Tally()
    for reason in ("no_match", "load", "no_match", ""):
        tally.count(undrafted(reason), 0.0, 0.0, 0.05)
    assert tally.explain()["undrafted_steps"] == {"no_match": 2, "load": 1}
    assert tally.explain()["drafted_steps"] == 0


def test_what_was_promised_stands_beside_what_came():
    tally = Tally()
    tally.count(line(1, 4, 1), 2.5, 0.010, 0.050)
    tally.count(line(1, 4, 3), 2.5, 0.010, 0.050)
    told = tally.explain()
    assert (told["drafted_steps"], told["expected_accepted"], told["accepted"]) == (2, 5.0, 4)
    assert told["expected_saved_s"] == pytest.approx(5.0 * 0.05 - 0.02)
    assert told["saved_s"] == pytest.approx(4 * 0.05 - 0.02)


def test_drafts_that_fail_are_a_loss():
    tally = Tally()
    tally.count(line(1, 4, 0), 2.0, 0.010, 0.050)
    assert tally.explain()["saved_s"] == -0.010


def test_acceptance_is_by_drafter_and_of_recent_drafts():
    tally = Tally()
    for _ in range(1000):
        tally.count(line(1, 4, 0, source="suffix"), 0.0, 0.0, 0.0)
    for _ in range(1000):
        tally.count(line(1, 4, 4, source="suffix"), 0.0, 0.0, 0.0)
        tally.count(line(1, 4, 1, source="ngram"), 0.0, 0.0, 0.0)
    assert tally.explain()["acceptance"] == {"suffix": pytest.approx(1.0, abs=0.01), "ngram": pytest.approx(0.25)}
