"""The main table: steps by rows, prefill and long contexts, against the memory's speed and against llama.cpp.

All of it in one run of interleaved rounds per model; every ratio is formed inside a round.  A share of bandwidth is
the file's bytes of the weights a step reads, plus the KV it reads, over the time and the read bandwidth measured
beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench import report
from bench.llama import ABSENT, Bench, Peer
from bench.rounds import Job, Measure, Samples, Spread, cycle, interleave
from bench.steps import SHORT, Bed, bandwidth
from twostroke._kernels import Pool
from twostroke.assemble import Model
from twostroke.types import Row

ROWS = (1, 2, 4, 8, 16)
PROMPTS = (512, 2048)
NEAR, FAR = 512, 8192  # contexts compared
KV_TYPES = ("q16", "q8")
TURNS = 5  # of every group in a round
CONTEXT_TURNS = 15  # what a context adds is a small difference of large numbers
GENERATED = 16  # tokens llama-bench generates to time one


@dataclass(frozen=True, slots=True)
class Result:
    """One model, measured."""

    model: str
    weights_bytes: int  # read per step, as in the file
    kv_bytes: Mapping[str, int]  # per position, by KV type
    far: int  # positions of the long context
    peers: Mapping[str, str]  # key in the samples -> label
    samples: Samples

    def share(self, rows: int) -> Spread:
        """Of read bandwidth, at `rows` rows of one sequence."""
        read = self.weights_bytes + (SHORT + rows) * self.kv_bytes["q16"]
        return self.samples.combine(lambda step, rate: read / step / rate, f"steps {rows}", "steps bandwidth")

    def added(self, kv_type: str) -> Spread:
        """Step time that the long context adds to one row, over what reading the added KV takes at full bandwidth."""
        kv = (self.far - NEAR) * self.kv_bytes[kv_type]

        def over(far: float, near: float, rate: float) -> float:
            return (far - near) / (kv / rate)

        return self.samples.combine(over, f"{kv_type} far", f"{kv_type} near", f"{kv_type} bandwidth")


def measure(model: Model, pool: Pool, peers: Sequence[Peer], rounds: int) -> Result:
    """Every measurement of one model."""
    beds = {kv_type: Bed(model, pool, kv_type) for kv_type in ("q16", "q8")}
    far = min(FAR, model.context)
    ours = _ours(beds, pool, far)
    builds = {f"peer{number}": Bench(peer, model.path, pool.threads) for number, peer in enumerate(peers)}
    theirs = {name: _theirs(build) for name, build in builds.items()}
    samples = interleave({**ours, **theirs}, rounds)
    labels = {name: build.label for name, build in builds.items()}
    kv_bytes = {kv_type: bed.store.bytes_per_token for kv_type, bed in beds.items()}
    return Result(model.name, model.weights.bytes_per_step, kv_bytes, far, labels, samples)


def _ours(beds: Mapping[str, Bed], pool: Pool, far: int) -> dict[str, Measure]:
    bed = beds["q16"]
    rate: Mapping[str, Job] = {"bandwidth": lambda: bandwidth(pool)}
    steps = {str(rows): timed(bed, bed.one_sequence(rows)) for rows in ROWS}
    batches = {str(rows): timed(bed, bed.sequences(rows)) for rows in ROWS}
    prompts = {str(tokens): timed(bed, *bed.prompt(tokens), warm=False) for tokens in PROMPTS if tokens <= far}
    contexts = {name: {**rate, **_contexts(bed, far)} for name, bed in beds.items()}
    return {
        "steps": _group({**rate, **steps}),
        "batches": _group(batches),
        "prompts": _group(prompts, turns=1),
        **{name: _group(jobs, CONTEXT_TURNS) for name, jobs in contexts.items()},
    }


def _contexts(bed: Bed, far: int) -> dict[str, Job]:
    return {
        "near": timed(bed, bed.one_sequence(1, NEAR)),
        "far": timed(bed, bed.one_sequence(1, far)),
        "far8": timed(bed, bed.one_sequence(8, far)),
    }


def timed(bed: Bed, *steps: Sequence[Row], warm: bool = True) -> Job:
    """The time of these steps; a step is run once untimed before, so that caches hold what they would in a row."""

    def job() -> float:
        if warm:
            bed.seconds(*steps)
        return bed.seconds(*steps)

    return job


def _group(jobs: Mapping[str, Job], turns: int = TURNS) -> Measure:
    return lambda: cycle(jobs, turns)


def _theirs(build: Bench) -> Measure:
    def run() -> Mapping[str, float]:
        short = build.seconds(ROWS, GENERATED, TURNS)
        return {**short, **build.seconds(PROMPTS, 0, 1)}

    return run


# --- what is printed


def tables(result: Result) -> str:
    """The markdown of one model."""
    parts = [f"### {result.model}\n", _summary(result), _rows(result), _prompts(result), _contexts_table(result)]
    return "\n".join([*parts, *_missing(result)])


def _summary(result: Result) -> str:
    rate = report.spread(result.samples.spread("steps bandwidth"), 1e-9, " GB/s")
    return f"Weights read per step: {result.weights_bytes / 1e6:.0f} MB (as in the file). Read bandwidth: {rate}.\n"


def _known(result: Result) -> dict[str, str]:
    return {name: label for name, label in result.peers.items() if name not in result.samples.missing}


def _rows(result: Result) -> str:
    peers = _known(result)
    head = ["rows", "one sequence, ms", "÷ 1 row", "share of bandwidth", "a sequence each, ms", "tokens/s"]
    head += [text for label in peers.values() for text in (f"{label}, ms", "ours is faster")]
    return report.table(head, [_row(result, rows, peers) for rows in ROWS])


def _row(result: Result, rows: int, peers: Mapping[str, str]) -> list[str]:
    samples, name, batch = result.samples, f"steps {rows}", f"batches {rows}"
    cells = [
        str(rows),
        report.spread(samples.spread(name), 1000),
        report.spread(samples.ratio(name, "steps 1")),
        report.percent(result.share(rows)),
        report.spread(samples.spread(batch), 1000),
        report.number(rows / samples.spread(batch).median),
    ]
    for peer in peers:
        theirs = f"{peer} n" if rows == 1 else f"{peer} p{rows}"
        cells += [report.spread(samples.spread(theirs), 1000), report.spread(samples.ratio(theirs, name), 1, "×")]
    return cells


def _prompts(result: Result) -> str:
    peers = _known(result)
    head = ["prefill", "s", "tokens/s"]
    head += [text for label in peers.values() for text in (f"{label}, s", "ours is faster")]
    known = [tokens for tokens in PROMPTS if f"prompts {tokens}" in result.samples]
    return report.table(head, [_prompt(result, tokens, peers) for tokens in known])


def _prompt(result: Result, tokens: int, peers: Mapping[str, str]) -> list[str]:
    samples, name = result.samples, f"prompts {tokens}"
    cells = [f"{tokens} tokens", report.spread(samples.spread(name)), _rate(tokens)(samples.spread(name))]
    for peer in peers:
        theirs = f"{peer} p{tokens}"
        cells += [report.spread(samples.spread(theirs)), report.spread(samples.ratio(theirs, name), 1, "×")]
    return cells


def _rate(tokens: int) -> Callable[[Spread], str]:
    return lambda seconds: report.number(tokens / seconds.median)


def _contexts_table(result: Result) -> str:
    far = result.far
    single = [f"1 row at {NEAR}, ms", f"1 row at {far}, ms", "added ÷ KV bytes at bandwidth"]
    head = ["KV", *single, f"8 rows at {far} ÷ 1 row"]
    return report.table(head, [_context(result, kv_type) for kv_type in KV_TYPES])


def _context(result: Result, kv_type: str) -> list[str]:
    samples = result.samples
    return [
        kv_type,
        report.spread(samples.spread(f"{kv_type} near"), 1000),
        report.spread(samples.spread(f"{kv_type} far"), 1000),
        report.spread(result.added(kv_type)),
        report.spread(samples.ratio(f"{kv_type} far8", f"{kv_type} far")),
    ]


def _missing(result: Result) -> list[str]:
    if not result.peers:
        return [f"{ABSENT}.\n"]
    return [f"{result.peers[name]}: not measured, {why}.\n" for name, why in result.samples.missing.items()]
