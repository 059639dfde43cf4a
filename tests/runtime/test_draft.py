"""The draft model's books: a drafter that is the target itself is never wrong, whatever happens to its KV.

The fake model's cells hold a digest chained over all tokens before, and the next token is drawn from the digest that is
read.  So one stale, foreign or forgotten cell would make a guess differ from the target's choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from tests.composition.fakes import VOCABULARY, AuditingRunner, Cells, answer, digests, pick
from tests.composition.simulation import whole
from tests.composition.test_faults import Fault, break_line
from twostroke.cache.keys import Group
from twostroke.cache.space import GroupSpace, KVSpace, Store
from twostroke.engine.engine import Engine
from twostroke.engine.null import FixedLimits
from twostroke.engine.protocols import Drafter, SequenceView
from twostroke.engine.scheduler import Scheduler
from twostroke.runtime.draft import DRAFT, PAUSE, ModelDrafter
from twostroke.speculate.acceptance import Acceptance
from twostroke.speculate.auto import Auto
from twostroke.speculate.lengths import FIRST, Lengths
from twostroke.types import Picks, Proposal, Report, Request, Row, Sampling

TARGET = Group("target")
BLOCK = 4
CONTEXT = 96


class ChainRunner:
    """A model that computes each cell from the cell before it, as read."""

    def __init__(self, namespaces: dict[int, str]) -> None:
        self.cells = Cells(BLOCK)
        self.namespaces = namespaces
        self.positions = 0
        self.passes = 0

    def execute(self, rows: Sequence[Row]) -> list[Picks]:
        self.passes += 1
        for row in rows:
            for copy in row.copies:
                self.cells.copy(copy.source, copy.target, copy.tokens)
        return [self._run(row) for row in rows]

    def _run(self, row: Row) -> Picks:
        self.positions += len(row.tokens)
        before = self.cells.read(row.blocks, row.start - 1) if row.start else sum(self._namespace(row).encode())
        for position, token in enumerate(row.tokens, row.start):
            before = hash((before, token))
            self.cells.write(row.blocks, position, before)
        assert before is not None
        end = row.start + len(row.tokens)
        return Picks((pick(before, row.sampling.seed, row.choice, end),) if row.samples else ())

    def _namespace(self, row: Row) -> str:
        return self.namespaces[row.sequence]


def always(behind: int, remaining: int, survival: object, optimistic: object) -> bool:
    return True


def to_full_depth(survivals: Mapping[int, tuple[float, ...]], rivals: object) -> dict[int, int]:
    """Every draft is worth its time."""
    return {sequence: len(survival) for sequence, survival in survivals.items()}


class WrongAt(ChainRunner):
    """Guesses the token at one place of every draft wrongly, and all other tokens as the target would."""

    def __init__(self, namespaces: dict[int, str], place: int, view: Callable[[int], SequenceView]) -> None:
        super().__init__(namespaces)
        self.place = place
        self.view = view

    def _run(self, row: Row) -> Picks:
        picks = super()._run(row)
        place = row.start + len(row.tokens) - len(self.view(row.sequence).tokens)
        return Picks(tuple((token + 1) % VOCABULARY for token in picks.tokens)) if place == self.place else picks


class Bench:
    """An engine on the auditing target, with the draft model beside it; `wrong` is a place it never guesses right."""

    def __init__(
        self,
        draft_blocks: int = 64,
        blocks: int = 64,
        depth: int = 4,
        pace: int = 8,
        tokens: int = 32,
        wrong: int | None = None,
    ) -> None:
        self.space = KVSpace([Store(TARGET, blocks, 8), Store(DRAFT, draft_blocks)], BLOCK)
        self.scheduler = Scheduler(self.space[TARGET])
        self.namespaces: dict[int, str] = {}
        self.chain = ChainRunner(self.namespaces)
        if wrong is not None:
            self.chain = WrongAt(self.namespaces, wrong, self.view)
        self.drafter = ModelDrafter(self.chain, self.space[DRAFT], Acceptance(), Lengths(), depth, always, pace)
        self.reports: list[Report] = []
        self.engine = Engine(
            self.scheduler,
            AuditingRunner(BLOCK, self.view),
            Auto((), self.drafter, to_full_depth, self.drafter.name),
            FixedLimits(tokens, 4, depth),
            (self.reports.append,),
            lambda: 0.0,
            VOCABULARY,
            CONTEXT,
        )

    def view(self, sequence: int) -> SequenceView:
        return next(s for s in self.scheduler.running if s.id == sequence)

    def ask(self, *requests: Request) -> dict[str, list[int]]:
        """The answers, with the books recounted after every step and every draft KV compared with the truth."""
        written: dict[str, list[int]] = {request.id: [] for request in requests}
        for request in requests:
            for sequence in self.engine.add(request):
                self.namespaces[sequence] = request.namespace
        while not self.engine.idle:
            report = self.engine.step()
            assert not self.engine.faults, self.engine.last_fault
            self.space.check()
            self.audit()
            for row in report.rows:
                written[row.request].extend(row.emitted)
        self.audit_index()
        return written

    def audit(self) -> None:
        for draft in self.drafter._drafts.values():
            known = draft.sequence.tokens
            wanted = digests(draft.sequence.namespace, known)
            if not draft.copies:
                self.chain.cells.audit(draft.table.ids, wanted, min(draft.computed, len(known)))

    def audit_index(self) -> None:
        """What can be found holds the KV of the text it is found by, and nobody holds anything any more."""
        space = self.space[DRAFT]
        assert not any(space.pool.holders), "blocks are still held"
        for entry in space.index:
            namespace, known = whole(entry)
            wanted = digests(namespace, known)[-len(entry.text) :]
            found = tuple(self.chain.cells.held.get((entry.block, offset)) for offset in range(entry.size))
            assert found == wanted[: entry.size], f"block {entry.block} does not hold what it is filed under"

    @property
    def drafted(self) -> int:
        return sum(row.drafted for report in self.reports for row in report.rows)

    @property
    def accepted(self) -> int:
        return sum(row.accepted for report in self.reports for row in report.rows)


def request(name: str, prompt: Sequence[int], tokens: int = 16, seed: int = 1, **more: object) -> Request:
    return replace(Request(name, tuple(prompt), tokens, Sampling(temperature=1.0, seed=seed)), **more)  # type: ignore[arg-type]


def text(length: int, seed: int = 0) -> list[int]:
    random = Random(seed)
    return [random.randrange(VOCABULARY) for _ in range(length)]


def truth(asked: Request) -> list[int]:
    return answer(asked, 0, CONTEXT)[0]


def test_a_drafter_that_equals_the_target_is_never_wrong() -> None:
    bench, asked = Bench(), request("a", text(13), 30)
    assert bench.ask(asked)["a"] == truth(asked)
    assert bench.accepted == bench.drafted > 15


@pytest.mark.parametrize("depth", [1, 2, 3, 5, 8, 21, 64])
@pytest.mark.parametrize("length", [1, 3, 4, 5, 17, 32])
def test_every_depth_and_prompt_length(depth: int, length: int) -> None:
    bench, asked = Bench(depth=depth, tokens=7), request("a", text(length), 21)
    assert bench.ask(asked)["a"] == truth(asked)
    assert bench.accepted == bench.drafted > 0


def test_the_second_identical_request_drafts_as_well_as_the_first_and_reads_its_prompt_from_the_cache() -> None:
    bench = Bench(pace=64)
    bench.ask(request("a", text(40), 12))
    positions, drafted = bench.chain.positions, bench.drafted
    bench.ask(request("b", text(40), 12))
    assert bench.drafted == 2 * drafted
    assert bench.accepted == bench.drafted
    assert bench.chain.positions - positions < positions / 2


def test_a_target_hit_without_draft_state_catches_up_a_portion_a_step() -> None:
    bench = Bench(pace=5)
    asked = request("a", text(48), 30)
    bench.ask(replace(asked, speculate="off"))
    bench.reports.clear()
    assert bench.ask(replace(asked, id="b"))["b"] == truth(asked)
    reasons = [row.reason for report in bench.reports for row in report.rows]
    assert reasons.count("catching_up") >= 48 // 6 - 2
    assert bench.accepted == bench.drafted > 0
    (admitted,) = [a for report in bench.reports for a in report.admitted]
    assert admitted.cached == 47, "the target's hit is not touched by what the drafter lacks"


@pytest.mark.parametrize("pace", [8, 64])
@pytest.mark.parametrize("length", [1, 20, 32, 33, 34, 65])
def test_nothing_is_computed_before_the_first_token(length: int, pace: int) -> None:
    """Not even where a chunk (of 32 here) ends just before the prompt's last token: drafts could be verified then."""
    bench = Bench(pace=pace)
    bench.engine.add(request("a", text(length)))
    bench.namespaces[0] = ""
    while not bench.reports or not any(row.emitted for row in bench.reports[-1].rows):
        assert bench.chain.passes == 0
        bench.engine.step()


