"""The real engine behind the accounts and the host, on the auditing runner: what they assume of it holds."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from tests.composition.fakes import answer
from tests.composition.simulation import CONTEXT, Setting, Simulation, workload
from twostroke.observe.delivery import Delivery
from twostroke.observe.phases import Accounts, Finished
from twostroke.observe.rates import MeasuredRates
from twostroke.serve.host import Host
from twostroke.types import Delta, Done, FinishReason, Request

SETTINGS = {
    "plain": Setting(),
    "drafts": Setting(skill=0.7),
    "draft model": Setting(skill=0.7, lookahead=1),
    "crowded": Setting(skill=0.5, blocks=16, budget=6),
    "no cache": Setting(caching=False, skill=1.0),
}


def connect(simulation: Simulation) -> tuple[Accounts, Delivery, list[Finished]]:
    """Accounts and delivery among the observers of a simulation's engine."""
    closed: list[Finished] = []
    accounts = Accounts(MeasuredRates(), sinks=(closed.append,))
    delivery = Delivery(accounts.phases)
    simulation.engine.observers = (accounts, delivery, *simulation.engine.observers)
    return accounts, delivery, closed


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", SETTINGS)
def test_accounts_of_real_steps_add_up(name: str, seed: int) -> None:
    simulation = Simulation(SETTINGS[name], seed)
    accounts, _, closed = connect(simulation)
    arrivals = workload(seed)
    for arrival in arrivals:
        accounts.accept(arrival.request)
    outcome = simulation.run(arrivals)
    assert Counter((f.request, f.choice) for f in closed) == Counter(dict.fromkeys(outcome.finished, 1))
    sizes = {arrival.request.id: len(arrival.request.prompt) for arrival in arrivals}
    for finished in closed:
        prefill, decode = finished.phases.prefill, finished.phases.decode
        key = (finished.request, finished.choice)
        assert decode.output_tokens == len(outcome.answers.get(key, []))
        assert decode.steps + decode.accepted == decode.output_tokens
        assert prefill.prompt_tokens == sizes[finished.request]
        assert prefill.cached_tokens == outcome.cached.get(key, 0)
        if finished.reason is not FinishReason.ABORT:
            assert prefill.cached_tokens + prefill.computed_tokens >= prefill.prompt_tokens
            if not outcome.counts["preempted"]:
                assert prefill.cached_tokens + prefill.computed_tokens == prefill.prompt_tokens
    assert sum(f.phases.decode.accepted for f in closed) == outcome.counts["accepted"]
    assert sum(f.phases.decode.drafted for f in closed) == outcome.counts["drafted"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SETTINGS)
def test_every_stream_is_the_one_right_answer_and_ends_once(name: str, seed: int) -> None:
    simulation = Simulation(SETTINGS[name], seed)
    accounts, delivery, _ = connect(simulation)
    host = Host(simulation.engine, delivery, accept=accounts.accept)

    async def read(request: Request, leave: bool) -> None:
        tokens: dict[int, list[int]] = {c: [] for c in range(request.choices)}
        ends: dict[int, Done] = {}
        stream = host.submit(request)
        async for _, event in stream:
            if isinstance(event, Delta):
                tokens[event.choice] += event.tokens
            else:
                assert event.choice not in ends
                ends[event.choice] = event
            if leave:
                stream.close()
        assert set(ends) == set(tokens)
        for choice, done in ends.items():
            right, reason = answer(request, choice, CONTEXT)
            assert done.phases is not None
            if done.reason is FinishReason.ABORT:
                assert leave
                assert tokens[choice] == right[: len(tokens[choice])]
            else:
                assert (tokens[choice], done.reason) == (right, reason)

    async def run() -> None:
        host.start()
        arrivals = workload(seed, requests=12)
        unique = [replace(a.request, id=f"{i}") for i, a in enumerate(arrivals)]
        async with asyncio.timeout(30):
            await asyncio.gather(*(read(r, leave=a.abort is not None) for r, a in zip(unique, arrivals, strict=True)))
        assert (host.open, host.waiting) == (0, 0)
        host.stop()

    asyncio.run(run())
    simulation.check()
    assert simulation.engine.idle
    assert not simulation.engine.faults
