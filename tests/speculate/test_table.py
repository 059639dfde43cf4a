from importlib.metadata import EntryPoint

import pytest

from tests.speculate.texts import Text, report, row
from twostroke.errors import InvalidParameter
from twostroke.speculate import table
from twostroke.speculate.synthetic import always
from twostroke.speculate.table import Settings, build, build_all, check_draft_tokens, check_drafter, known, usable
from twostroke.types import FinishReason


def test_every_row_builds_a_drafter_of_that_name():
    settings = Settings(oracle=lambda sequence: [3], rates=always(1.0))
    for name in table.DRAFTERS:
        drafter = build(name, settings)
        assert drafter.name == name
        assert [p.sequence for p in drafter.propose([Text(id=3, tokens=[1, 2, 3, 1, 2])])] == [3]


def test_the_synthetic_drafter_says_what_it_lacks():
    with pytest.raises(InvalidParameter, match="oracle"):
        build("synthetic")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InvalidParameter, match=r"unknown drafter 'ngrm'.*off.*ngram") as caught:
        check_drafter("ngrm", known())
    assert caught.value.param == "speculate"
    with pytest.raises(InvalidParameter):
        build("ngrm")


def test_a_drafter_made_elsewhere_is_known_where_it_is_named():
    assert check_drafter("draft", known(["draft"])) == "draft"
    assert "draft" in usable(extra=["draft"])
    with pytest.raises(InvalidParameter):
        check_drafter("draft", known())


def test_the_synthetic_drafter_is_no_choice_for_those_who_have_no_oracle():
    assert "synthetic" in known()
    assert "synthetic" not in usable()
    assert "synthetic" in usable(Settings(oracle=lambda sequence: [3], rates=always(1.0)))


@pytest.mark.parametrize("value", [1, 8, 64])
def test_draft_tokens_in_range_pass(value):
    assert check_draft_tokens(value) == value


@pytest.mark.parametrize("value", [0, -1, 65, 10**9, 1.5, "4", None, True, [4], float("nan")])
def test_draft_tokens_out_of_range_are_refused_with_the_range_and_the_way_to_draft_nothing(value):
    with pytest.raises(InvalidParameter, match=r"from 1 to 64.*off") as caught:
        check_draft_tokens(value)
    assert caught.value.param == "draft_tokens"
    assert repr(value) in caught.value.message


def test_settings_reach_the_drafter():
    with pytest.raises(InvalidParameter):
        build("ngram", Settings(draft_tokens=65))
    text = Text(tokens=[1, 2, 3, 1, 2])
    (proposal,) = build("ngram", Settings(draft_tokens=2)).propose([text])
    assert proposal.tokens == (3, 1)
    (proposal,) = build("ngram", Settings(ngram_longest=3, ngram_shortest=3)).propose([text])
    assert proposal.tokens == ()


def test_an_installed_package_adds_a_drafter_but_replaces_none(monkeypatch):
    points = [
        EntryPoint("mine", "tests.speculate.texts:Text", table.ENTRY_POINTS),
        EntryPoint("ngram", "tests.speculate.texts:Text", table.ENTRY_POINTS),
    ]
    monkeypatch.setattr(table, "entry_points", lambda group, name=None: [p for p in points if name in (None, p.name)])
    assert known() == (*table.DRAFTERS, "mine")
    assert isinstance(build("mine"), Text)
    assert build("ngram").name == "ngram"


def test_all_that_a_request_may_name_are_built_together_and_share_what_they_learn():
    drafters = build_all()
    assert set(drafters) == set(known()) - {"synthetic"}
    text = Text(id=1, tokens=[1, 2, 3, 4, 5, 6], prompt_length=2)
    drafters["auto"].propose([text])
    for drafter in drafters.values():  # as `PerRequest` tells them all
        drafter.observe(report(row(text, [6], finished=FinishReason.STOP)))
        drafter.forget(1)
    again = Text(id=2, tokens=[1, 2, 3], speculate="suffix")
    assert drafters["suffix"].propose([again])[0].tokens == (4, 5, 6)
    assert drafters["suffix"].lookup.history.size("") == 6  # once, though it was told twice


def test_the_synthetic_drafter_is_there_for_those_who_bring_an_oracle():
    assert "synthetic" in build_all(Settings(oracle=lambda sequence: [3], rates=always(1.0)))