def test_passes_that_only_catch_up_are_bounded_and_priced_by_nobody() -> None:
    bench = Bench(pace=5)
    bench.ask(request("a", text(48), 20, speculate="off"))
    priced: list[int] = []

    def worth(survivals: Mapping[int, tuple[float, ...]], rivals: object) -> dict[int, int]:
        priced.append(bench.chain.positions)
        return to_full_depth(survivals, rivals)

    bench.engine.drafter = Auto((), bench.drafter, worth, bench.drafter.name)
    positions: list[int] = []
    bench.engine.observers = (*bench.engine.observers, lambda report: positions.append(bench.chain.positions))
    bench.ask(request("b", text(48), 30))
    assert priced[0] >= 48 - 5
    steps = [after - before for before, after in pairwise(positions)]
    assert max(steps) <= 1 + 5 + 4
    assert bench.accepted == bench.drafted > 0


def test_whether_catching_up_pays_is_asked_now_and_then() -> None:
    bench, asked = Bench(), 0

    def repays(behind: int, remaining: int, survival: object, optimistic: object) -> bool:
        nonlocal asked
        asked += 1
        return False

    bench.drafter.repays = repays
    bench.ask(request("a", text(20), 40))
    assert 40 // PAUSE - 1 <= asked <= 40 // PAUSE + 1


