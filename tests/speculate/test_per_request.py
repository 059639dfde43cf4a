from tests.speculate.texts import Text
from twostroke.speculate.none import NoDraft
from twostroke.speculate.per_request import PerRequest
from twostroke.types import Proposal


class Named:
    def __init__(self, name, groups=()):
        self.name, self.groups, self.calls = name, groups, []

    def propose(self, sequences):
        self.calls.append(("propose", [s.id for s in sequences]))
        return [Proposal(s.id, (1,), (0.5,), self.name) for s in sequences]

    def observe(self, report):
        self.calls.append(("observe", report))

    def forget(self, sequence):
        self.calls.append(("forget", sequence))


def test_each_sequence_gets_the_drafter_it_names_else_the_servers():
    drafter = PerRequest({"off": NoDraft(), "a": Named("a"), "b": Named("b")}, default="a")
    texts = [Text(id=1), Text(id=2, speculate="b"), Text(id=3, speculate="off"), Text(id=4, speculate="a")]
    by_id = {p.sequence: p for p in drafter.propose(texts)}
    assert {i: p.source for i, p in by_id.items()} == {1: "a", 2: "b", 3: "off", 4: "a"}
    assert by_id[3].reason == "disabled"


def test_the_servers_choice_may_be_off_and_a_request_may_still_ask():
    drafter = PerRequest({"off": NoDraft(), "a": Named("a")}, default="off")
    first, second = drafter.propose([Text(id=1), Text(id=2, speculate="a")])
    assert (first.reason, second.source) == ("disabled", "a")


def test_a_name_unknown_here_gets_the_servers_choice():
    (proposal,) = PerRequest({"a": Named("a")}, default="a").propose([Text(speculate="gone")])
    assert proposal.source == "a"


def test_all_drafters_hear_reports_and_forget():
    a, b = Named("a"), Named("b")
    drafter = PerRequest({"a": a, "b": b}, default="a")
    drafter.observe("report")
    drafter.forget(4)
    drafter.purge("tenant")  # neither keeps text: nothing to purge, nothing raised
    assert a.calls == b.calls == [("observe", "report"), ("forget", 4)]


def test_it_needs_the_groups_of_all_each_once():
    drafter = PerRequest({"a": Named("a", ("x",)), "b": Named("b", ("x", "y"))}, default="a")
    assert drafter.groups == ("x", "y")
