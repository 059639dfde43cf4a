from tests.speculate.texts import Text, report, row, run
from twostroke.speculate.auto import Auto, expected, take
from twostroke.speculate.lookup import LookupDrafter
from twostroke.speculate.ngram import Ngram
from twostroke.speculate.prediction import Prediction
from twostroke.speculate.suffix import Suffix
from twostroke.speculate.synthetic import Synthetic, always
from twostroke.types import Proposal


class Model:
    """A model drafter that expects what it is told to."""

    name, groups = "draft", ("a group",)

    def __init__(self, hope, reading=()):
        self.hope, self.wanted, self.forgotten, self.heard = hope, [], [], 0
        self.reading = frozenset(reading)

    def catch_up(self, sequences):
        return self.reading & {s.id for s in sequences}

    def expect(self, sequence):
        return self.hope

    def draft(self, wanted):
        self.wanted.append([(s.id, depth) for s, depth in wanted])
        return [Proposal(s.id, (9,) * depth, self.hope[:depth], self.name) for s, depth in wanted]

    def observe(self, report):
        self.heard += 1

    def forget(self, sequence):
        self.forgotten.append(sequence)


def fixed(name, *survival, reason="no_match"):
    class Fixed:
        groups = ()

        def propose(self, sequences):
            tokens = tuple(range(len(survival)))
            return [Proposal(s.id, tokens, survival, name, "" if tokens else reason) for s in sequences]

        def observe(self, report):
            pass

        def forget(self, sequence):
            pass

    return Fixed()


def test_the_proposal_with_the_most_to_expect_is_taken():
    (proposal,) = Auto([fixed("a", 0.9), fixed("b", 0.8, 0.7), fixed("c")]).propose([Text()])
    assert (proposal.source, expected(proposal)) == ("b", 1.5)


def test_of_equals_the_first_is_taken():
    (proposal,) = Auto([fixed("a", 0.5), fixed("b", 0.5)]).propose([Text()])
    assert proposal.source == "a"


def test_where_nobody_has_a_guess_the_reason_that_says_more_is_kept():
    (proposal,) = Auto([fixed("a"), fixed("b", reason="catching_up"), fixed("c")]).propose([Text()])
    assert (proposal.tokens, proposal.reason) == ((), "catching_up")
    best = {}
    take(best, [Proposal(1, reason="tail")])
    take(best, [Proposal(1, reason="no_match")])
    assert best[1].reason == "tail"


def test_it_learns_which_drafter_this_text_follows():
    """Two liars of the same claims: one is right at 80 %, the other at 20 %; nobody is told which."""
    answer = [i % 97 for i in range(400)]

    def liar(name, rate):
        lookup = Synthetic(lambda sequence: answer, always(rate), seed=len(name))
        lookup.name = name
        return LookupDrafter(lookup, 4)

    text = Text(tokens=[1], prompt_length=1)
    history = run(Auto([liar("wrong", 0.2), liar("right!", 0.8)]), text, answer)
    late = [proposal.source for proposal, _ in history[20:]]
    assert late.count("right!") > 0.9 * len(late)


def test_it_changes_over_when_the_text_does():
    answer = [i % 97 for i in range(600)]

    def turns(name, before, after):
        lookup = Synthetic(lambda s: answer, lambda s: (before,) if len(s.tokens) < 300 else (after,), seed=len(name))
        lookup.name = name
        return LookupDrafter(lookup, 4)

    text = Text(tokens=[1], prompt_length=1)
    history = run(Auto([turns("early", 0.9, 0.1), turns("later!", 0.1, 0.9)]), text, answer)
    sources = [proposal.source for proposal, _ in history]
    assert sources[30:60].count("early") >= 27
    assert sources[-30:].count("later!") >= 27


def test_with_a_prediction_it_drafts_from_that():
    predicted = [100 + i for i in range(60)]
    text = Text(tokens=[1], prompt_length=1, prediction=predicted)
    drafters = [LookupDrafter(lookup) for lookup in (Prediction(), Suffix(), Ngram())]
    history = run(Auto(drafters), text, predicted)
    assert {proposal.source for proposal, _ in history[:-1]} == {"prediction"}
    assert len(history) <= 8


def test_a_model_is_asked_for_what_is_worth_it_and_no_more():
    model = Model((0.9, 0.8, 0.7))
    asked = []

    def worth(survivals, rivals):
        asked.append((survivals, rivals))
        return {1: 2, 2: 0}

    texts = [
        Text(id=1),
        Text(id=2),
        Text(id=3, ready=False),
        Text(id=4, speculate="off"),
        Text(id=5, remaining=1),
    ]
    proposals = {p.sequence: p for p in Auto([fixed("a", 0.6)], model, worth).propose(texts)}
    assert asked == [({1: model.hope, 2: model.hope}, {1: 0.6, 2: 0.6})]
    assert model.wanted == [[(1, 2)]]
    assert (proposals[1].source, proposals[2].source) == ("draft", "a")


def test_a_model_with_nothing_to_say_is_not_asked():
    model = Model(())
    auto = Auto([fixed("a", 0.6)], model, lambda survivals, rivals: {})
    assert [p.source for p in auto.propose([Text()])] == ["a"]
    assert model.wanted == [[]]


def test_all_drafters_hear_forget_and_bring_their_groups():
    model = Model(())
    suffix = LookupDrafter(Suffix())
    auto = Auto([suffix], model, lambda survivals, rivals: {})
    text = Text(tokens=[1, 2, 1, 2])
    assert auto.propose([text])[0].tokens
    auto.observe(report(row(text, [2])))
    auto.forget(text.id)
    auto.purge("")
    assert (model.heard, model.forgotten, auto.groups) == (1, [1], ("a group",))
    assert not suffix.lookup._places


def test_a_model_alone_goes_by_its_own_name_and_is_asked_only_where_it_is_worth_it():
    model = Model((0.9, 0.8))
    alone = Auto((), model, lambda survivals, rivals: {}, "draft")
    (proposal,) = alone.propose([Text()])
    assert (alone.name, proposal.tokens, proposal.reason) == ("draft", (), "low_acceptance")
    assert model.wanted == [[]]


def test_a_model_that_cannot_draft_yet_says_so():
    (proposal,) = Auto((), Model(()), lambda survivals, rivals: {}, "draft").propose([Text()])
    assert (proposal.tokens, proposal.reason) == ((), "catching_up")


def test_who_is_still_catching_up_is_not_priced():
    """Its passes bring no drafts yet: charging them would empty the books before the first one."""
    asked = []

    def worth(survivals, rivals):
        asked.append(dict(survivals))
        return dict.fromkeys(survivals, 1)

    auto = Auto((), Model((0.9,), reading={1}), worth, "draft")
    proposals = {p.sequence: p for p in auto.propose([Text(id=1), Text(id=2)])}
    assert asked == [{2: (0.9,)}]
    assert proposals[1].reason == "catching_up"
    assert proposals[2].tokens