def test_where_catching_up_does_not_pay_it_stays_silent() -> None:
    bench = Bench()
    bench.drafter.repays = lambda behind, remaining, survival, optimistic: remaining > 100
    asked = request("a", text(20))
    assert bench.ask(asked)["a"] == truth(asked)
    assert bench.chain.passes == 0


def test_what_is_counted_on_follows_the_answers_of_the_namespace() -> None:
    bench, counted_on = Bench(), []

    def repays(behind: int, remaining: int, survival: object, optimistic: object) -> bool:
        counted_on.append(remaining)
        return False

    bench.drafter.repays = repays
    for number in range(4):
        bench.ask(request(f"{number}", text(20), 5, namespace="x"))
    assert bench.drafter._lengths.expected("x", 0) < 6
    bench.ask(request("long", text(20), 30, namespace="x"), request("other", text(20), 30, namespace="y"))
    assert counted_on[:1] == [4]
    assert sorted(counted_on[4:6]) == [6, 9]  # nothing is known of the other, and one token was written
    bench.drafter._lengths = Lengths()
    for _ in range(30):
        bench.drafter._lengths.add("x", 5)
    counted_on.clear()
    bench.ask(request("known", text(20), 60, namespace="x"))
    assert max(counted_on) < 60 / 2
    bench.drafter.purge("x")
    assert bench.drafter._lengths.expected("x", 0) == FIRST


@pytest.mark.parametrize("seed", range(6))
def test_a_mixed_batch_under_memory_pressure_stays_right(seed: int) -> None:
    """Few blocks of either kind: the target preempts, the drafter goes without."""
    bench = Bench(draft_blocks=14, blocks=30, depth=3, tokens=9)
    shared = text(18, seed)
    asked = [
        request(f"r{i}", shared[: 6 + 3 * i] + text(i, seed + i), 14, seed=i, namespace="xy"[i % 2]) for i in range(5)
    ]
    written = bench.ask(*asked)
    assert written == {r.id: truth(r) for r in asked}
    assert bench.accepted == bench.drafted > 0


