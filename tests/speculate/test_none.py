from tests.speculate.texts import Text, report, row
from twostroke.speculate.none import NoDraft


def test_it_never_proposes_and_says_that_drafting_is_disabled():
    drafter = NoDraft()
    proposals = drafter.propose([Text(id=1), Text(id=2, ready=False), Text(id=3)])
    assert [(p.sequence, p.tokens, p.reason) for p in proposals] == [(1, (), "disabled"), (3, (), "disabled")]


def test_it_accepts_every_call_a_drafter_gets():
    drafter = NoDraft()
    drafter.observe(report(row(Text(tokens=[1, 2]), [2])))
    drafter.forget(1)
    drafter.purge("a")
    assert drafter.groups == ()
