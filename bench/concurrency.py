"""Several answers at once, over HTTP on this machine: our server beside llama.cpp's with as many slots, in one run.

Prompts are stretches of the standard library's sources that share no text, so that nothing is cached or known.  All
servers are asked by the same client for the same token ids; each is new for every measurement.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from bench import report, wire
from bench.llama import ABSENT, Peer, serving
from bench.rounds import Measure, Samples, interleave
from bench.workload import document
from twostroke.runtime.weights.gguf import read
from twostroke.text.tokenizer import Tokenizer

SIZES = (1, 2, 4, 8, 16)
PROMPT, OUTPUT = 512, 128  # tokens
DISTINCT = 16  # tokens in which the beginnings of two prompts differ
MODULES = ("argparse", "datetime", "decimal", "doctest", "inspect", "subprocess", "tarfile", "typing")


@dataclass(frozen=True, slots=True)
class Result:
    """Every server at every size: samples "NAME SIZE rate", "… first" and "… token"."""

    model: str
    servers: Sequence[str]
    samples: Samples


def run(
    name: str, path: Path, threads: int, peers: Sequence[Peer], rounds: int, sizes: Sequence[int] = SIZES
) -> Result:
    """Measure; a server is started anew for every size and round, with that many slots."""
    tokenizer = Tokenizer.from_metadata(read(path).metadata)
    texts = [tokenizer.encode(document(module, 10**9, len)) for module in MODULES]
    starts: dict[str, Callable[[int], AbstractContextManager[int]]] = {
        "twostroke": lambda slots: _ours(path, threads, slots, "off"),
        "twostroke, speculating": lambda slots: _ours(path, threads, slots, "auto"),
    }
    if peers:
        starts[peers[0].label] = lambda slots: serving(peers[0], path, threads, slots, PROMPT + OUTPUT + 64)
    measures = {
        f"{server} {size}": _measure(start, stretches(texts), size)
        for server, start in starts.items()
        for size in sizes
    }
    return Result(name, tuple(starts), interleave(measures, rounds))


def _ours(path: Path, threads: int, slots: int, drafter: str) -> AbstractContextManager[int]:
    port = wire.free_port()
    command = [sys.executable, "-m", "twostroke", "serve", str(path), "--port", str(port), "--threads", str(threads)]
    return wire.server([*command, "--max-sequences", str(slots), "--speculate", drafter], port)


def stretches(texts: Iterable[Sequence[int]], length: int = PROMPT) -> Iterator[list[int]]:
    """Parts of `length` tokens that do not overlap, no two with the same first tokens, of one text after the other."""
    parts = itertools.zip_longest(*(_cut(text, length) for text in texts))
    begun: set[tuple[int, ...]] = set()
    for part in itertools.chain.from_iterable(parts):
        if part is not None and (head := tuple(part[:DISTINCT])) not in begun:
            begun.add(head)
            yield part


def _cut(text: Sequence[int], length: int) -> Iterator[list[int]]:
    return (list(text[i : i + length]) for i in range(0, len(text) - length + 1, length))


def _measure(start: Callable[[int], AbstractContextManager[int]], prompts: Iterator[list[int]], size: int) -> Measure:
    def run() -> Mapping[str, float]:
        with start(size) as port:
            _together(port, [next(prompts)])  # pages, clocks and rates warm
            began = perf_counter()
            answers = _together(port, [next(prompts) for _ in range(size)])
            seconds = perf_counter() - began
        return {
            "rate": size * OUTPUT / seconds,
            "first": median(answer.first_s for answer in answers),
            "token": median(answer.per_token_s for answer in answers),
        }

    return run


def _together(port: int, prompts: Sequence[list[int]]) -> list[wire.Answer]:
    with ThreadPoolExecutor(len(prompts)) as clients:
        return list(clients.map(lambda prompt: _ask(port, prompt), prompts))


def _ask(port: int, prompt: list[int]) -> wire.Answer:
    body = {"prompt": prompt, "max_tokens": OUTPUT, "temperature": 0, "ignore_eos": True}
    return wire.stream(port, "/v1/completions", body, OUTPUT)


def markdown(result: Result) -> str:
    """One row per server and size."""
    samples = result.samples
    peers = [server for server in result.servers if server.startswith("llama.cpp")]
    head = ["server, sequences", "tokens/s", "first token, ms", "per token, ms", *(f"tokens/s ÷ {p}" for p in peers)]
    names = [name.removesuffix(" rate") for name in samples.taken if name.endswith(" rate")]
    lines = [f"{result.model}: prompts of {PROMPT} tokens, {OUTPUT} tokens each, all at once.\n"]
    lines.append(report.table(head, [_row(samples, name, peers) for name in names]))
    lines += [f"{name}: not measured, {why}.\n" for name, why in samples.missing.items()]
    return "\n".join([*lines, *([] if peers else [f"{ABSENT}.\n"])])


def _row(samples: Samples, name: str, peers: Sequence[str]) -> list[str]:
    return [
        name,
        report.spread(samples.spread(f"{name} rate")),
        report.spread(samples.spread(f"{name} first"), 1000),
        report.spread(samples.spread(f"{name} token"), 1000),
        *(_against(samples, name, peer) for peer in peers),
    ]


def _against(samples: Samples, name: str, peer: str) -> str:
    """The ratio of throughputs at the same number of sequences."""
    theirs = f"{peer} {name.rpartition(' ')[2]} rate"
    return report.spread(samples.ratio(f"{name} rate", theirs)) if theirs in samples else "—"