def test_long_then_short_then_long_again() -> None:
    bench = Bench(draft_blocks=20)
    for name, length in (("a", 60), ("b", 3), ("c", 60)):
        asked = request(name, text(length, length), 10)
        assert bench.ask(asked)[name] == truth(asked)
    assert bench.accepted == bench.drafted > 0


@pytest.mark.parametrize("place", range(7))
@pytest.mark.parametrize("length", [1, 4, 6, 15])
def test_rejected_at_every_place_it_keeps_what_came_true_and_nothing_else(place: int, length: int) -> None:
    bench = Bench(depth=7, wrong=place)
    for name in ("cold", "warm"):
        asked = request(name, text(length), 30)
        assert bench.ask(asked)[name] == truth(asked)
    kept = {row.accepted for report in bench.reports for row in report.rows if row.drafted > place}
    assert kept == {place}
    positions = bench.chain.positions
    bench.ask(request("again", text(length), 1))
    assert bench.chain.positions == positions, "an answer of one token has no use for drafts"


def test_acceptance_does_not_depend_on_what_was_known_of_the_prompt() -> None:
    def accepted(*before: Request) -> list[tuple[int, int]]:
        bench = Bench(pace=64, wrong=2)
        for asked in before:
            bench.ask(asked)
        bench.reports.clear()
        bench.ask(request("a", text(40), 20))
        return [(row.drafted, row.accepted) for report in bench.reports for row in report.rows if row.emitted]

    alone = accepted()
    assert sum(kept for _, kept in alone) > 0
    other = request("other", text(30, 5), 10)
    for length in (1, 7, 8, 9, 39, 40):
        assert accepted(request("before", text(40)[:length], 9)) == alone
        assert accepted(request("before", text(40)[:length], 9), other) == alone
    assert accepted(request("before", text(40), 9, speculate="off")) == alone


@pytest.mark.parametrize("choices", [2, 3])
def test_each_choice_is_guessed_with_its_own_noise(choices: int) -> None:
    bench, asked = Bench(), request("a", text(10), 12, choices=choices)
    bench.ask(asked)
    for choice in range(choices):
        emitted = [t for r in bench.reports for row in r.rows if row.choice == choice for t in row.emitted]
        assert emitted == answer(asked, choice, CONTEXT)[0]
    assert bench.accepted == bench.drafted > 0


def test_a_wrong_draft_is_scored_and_its_cells_are_written_over() -> None:
    """Every second guess is spoiled after it was drawn, so rejection strikes at every depth."""
    bench = Bench(depth=4)
    bench.engine.drafter = Spoiler(bench.engine.drafter)
    asked = request("a", text(11), 40)
    assert bench.ask(asked)["a"] == truth(asked)
    assert 0 < bench.accepted < bench.drafted


class Spoiler:
    """Passes the draft model on, with one token of each proposal replaced."""

    name = "spoiler"
    groups = (DRAFT,)

    def __init__(self, drafter: Drafter) -> None:
        self.drafter = drafter
        self.random = Random(3)

    def propose(self, sequences: Sequence[SequenceView]) -> list[Proposal]:
        return [self._spoil(proposal) for proposal in self.drafter.propose(sequences)]

    def _spoil(self, proposal: Proposal) -> Proposal:
        if not proposal.tokens:
            return proposal
        at = self.random.randrange(len(proposal.tokens))
        tokens = list(proposal.tokens)
        tokens[at] = (tokens[at] + 1) % VOCABULARY
        return replace(proposal, tokens=tuple(tokens))

    def observe(self, report: Report) -> None:
        self.drafter.observe(report)

    def forget(self, sequence: int) -> None:
        self.drafter.forget(sequence)


def test_an_aborted_request_gives_everything_back() -> None:
    bench = Bench()
    bench.engine.add(request("a", text(20), 30))
    bench.namespaces[0] = ""
    for _ in range(6):
        bench.engine.step()
    bench.engine.abort("a")
    bench.engine.step()
    bench.space.check()
    assert not bench.drafter._drafts
    space: GroupSpace = bench.space[DRAFT]
    assert space.pool.free + space.pool.idle == space.pool.size


