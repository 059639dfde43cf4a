"""How much of a step is not kernels: scheduling, laying out arrays, committing, accounts, guesses.

Whole engine steps are timed, and inside them the native calls; the rest is Python's.  The runner is the real one with
a clock around its two native calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np

from bench import report
from bench.embedded import Session
from bench.rounds import Measure, Samples, interleave
from twostroke._kernels import Pool, sample
from twostroke.assemble import Assembly, Model, assemble
from twostroke.config import Settings
from twostroke.runtime import runner as runner_module
from twostroke.runtime.inputs import Floats, Inputs
from twostroke.runtime.models.decoder import Decoder
from twostroke.runtime.runner import KernelRunner

BATCHES = (1, 8)
PROMPT = 64  # tokens
STEPS = 60  # in one window
DRAFTERS = ("off", "auto")


class TimedRunner(KernelRunner):
    """The kernel runner with a clock around the forward pass; `timed_sampling` puts one around the draw."""

    def __init__(self, decoder: Decoder, pool: Pool) -> None:
        super().__init__(decoder, pool)
        self.native_s = 0.0

    def run(self, inputs: Inputs) -> Floats:
        began = perf_counter()
        logits = super().run(inputs)
        self.native_s += perf_counter() - began
        return logits


@contextmanager
def timed_sampling(runner: TimedRunner) -> Iterator[None]:
    """Count the time of `sample` as native while this lasts."""

    def timed(*arguments: Any) -> Any:
        began = perf_counter()
        chosen = sample(*arguments)
        runner.native_s += perf_counter() - began
        return chosen

    with patch.object(runner_module, "sample", timed):
        yield


def measure(model: Model, settings: Settings, rounds: int) -> Samples:
    """For each drafter and batch: "share" of a step outside native calls and "ms", the time of it."""
    assembly = assemble(model, settings, runner=TimedRunner)
    measures = {f"{name} {batch}": _window(assembly, name, batch) for name in DRAFTERS for batch in BATCHES}
    return interleave(measures, rounds)


def _window(assembly: Assembly, drafter: str, batch: int) -> Measure:
    session = Session(assembly)
    timed = assembly.engine.runner
    assert isinstance(timed, TimedRunner)

    def run() -> Mapping[str, float]:
        _start(session, drafter, batch)
        before, began = timed.native_s, perf_counter()
        with timed_sampling(timed):
            for _ in range(STEPS):
                session.step()
        whole, native = perf_counter() - began, timed.native_s - before
        _finish(session)
        return {"share": (whole - native) / whole, "ms": (whole - native) / STEPS * 1000}

    return run


def _start(session: Session, drafter: str, batch: int) -> None:
    """Answers that are all being written, and will be for longer than the window."""
    rng = np.random.default_rng(batch)
    vocab = session.assembly.model.config.vocab
    long = STEPS * 24  # a step may emit several tokens
    requests = [
        session.request(rng.integers(0, vocab, PROMPT).tolist(), long, speculate=drafter, namespace=f"{drafter}{n}")
        for n in range(batch)
    ]
    events = [session.submit(request) for request in requests]
    while not all(events):
        session.step()
    session.running = [request.id for request in requests]


def _finish(session: Session) -> None:
    for request in session.running:
        session.assembly.engine.abort(request)
    session.step()


def table(samples: Samples) -> str:
    """The markdown of one model."""
    head = ["drafter, sequences", "outside kernels", "ms a step"]
    return report.table(head, [_row(samples, name, batch) for name in DRAFTERS for batch in BATCHES])


def _row(samples: Samples, drafter: str, batch: int) -> list[str]:
    name = f"{drafter} {batch}"
    return [
        f"{drafter}, {batch}",
        report.percent(samples.spread(f"{name} share")),
        report.spread(samples.spread(f"{name} ms")),
    ]
