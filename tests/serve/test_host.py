"""One thread, one door, and exactly one ending per choice, whatever happens."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from tests.serve.live import until
from tests.serve.scripted import EchoEngine
from twostroke.errors import Draining, InternalError, Overloaded
from twostroke.observe.delivery import Delivery
from twostroke.serve.host import Host, Stream
from twostroke.types import Delta, Done, FinishReason, Request


def ask(name: str, text: bytes = b"hello", *, choices: int = 1, max_tokens: int = 1000) -> Request:
    return Request(id=name, prompt=tuple(text), max_tokens=max_tokens, choices=choices, stop_ids=frozenset({256}))


def endless(name: str) -> Request:
    return ask(name, b"x" * 100_000, max_tokens=100_000)


async def read(stream: Stream) -> tuple[dict[tuple[int, int], bytes], list[tuple[int, Done]]]:
    """Everything a stream has to say: tokens by place and choice, and the endings in order."""
    tokens: dict[tuple[int, int], bytes] = {}
    endings = []
    async for place, event in stream:
        key = (place, event.choice)
        if isinstance(event, Delta):
            tokens[key] = tokens.get(key, b"") + bytes(t for t in event.tokens if t < 256)
        else:
            endings.append((place, event))
    return tokens, endings


def with_host(
    act: Callable[[Host, EchoEngine], Awaitable[None]], engine: EchoEngine | None = None, **options: int
) -> None:
    """Run `act` with a started host and stop it afterwards."""
    engine = engine or EchoEngine()
    delivery = Delivery()
    engine.observers = (delivery,)
    host = Host(engine, delivery, **options)

    async def run() -> None:
        host.start()
        try:
            await act(host, engine)
        finally:
            host.stop()
        assert not host.alive

    asyncio.run(run())


def test_tokens_arrive_in_order_and_the_ending_last() -> None:
    async def act(host: Host, engine: EchoEngine) -> None:
        tokens, endings = await read(host.submit(ask("a")))
        assert tokens == {(0, 0): b"hello"}
        assert endings == [(0, Done(0, FinishReason.STOP, None))]
        assert (host.open, host.waiting) == (0, 0)

    with_host(act)


def test_requests_submitted_together_share_a_stream() -> None:
    async def act(host: Host, engine: EchoEngine) -> None:
        tokens, endings = await read(host.submit(ask("a", b"one", choices=2), ask("b", b"two")))
        assert tokens == {(0, 0): b"one", (0, 1): b"one", (1, 0): b"two"}
        assert Counter((place, done.choice) for place, done in endings) == Counter([(0, 0), (0, 1), (1, 0)])

    with_host(act)


def test_many_requests_at_once_all_end_once() -> None:
    async def act(host: Host, engine: EchoEngine) -> None:
        streams = [host.submit(ask(f"r{i}", b"%d" % i, choices=1 + i % 3)) for i in range(60)]
        for i, (tokens, endings) in enumerate(await asyncio.gather(*map(read, streams))):
            assert sorted(done.choice for _, done in endings) == list(range(1 + i % 3))
            assert set(tokens.values()) == {b"%d" % i}

    with_host(act, EchoEngine(slots=4, drafts=2))


def test_a_full_queue_refuses_and_takes_nothing() -> None:
    async def act(host: Host, engine: EchoEngine) -> None:
        running = host.submit(endless("run"))
        await until(lambda: host.waiting == 0)
        waiting = host.submit(endless("wait"))
        with pytest.raises(Overloaded, match="exceed the queue of 2"):
            host.submit(ask("a"), ask("b"))
        assert (host.open, host.waiting) == (2, 1)
        assert host.retry_after_s() >= 1
        running.close()
        _, endings = await read(running)
        assert endings[-1][1].reason is FinishReason.ABORT
        waiting.close()
        await read(waiting)
        assert (await read(host.submit(ask("c"))))[0] == {(0, 0): b"hello"}

    with_host(act, EchoEngine(slots=1), max_queue=2)


def test_closing_early_aborts_within_one_step() -> None:
    async def act(host: Host, engine: EchoEngine) -> None:
        stream = host.submit(endless("a"))
        await anext(stream)
        stream.close()
        at = engine.steps
        await until(lambda: host.open == 0)
        assert engine.idle
        assert engine.steps - at <= 3  # the step at hand, the one that drops it, and one between reading and closing
        assert engine.aborted == set()

    with_host(act, EchoEngine(pause_s=0.02))


def test_closing_after_the_end_is_no_abort() -> None:
    async def act(host: Host, engine: EchoEngine) -> None:
        stream = host.submit(ask("a"))
        await read(stream)
        stream.close()
        await asyncio.sleep(0.02)
        assert engine.aborted == set()

    with_host(act)


def test_a_failing_step_ends_its_requests_and_the_host_goes_on() -> None:
    async def act(host: Host, engine: EchoEngine) -> None:
        streams = [host.submit(endless(f"r{i}")) for i in range(6)]
        await until(lambda: host.waiting == 2)
        engine.fail_next = RuntimeError("boom")
        for _, endings in await asyncio.gather(*map(read, streams)):
            ((_, done),) = endings
            assert (done.reason, done.error) == (FinishReason.ERROR, "a step failed: boom")
        assert (await read(host.submit(ask("after"))))[0] == {(0, 0): b"hello"}
        assert host.open == 0

    with_host(act, EchoEngine(pause_s=0.001))


def test_a_request_the_engine_refuses_ends_with_an_error() -> None:
    class Picky(EchoEngine):
        def add(self, request: Request) -> None:
            if request.id == "bad":
                raise ValueError("not this one")
            super().add(request)

    async def act(host: Host, engine: EchoEngine) -> None:
        _, ((_, done),) = await read(host.submit(ask("bad")))
        assert done.reason is FinishReason.ERROR
        assert "not this one" in (done.error or "")
        assert (await read(host.submit(ask("good"))))[1][0][1].reason is FinishReason.STOP

    with_host(act, Picky())


def test_draining_finishes_what_runs_and_refuses_the_rest() -> None:
    async def act(host: Host, engine: EchoEngine) -> None:
        stream = host.submit(ask("a", b"x" * 20))
        draining = asyncio.ensure_future(host.drain(10))
        await asyncio.sleep(0)
        with pytest.raises(Draining):
            host.submit(ask("late"))
        tokens, _ = await read(stream)
        assert tokens == {(0, 0): b"x" * 20}
        assert await draining is True

    with_host(act, EchoEngine(pause_s=0.005))


def test_draining_aborts_what_takes_too_long() -> None:
    async def act(host: Host, engine: EchoEngine) -> None:
        stream = host.submit(endless("a"))
        assert await host.drain(0.05) is False
        _, ((_, done),) = await read(stream)
        assert done.reason is FinishReason.ABORT
        assert engine.idle

    with_host(act, EchoEngine(pause_s=0.001))


def test_stopping_ends_everything_accepted_even_what_was_never_taken_up() -> None:
    async def act(host: Host, engine: EchoEngine) -> None:
        streams = [host.submit(endless(f"r{i}")) for i in range(5)]
        host.stop()
        for _, endings in await asyncio.gather(*map(read, streams)):
            assert [done.reason for _, done in endings] == [FinishReason.ABORT]

    with_host(act, EchoEngine(slots=1, pause_s=0.01))


def test_a_stopped_host_refuses() -> None:
    async def act(host: Host, engine: EchoEngine) -> None:
        host.stop()
        with pytest.raises(Draining):
            host.submit(ask("a"))

    with_host(act)


def test_a_host_whose_thread_is_gone_says_so() -> None:
    with pytest.raises(InternalError, match="does not run"):
        Host(EchoEngine(), Delivery()).submit(ask("a"))


def test_what_the_engine_put_up_with_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def act(host: Host, engine: EchoEngine) -> None:
        engine.faults["drafter"], engine.last_fault = 2, "drafter: ValueError('junk')"
        await read(host.submit(ask("a")))

    with_host(act)
    assert [record.message for record in caplog.records] == ["2 faults so far, the latest: drafter: ValueError('junk')"]


@pytest.mark.parametrize("seed", range(8))
def test_any_mix_of_asking_leaving_and_failing_ends_every_choice_once(seed: int) -> None:
    dice = Random(seed)

    async def client(host: Host, name: str) -> None:
        await asyncio.sleep(dice.random() * 0.05)
        choices = dice.randint(1, 3)
        try:
            stream = host.submit(ask(name, b"x" * dice.randint(0, 60), choices=choices))
        except Overloaded:
            return
        leave_after = dice.choice([0, 1, 5, 1000])
        heard: Counter[int] = Counter()
        async for _, event in stream:
            heard[event.choice] += isinstance(event, Done)
            leave_after -= 1
            if leave_after <= 0:
                stream.close()
        assert dict(heard) == dict.fromkeys(range(choices), 1)

    async def act(host: Host, engine: EchoEngine) -> None:
        clients = [asyncio.ensure_future(client(host, f"r{i}")) for i in range(40)]
        for _ in range(dice.randint(0, 4)):
            await asyncio.sleep(dice.random() * 0.02)
            engine.fail_next = RuntimeError("boom")
        async with asyncio.timeout(20):
            await asyncio.gather(*clients)
        assert (host.open, host.waiting) == (0, 0)
        await until(lambda: engine.idle)

    with_host(act, EchoEngine(slots=3, drafts=1, pause_s=0.0005), max_queue=30)


def test_an_idle_engine_is_not_stepped() -> None:
    async def act(host: Host, engine: EchoEngine) -> None:
        await read(host.submit(ask("a")))
        at = engine.steps
        await asyncio.sleep(0.05)
        assert engine.steps == at

    with_host(act)


def test_the_accounts_hear_of_a_request_before_the_engine() -> None:
    engine, delivery, order = EchoEngine(), Delivery(), []
    engine.observers = (delivery, lambda report: order.append("step"))
    host = Host(engine, delivery, accept=lambda request: order.append(request.id))

    async def run() -> None:
        host.start()
        await read(host.submit(ask("a", b"")))
        host.stop()

    asyncio.run(run())
    assert order[:2] == ["a", "step"]