# -- a suite that cannot fail proves nothing ---------------------------------------------------------------------------

FAULTS = [
    Fault(
        "the last guess counts as computed", ModelDrafter, "_settle", "min(agreed, len(draft.guesses) - 1)", "agreed"
    ),
    Fault(
        "guesses are published",
        ModelDrafter,
        "_settle",
        "came = draft",
        "self._space.publish(draft.table, [*draft.sequence.tokens[: draft.started], *draft.guesses, 0],"
        " draft.started + len(draft.guesses)); came = draft",
    ),
    Fault(
        "a guess is drawn with the noise of another place",
        ModelDrafter,
        "_guess_row",
        "len(guesses) - 1",
        "len(guesses)",
    ),
    Fault("choices share their noise", ModelDrafter, "_guess_row", "sequence.choice)", "0)"),
    Fault("it drafts before the first token", ModelDrafter, "expect", "== sequence.prompt_length", "< 0"),
    Fault("it catches up before the first token", ModelDrafter, "catch_up", "> s.prompt_length", "> 0"),
    Fault("a copy is never made", ModelDrafter, "_known_row", "copies=draft.copies", "copies=()"),
    Fault("a portion has no bound", ModelDrafter, "_portions", "min(lacking, 1 + left)", "lacking"),
    Fault("cells of guesses are kept", ModelDrafter, "_settle", "self._space.trim(", "(lambda *_: None)("),
    Fault("who has gone keeps its blocks", ModelDrafter, "forget", "self._space.close(", "(lambda *_: None)("),
    Fault("guesses are scored one too high", ModelDrafter, "_settle", "0, agreed, agreed <", "0, agreed + 1, agreed <"),
]


def caught() -> str:
    """What this file says of the code as it is now: the first complaint, or nothing."""
    try:
        for place in (None, 0, 1, 3):
            test_everything_at_once(place)
        test_each_choice_is_guessed_with_its_own_noise(2)
        for pace in (8, 64):
            test_nothing_is_computed_before_the_first_token(33, pace)
        test_a_target_hit_without_draft_state_catches_up_a_portion_a_step()
        test_what_is_scored_is_what_came_true()
        test_cells_of_refused_guesses_are_free_for_others()
    except AssertionError as complaint:
        return repr(complaint)
    return ""


@pytest.mark.parametrize("wrong", [None, 0, 1, 3])
def test_everything_at_once(wrong: int | None) -> None:
    """Prompts that share beginnings and part inside blocks, asked together and again."""
    bench = Bench(depth=5, pace=9, wrong=wrong)
    prompts = [text(22), [*text(13), *text(8, 3)], text(6), [*text(18), 1]]
    for turn in "ab":
        asked = [request(f"{turn}{i}", prompt, 14) for i, prompt in enumerate(prompts)]
        assert bench.ask(*asked) == {r.id: truth(r) for r in asked}
    assert bench.drafted > 0
    assert (bench.accepted == bench.drafted) == (wrong is None)


def test_what_is_scored_is_what_came_true() -> None:
    bench = Bench(depth=3, wrong=1)
    bench.ask(request("a", text(9), 60))
    first, second, _ = bench.drafter._record.survival(99, "", 0, 3)
    assert first > 0.7
    assert second < 0.3


def test_cells_of_refused_guesses_are_free_for_others() -> None:
    """Before anything is guessed anew, a sequence holds the blocks of known tokens alone."""
    bench = Bench(depth=9, wrong=0)
    held: list[tuple[int, int]] = []

    def settled(report: Report) -> None:
        for draft in bench.drafter._drafts.values():
            bench.drafter.expect(draft.sequence)
            held.append((len(draft.table.blocks), -(-draft.computed // BLOCK)))

    bench.engine.observers = (*bench.engine.observers, settled)
    bench.ask(request("a", text(6), 30))
    assert len(held) > 20
    assert all(blocks == needed for blocks, needed in held)


def test_the_drafter_as_it_is_passes() -> None:
    assert caught() == ""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    break_line(monkeypatch, fault)
    assert caught() != ""
