"""One workload under one setting, stepped to its end with every book recounted after every step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from random import Random

from tests.composition.fakes import AuditingRunner, DraftModel, Oracle, answer, digests, scores
from tests.composition.features import Toy
from twostroke.cache.index import Entry, Root
from twostroke.cache.keys import Group
from twostroke.cache.space import KVSpace
from twostroke.cache.table import Store
from twostroke.engine.engine import Engine
from twostroke.engine.null import FixedLimits, NoDraft
from twostroke.engine.protocols import Drafter, SequenceView
from twostroke.engine.scheduler import Scheduler
from twostroke.speculate.grammar import GrammarDrafts
from twostroke.types import FinishReason, Logprobs, Report, Request, Retention, Sampling

TARGET = Group("target")
BLOCK = 4
CONTEXT = 44


@dataclass(frozen=True)
class Setting:
    """One point of the matrix.  `skill` None is no drafter; `lookahead` None is a drafter without KV of its own."""

    caching: bool = True
    skill: float | None = None
    lookahead: int | None = None
    blocks: int = 64
    budget: int = 64
    spare: int = 0
    depth: int = 3
    sequences: int = 4
    draft_blocks: int = 16
    pace: int = 8
    block: int = BLOCK
    context: int = CONTEXT


@dataclass(frozen=True)
class Arrival:
    request: Request
    step: int = 0
    abort: int | None = None  # the step before which it is aborted


class Countdown:
    """Stops when the tokens seen add up to a multiple of `modulus`: stateful, as stop strings are."""

    def __init__(self, modulus: int) -> None:
        self.modulus = modulus
        self.total = 0

    def __call__(self, token: int) -> bool:
        self.total += token + 1
        return self.total % self.modulus == 0


def workload(seed: int, requests: int = 8) -> list[Arrival]:
    """Prompts that share beginnings of every length, with all that a request may differ in."""
    random = Random(seed)
    trunk = [random.randrange(7) for _ in range(17)]
    arrivals: list[Arrival] = []
    for number in range(requests):
        prompt = trunk[: random.randint(1, 17)] + [random.randrange(7) for _ in range(random.randint(0, 6))]
        if number == requests - 1:  # the next turn of a conversation
            first = arrivals[0].request
            prompt = [*first.prompt, *answer(first, 0, CONTEXT)[0], 3][: CONTEXT - 19]
        modulus = random.choice((0, 0, 9, 13))
        request = Request(
            id=f"r{number}",
            prompt=tuple(prompt),
            max_tokens=random.randint(1, 18),
            sampling=Sampling(seed=random.randrange(3)),
            choices=random.choice((1, 1, 1, 2, 3)),
            stop_ids=frozenset(random.choice(((), (), (5,)))),
            stop=partial(Countdown, modulus) if modulus else None,
            namespace=random.choice(("", "", "", "b")),
            prefix_cache=random.random() > 0.1,
            speculate=random.choice((None, None, None, "off")),
            draft_tokens=random.choice((None, None, 2, 0)),
        )
        abort = random.randint(1, 25) if random.random() < 0.15 else None
        arrivals.append(Arrival(request, random.randint(0, 12), abort))
    return sorted(arrivals, key=lambda arrival: arrival.step)


def featured(arrivals: list[Arrival], grammar: bool, penalties: bool) -> list[Arrival]:
    """The same workload, most of whose requests ask more of sampling; some have their prompts scored, or hurry."""
    random = Random(len(arrivals))
    return [replace(arrival, request=_asking(arrival.request, random, grammar, penalties)) for arrival in arrivals]


def _asking(request: Request, random: Random, grammar: bool, penalties: bool) -> Request:
    sampling = request.sampling
    if penalties and random.random() < 0.8:
        sampling = replace(
            sampling,
            presence_penalty=random.choice((0.0, 1.0)),
            frequency_penalty=random.choice((0.0, 0.7, -0.5)),
            repetition_penalty=random.choice((1.0, 1.5)),
            bias=random.choice(((), ((2, 200.0), (3, -400.0)))),
            min_tokens=random.choice((0, 6)),
            withheld=(5,),
        )
    return replace(
        request,
        sampling=sampling,
        grammar=partial(Toy, random.randint(6, 18)) if grammar and random.random() < 0.8 else None,
        prompt_logprobs=random.choice((None, None, 0)),
        priority=random.choice((0, 0, 0, -1, 3)),
        retain=random.choice(((), (Retention(9, 40.0),))),
    )


@dataclass
class Outcome:
    """What came out, and what really happened on the way."""

    answers: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    finished: dict[tuple[str, int], FinishReason] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    cached: dict[tuple[str, int], int] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    scores: dict[tuple[str, int], tuple[Logprobs, ...]] = field(default_factory=dict)

    def observe(self, report: Report) -> None:
        self.reports.append(report)
        for admission in report.admitted:
            self.counts["resumed" if admission.resumed else "admitted"] += 1
            if not admission.resumed:
                self.counts["cached"] += admission.cached
                self.cached[admission.request, admission.choice] = admission.cached
        for row in report.rows:
            self.answers.setdefault((row.request, row.choice), []).extend(row.emitted)
            self.scores[row.request, row.choice] = self.scores.get((row.request, row.choice), ()) + row.scores
            self.counts["scored"] += len(row.scores)
            self.counts["forced"] += row.drafted if row.source == "grammar" else 0
            self.counts["drafted"] += row.drafted
            self.counts["accepted"] += row.accepted
            self.counts["rejected"] += row.drafted - row.accepted
            self.counts["chunked"] += not row.emitted
            if row.finished is not None:
                self._finish(row.request, row.choice, row.finished)
        for end in report.ended:
            self._finish(end.request, end.choice, end.reason)
        self.counts["preempted"] += len(report.preempted)
        self.counts["evicted"] += report.evicted

    def _finish(self, request: str, choice: int, reason: FinishReason) -> None:
        assert (request, choice) not in self.finished, "a second terminal event"
        self.finished[request, choice] = reason


def whole(entry: Entry) -> tuple[str, list[int]]:
    """The namespace and the text from its beginning that an entry stands for, lookahead included."""
    text = list(entry.text)
    node = entry.parent
    while isinstance(node, Entry):
        text[:0] = node.text[: node.size]
        node = node.parent
    assert isinstance(node, Root)
    return node.namespace, text


class Simulation:
    """The engine on the auditing runner, under a setting."""

    def __init__(self, setting: Setting, seed: int = 0) -> None:
        self.setting = setting
        stores = [Store(TARGET, setting.blocks, setting.spare)]
        draft = Group("draft", setting.lookahead or 0)
        if setting.lookahead is not None:
            stores.append(Store(draft, setting.draft_blocks))
        self.space = KVSpace(stores, setting.block, caching=setting.caching)
        self.scheduler = Scheduler(self.space[TARGET])
        self.runner = AuditingRunner(setting.block, self._view)
        self.drafter = self._drafter(draft, Random(seed + 1))
        self.outcome = Outcome()
        self.engine = Engine(
            self.scheduler,
            self.runner,
            GrammarDrafts(self.drafter, setting.depth) if setting.skill is not None else self.drafter,
            FixedLimits(setting.budget, setting.sequences, setting.depth),
            observers=(self.outcome.observe,),
            clock=count().__next__,
            vocabulary=7,
            context=setting.context,
        )

    def _drafter(self, group: Group, random: Random) -> Drafter:
        setting = self.setting
        if setting.skill is None:
            return NoDraft()
        if setting.lookahead is None:
            return Oracle(setting.skill, setting.depth, random)
        return DraftModel(self.space[group], setting.skill, setting.depth, random, setting.pace)

    def _view(self, sequence: int) -> SequenceView:
        return next(s for s in self.scheduler.running if s.id == sequence)

    def step(self) -> Report:
        report = self.engine.step()
        assert not self.engine.faults, self.engine.last_fault
        self.check()
        self.outcome.counts["steps"] += 1
        self.outcome.counts["copies"] += sum(1 for a in report.admitted if a.cached % self.setting.block)
        return report

    def check(self) -> None:
        self.space.check()
        self.scheduler.check()
        for space in self.space:
            assert not space.faults, "the cache failed"
            assert not space.collisions, "two texts share a key"
        for sequence in self.scheduler.running:
            assert sequence.table is not None
            final = sequence.computed // self.setting.block
            assert sequence.table.published <= final, "published what is not computed"
            if not sequence.prefix_cache:
                assert not sequence.table.published + sequence.table.cached, "reads or publishes against its will"

    def audit(self) -> None:
        """Every cell that can be found holds the KV of the text it is found by."""
        cells = {self.space[TARGET]: self.runner.cells}
        if isinstance(self.drafter, DraftModel):
            cells[self.drafter.space] = self.drafter.cells
        for space, found in cells.items():
            for entry in space.index:
                namespace, text = whole(entry)
                wanted = digests(namespace, text)
                start = len(text) - len(entry.text)
                for offset in range(entry.size):
                    assert found.held[entry.block, offset] == wanted[start + offset + space.group.lookahead], (
                        f"block {entry.block} of {space.group} does not hold what it is filed under"
                    )

    def run(self, arrivals: list[Arrival]) -> Outcome:
        todo = list(arrivals)
        for now in range(4000):
            while todo and todo[0].step <= now:
                self.engine.add(todo.pop(0).request)
            for arrival in arrivals:
                if arrival.abort == now and arrival not in todo:
                    self.engine.abort(arrival.request.id)
            if self.engine.idle and not todo:
                self.settle(arrivals)
                return self.outcome
            self.step()
        raise AssertionError("the engine makes no progress")

    def ask(self, *requests: Request) -> Outcome:
        """Run requests, all there at once, to their end."""
        return self.run([Arrival(request) for request in requests])

    def settle(self, arrivals: list[Arrival]) -> None:
        """Nothing is held any more, what is remembered is right, and every answer is the one it must be."""
        self.audit()
        for space in self.space:
            assert not any(space.pool.holders), "blocks are still held"
        for arrival in arrivals:
            for choice in range(arrival.request.choices):
                self._judge(arrival, choice)

    def _judge(self, arrival: Arrival, choice: int) -> None:
        key = arrival.request.id, choice
        wanted, reason = answer(arrival.request, choice, self.engine.context)
        found = self.outcome.answers.get(key, [])
        assert key in self.outcome.finished, f"{key} has no terminal event"
        if arrival.abort is not None and self.outcome.finished[key] is FinishReason.ABORT:
            assert found == wanted[: len(found)], f"{key}: another answer, as far as it went"
            return
        assert found == wanted, f"{key}: another answer"
        told = scores(arrival.request) if choice == 0 else ()
        assert self.outcome.scores.get(key, ()) == told, f"{key}: other scores of its prompt"
        assert self.outcome.finished[key] is reason, f"{key}: ended by {self.outcome.finished[key]}"
