"""What is asked of sampling composes with every switch on a real model: ids, log-probabilities and scores are equal.

Compared against the plainest run: cache off, speculation off, one sequence at a time, one thread, whole chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pytest

from tests.prompts import twelve_prompts
from twostroke.assemble import Model, assemble, open_model
from twostroke.config import Settings
from twostroke.types import FinishReason, Logprobs, Report, Request, Sampling

OUTPUT = 24


class Steps:
    """A grammar over token ids: at each place so many of them, by a rule; every third place leaves no choice."""

    def __init__(self, vocabulary: int, length: int) -> None:
        self.vocabulary = vocabulary
        self.length = length
        self.fed: list[int] = []

    @property
    def finished(self) -> bool:
        return len(self.fed) >= self.length

    def advance(self, token: int) -> None:
        if not self._allows(len(self.fed), token):
            raise ValueError(f"token {token} at place {len(self.fed)}")
        self.fed.append(token)

    def allowed(self, drafts: Sequence[int]) -> bytes:
        return b"".join(self._mask(len(self.fed) + i) for i in range(1 + len(drafts)))

    def valid(self, drafts: Sequence[int]) -> int:
        places = enumerate(drafts, len(self.fed))
        return next((i for i, (place, token) in enumerate(places) if not self._allows(place, token)), len(drafts))

    def forced(self) -> tuple[int, ...]:
        place = len(self.fed)
        return (100 + place,) if place % 3 == 2 and not self.finished else ()

    def _allows(self, place: int, token: int) -> bool:
        return token == 100 + place if place % 3 == 2 else token % 7 != place % 7

    def _mask(self, place: int) -> bytes:
        ids = np.arange(-(-self.vocabulary // 32) * 32)
        bits = (ids == 100 + place) if place % 3 == 2 else (ids % 7 != place % 7)
        return np.packbits(bits & (ids < self.vocabulary), bitorder="little").tobytes()


class Broken(Steps):
    """Fails at its fourth mask."""

    def allowed(self, drafts: Sequence[int]) -> bytes:
        if len(self.fed) >= 3:
            raise RuntimeError("no more masks")
        return super().allowed(drafts)


@dataclass
class Outcome:
    tokens: tuple[int, ...] = ()
    logprobs: tuple[Logprobs, ...] = ()
    scores: tuple[Logprobs, ...] = ()
    finished: FinishReason | None = None
    error: str | None = None
    accepted: int = 0
    sources: set[str] = field(default_factory=set)


class Observer:
    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}

    def __call__(self, report: Report) -> None:
        for row in report.rows:
            outcome = self.outcomes.setdefault(row.request, Outcome())
            outcome.tokens += row.emitted
            outcome.logprobs += row.logprobs
            outcome.scores += row.scores
            outcome.accepted += row.accepted
            outcome.sources.add(row.source)
            outcome.finished, outcome.error = row.finished, row.error


@dataclass(frozen=True)
class Case:
    cache: bool = False
    drafts: int = 0
    batch: int = 1
    step_tokens: int = 512
    threads: int = 1


PLAIN = Case()
CASES = [
    Case(drafts=4),
    Case(cache=True),
    Case(batch=6, step_tokens=16),
    Case(cache=True, drafts=8, batch=6, step_tokens=16, threads=2),
    Case(cache=True, drafts=1, batch=3, step_tokens=64),
]
PENALTIES = Sampling(
    repetition_penalty=1.3,
    presence_penalty=0.4,
    frequency_penalty=0.3,
    bias=((13, 3.5), (28, -100.0)),
    min_tokens=6,
    withheld=(0, 2),
    logprobs=2,
)
ASKED = {
    "penalties": PENALTIES,
    "penalties-drawn": replace(PENALTIES, temperature=0.9, top_p=0.9, top_k=40, seed=5),
    "grammar": Sampling(logprobs=2),
    "grammar-drawn": Sampling(temperature=1.1, top_p=0.8, seed=6),
    "grammar-penalties": replace(PENALTIES, temperature=0.7, seed=9),
    "scores": Sampling(logprobs=1),
}


@pytest.fixture(scope="module")
def smollm() -> Model:
    return open_model(Settings(model="smollm2-135m", context=1024))


def ask(model: Model, name: str, asked: str, prompt: tuple[int, ...]) -> Request:
    grammar = partial(Steps, model.config.vocab, 20) if "grammar" in asked else None
    scored = 2 if asked == "scores" else None
    return Request(name, prompt, OUTPUT, ASKED[asked], grammar=grammar, prompt_logprobs=scored)


def run(model: Model, case: Case, requests: Sequence[Request]) -> list[Outcome]:
    observer = Observer()
    settings = Settings(
        model=model.name,
        prefix_cache=case.cache,
        speculate="prediction" if case.drafts else "off",
        draft_tokens=case.drafts or 1,
        step_tokens=case.step_tokens,
        threads=case.threads,
        context=1024,
        kv_memory=256 * 2**20,
        calibrate=False,
    )
    assembly = assemble(model, settings, observers=(observer,))
    for begin in range(0, len(requests), case.batch):
        for request in requests[begin : begin + case.batch]:
            assembly.engine.add(request)
        while not assembly.engine.idle:
            assembly.engine.step()
            assembly.check()
    assert not assembly.engine.faults, assembly.engine.last_fault
    return [observer.outcomes[request.id] for request in requests]


@pytest.mark.model
@pytest.mark.parametrize("asked", ASKED)
def test_no_switch_changes_what_is_asked_of_sampling(smollm: Model, asked: str) -> None:
    prompts = twelve_prompts(smollm.codec)[:4]
    requests = [ask(smollm, f"r{i}", asked, prompt) for i, prompt in enumerate(prompts)]
    plain = run(smollm, PLAIN, requests)
    guessed = [(*outcome.tokens[:9], 7, *outcome.tokens[10:]) for outcome in plain]  # right but for one token
    requests = [replace(request, prediction=guess) for request, guess in zip(requests, guessed, strict=True)]
    accepted, sources = 0, set[str]()
    for case in CASES:
        warmed = [replace(request, id=f"again-{request.id}") for request in requests] if case.cache else requests
        outcomes = run(smollm, case, [*requests, *warmed] if case.cache else requests)
        for outcome, wanted in zip(outcomes, (plain * 2)[: len(outcomes)], strict=True):
            found = outcome.tokens, outcome.logprobs, outcome.scores, outcome.finished
            assert found == (wanted.tokens, wanted.logprobs, wanted.scores, wanted.finished), case
            accepted, sources = accepted + outcome.accepted, sources | outcome.sources
    assert accepted > 0, "no draft was ever accepted"
    assert ("grammar" in sources) == ("grammar" in asked)


@pytest.mark.model
def test_scores_are_those_of_the_plain_distribution(smollm: Model) -> None:
    prompt = twelve_prompts(smollm.codec)[1]
    (outcome,) = run(smollm, PLAIN, [ask(smollm, "r", "scores", prompt)])
    assert [score.chosen.token for score in outcome.scores] == list(prompt[1:])
    half = len(prompt) // 2
    request = Request("half", prompt[:half], 1, Sampling(logprobs=2))
    (shorter,) = run(smollm, PLAIN, [request])
    assert outcome.scores[half - 1].top == shorter.logprobs[0].top


@pytest.mark.model
def test_penalties_and_grammars_change_answers_and_not_log_probabilities(smollm: Model) -> None:
    prompt = twelve_prompts(smollm.codec)[1]
    names = ("scores", "penalties", "grammar")
    plain, penalized, confined = run(smollm, PLAIN, [ask(smollm, n, n, prompt) for n in names])
    assert len({plain.tokens, penalized.tokens, confined.tokens}) == 3
    assert confined.finished is FinishReason.STOP
    assert len(confined.tokens) == 20
    assert plain.logprobs[0].top[0] == penalized.logprobs[0].top[0] == confined.logprobs[0].top[0]


@pytest.mark.model
def test_a_grammar_that_fails_ends_its_own_answer_alone(smollm: Model) -> None:
    prompts = twelve_prompts(smollm.codec)[:3]
    requests = [ask(smollm, f"r{i}", "grammar", prompt) for i, prompt in enumerate(prompts)]
    plain = run(smollm, PLAIN, requests)
    broken = replace(requests[1], grammar=partial(Broken, smollm.config.vocab, 20))
    first, failed, last = run(smollm, Case(batch=3, drafts=4), [requests[0], broken, requests[2]])
    assert (first.tokens, last.tokens) == (plain[0].tokens, plain[2].tokens)
    assert (failed.finished, failed.error) == (FinishReason.ERROR, "the grammar failed: no more masks")
    assert failed.tokens == plain[1].tokens[: len(failed.tokens)]
