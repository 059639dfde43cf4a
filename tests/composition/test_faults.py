"""A suite that cannot fail proves nothing: break one line at a time, and see it caught."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from tests.composition import features
from tests.composition.simulation import Setting, Simulation, featured, workload
from twostroke.cache import index, keys, lookup, space
from twostroke.engine import engine, proposals, scheduler, sequence
from twostroke.types import Request

SETTINGS = [
    Setting(True, skill, lookahead, blocks, budget, spare)
    for (skill, lookahead), (blocks, spare), budget in product(
        ((None, None), (0.7, None), (0.7, 1), (0.7, 2)), ((11, 4), (64, 0)), (5, 64)
    )
]


@dataclass(frozen=True)
class Fault:
    """In the source of `owner.function`, `before` becomes `after`."""

    name: str
    owner: Any
    function: str
    before: str
    after: str


FAULTS = [
    Fault("accept keeps one too many", scheduler, "accept", "agreed + 1", "agreed + 2"),
    Fault("accept compares with the wrong sample", scheduler, "accept", "samples[i]", "samples[i - 1]"),
    Fault(
        "rejected positions are counted",
        scheduler.Scheduler,
        "_settle",
        "sequence.computed = len(sequence.tokens) - 1",
        "sequence.computed = row.start + len(row.tokens)",
    ),
    Fault(
        "published before rejected positions are taken back",
        scheduler.Scheduler,
        "_settle",
        "emitted: tuple[int, ...] = ()",
        "emitted = (); self.space.publish(table, [*sequence.tokens[: row.start], *row.tokens, 0], row.start + "
        "len(row.tokens))",
    ),
    Fault(
        "a stop inside accepted drafts is missed",
        sequence.Sequence,
        "extend",
        "self.finished is not None",
        "self.finished is not None and count == len(kept)",
    ),
    Fault("the key omits the successors", keys.Keys, "child", "packed(text[own:])", "b''"),
    Fault("the key omits the parent", keys.Keys, "child", "parent,", "b'',"),
    Fault("publishing ignores the lookahead", space, "resume", "known - lookahead", "known"),
    Fault("a hit may cover the last known token", lookup, "resume", "known - 1", "known"),
    Fault("namespaces share one root", index.PrefixIndex, "root", "self._roots.get(namespace)", "self._roots.get('')"),
    Fault("a recycled block keeps its key", space.GroupSpace, "_forget", "self.index.remove(entry)", "pass"),
    Fault("a parent goes before its children", space.GroupSpace, "_enqueue", "if not entry.children:", "if True:"),
    Fault("release forgets its blocks", space.GroupSpace, "release", "self._drop(block)", "pass"),
    Fault("a shared block is not held", space.GroupSpace, "_share", "self._hold(entry)", "pass"),
    Fault("a replaced block is not given back", space.GroupSpace, "_share", "self._drop(own)", "pass"),
    Fault("the source of a copy is not held", space.GroupSpace, "_copy_part", "self._hold(found.source)", "pass"),
    Fault("the source of a copy is held for ever", space.GroupSpace, "copied", "self._drop(source)", "pass"),
    Fault(
        "a partial hit is one position too long",
        space,
        "find",
        "shared - lookahead",
        "shared - lookahead + 1",
    ),
    Fault("a copy is never made", scheduler.Scheduler, "_row", "(table.copy,) if table.copy else ()", "()"),
    Fault("requests that opted out are cached", space.GroupSpace, "match", "caching and self.caching", "self.caching"),
    Fault("blocks of guesses are kept", scheduler.Scheduler, "_settle", "self.space.trim", "(lambda *_: None)"),
    Fault(
        "a preempted sequence believes its KV is still there",
        scheduler.Scheduler,
        "_leave",
        "None, 0, reason",
        "None, sequence.computed, reason",
    ),
    Fault(
        "an aborted sequence keeps its blocks",
        scheduler.Scheduler,
        "_leave",
        "self.space.close(sequence.table, sequence.tokens, sequence.computed)",
        "reason or self.space.close(sequence.table, sequence.tokens, sequence.computed)",
    ),
    Fault("choices share their noise", scheduler.Scheduler, "_row", "choice=sequence.choice", "choice=0"),
    Fault(
        "samples before the prompt is read",
        scheduler.Scheduler,
        "_row",
        "1 + depth if end == known else 0",
        "1 + depth",
    ),
    Fault(
        "guesses before the tokens are delivered",
        engine.Engine,
        "step",
        "report = self._commit(",
        "report = self._commit(plan, picks, started, planned, executed); self._propose(); (lambda *_: 0)(",
    ),
    Fault(
        "a grammar is advanced by a rejected draft",
        scheduler.Scheduler,
        "_settle",
        "emitted = kept[: sequence.extend(kept)]",
        "emitted = kept[: sequence.extend(kept)]; "
        "[sequence.grammar.advance(t) for t in row.tokens[-row.drafts :][len(kept) - 1 :] "
        "if row.drafts and sequence.grammar and sequence.grammar.valid((t,))]",
    ),
    Fault(
        "the history includes a rejected draft",
        scheduler.Scheduler,
        "_row",
        "written=tuple(sequence.tokens[known - written :])",
        "written=tuple(sequence.tokens[known - written :]) + tokens[len(tokens) - depth :]",
    ),
    Fault(
        "the history stops before the last token",
        scheduler.Scheduler,
        "_row",
        "tuple(sequence.tokens[known - written :])",
        "tuple(sequence.tokens[known - written : -1])",
    ),
    Fault(
        "the mask is taken before the drafts",
        features.Toy,
        "allowed",
        "self.after(drafts[:i])",
        "self.after(())",
    ),
    Fault("drafts outside the grammar are verified", proposals, "_allowed", "grammar.valid(drafts)", "len(drafts)"),
    Fault("a stop token is fed to the grammar", sequence.Sequence, "_verdict", "in self.request.stop_ids", "in ()"),
    Fault("choices share a grammar", sequence.Sequence, "__post_init__", "self.request.grammar()", "SHARED"),
    Fault(
        "a grammar begins anew after a preemption",
        scheduler.Scheduler,
        "_start",
        "sequence.admissions += 1",
        "sequence.admissions += 1; sequence.grammar = sequence.request.grammar() if sequence.request.grammar else None",
    ),
    Fault("scored prompts are read from the cache", scheduler.Scheduler, "_reserve", "not sequence.unscored", "True"),
    Fault("the drafter is not told who left", engine.Engine, "_forget", "self.drafter.forget(sequence)", "pass"),
]


def break_line(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    function: Callable[..., Any] = getattr(fault.owner, fault.function)
    source = textwrap.dedent(inspect.getsource(function))
    assert fault.before in source, f"{fault.name}: nothing to break"
    broken = "from __future__ import annotations\n" + source.replace(fault.before, fault.after)
    namespace = dict(sys.modules[function.__module__].__dict__)
    exec(compile(broken, fault.name, "exec"), namespace)
    monkeypatch.setattr(fault.owner, fault.function, namespace[fault.function])


def caught() -> str:
    """What the suite says of the code as it is now: the first complaint, or nothing."""
    for seed, setting in product(range(2), SETTINGS):
        try:
            Simulation(setting, seed).run(workload(seed))
            Simulation(setting, seed).run(featured(workload(seed + 3, requests=10), grammar=True, penalties=True))
        except Exception as complaint:
            return repr(complaint)
    return ""


def test_the_code_as_it_is_passes() -> None:
    assert caught() == ""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_caught(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    break_line(monkeypatch, fault)
    assert caught() != ""


def test_a_collision_would_be_served_if_tokens_were_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(*fields: bytes) -> bytes:
        return keys.digest(*fields)[:1]

    def serve() -> None:
        simulation = Simulation(Setting())
        simulation.scheduler.space.index.keys = keys.Keys(simulation.scheduler.space.group, digest=digest)
        for arrival in workload(1, requests=20):
            simulation.engine.add(arrival.request)
        while not simulation.engine.idle:
            simulation.engine.step()
        assert not simulation.engine.faults, simulation.engine.last_fault

    serve()
    compare = "entry is None or entry.parent is not parent or entry.text != text"
    break_line(monkeypatch, Fault("tokens are not compared", index.PrefixIndex, "child", compare, "entry is None"))
    with pytest.raises(AssertionError, match="is not its KV"):
        serve()


def test_scores_would_be_told_again_after_a_preemption_in_the_middle_of_a_prompt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def serve() -> None:
        writer = Request("writes", tuple(range(7)), 36)
        scored = Request("scored", (6, 5, 4) * 9, 4, prompt_logprobs=0)
        outcome = Simulation(Setting(blocks=11, budget=2)).ask(writer, scored)
        assert outcome.counts["preempted"] > 0
        assert outcome.counts["scored"] == len(scored.prompt) - 1

    serve()
    again = "max(0, scored - row.start)"
    break_line(monkeypatch, Fault("scores are told again", scheduler.Scheduler, "_settle", again, "0"))
    with pytest.raises(AssertionError, match="other scores"):
        serve()
