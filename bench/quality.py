"""`python -m bench quality`: how far the engine's distribution is from exact arithmetic on the same weights.

Both read one passage (bench/text/passage.txt) and predict each next token.  The reference is float64 and never
quantises an activation or a KV cell; the engine does both.  Printed per model and KV type: the mean and largest
divergence KL(reference || engine) in nats, how often both rank the same token first, and the perplexity of each.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import report
from twostroke import catalog
from twostroke._kernels import KVStore, Pool
from twostroke.assemble import Model, open_model
from twostroke.config import Settings
from twostroke.errors import TwostrokeError
from twostroke.runtime.inputs import lay_out
from twostroke.runtime.machine import physical_cores
from twostroke.runtime.models.decoder import Decoder
from twostroke.runtime.reference import Reference, log_softmax
from twostroke.runtime.runner import KernelRunner
from twostroke.runtime.weights.gguf import read
from twostroke.types import Row, Sampling

PASSAGE = Path(__file__).parent / "text" / "passage.txt"
TOKENS = 256
KV_TYPES = ("q16", "q8")
CHUNK = 32  # positions whose logits are compared at a time: 152k float64 each

Logits = Callable[[Sequence[int]], NDArray[Any]]  # tokens to [n, vocab], the logits after each


@dataclass(frozen=True, slots=True)
class Quality:
    """One engine beside the reference, over the positions of one text."""

    positions: int
    mean_kl: float  # nats
    max_kl: float
    same_first: float  # share of positions where both rank the same token first
    perplexity: float  # the engine's, of the text's own next tokens
    reference_perplexity: float


def compare(tokens: Sequence[int], reference: Logits, engine: Logits) -> Quality:
    """Both over `tokens`, at least two of them; every position but the last is judged by the token that follows."""
    parts = list(_judged(tokens, reference(tokens), engine(tokens)))
    kl, same, ours, theirs = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Quality(
        positions=len(kl),
        mean_kl=float(kl.mean()),
        max_kl=float(kl.max()),
        same_first=float(same.mean()),
        perplexity=float(np.exp(-ours.mean())),
        reference_perplexity=float(np.exp(-theirs.mean())),
    )


def _judged(
    tokens: Sequence[int], reference: NDArray[Any], engine: NDArray[Any]
) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Per chunk: divergence, same first choice, and both log-probabilities of the token that follows."""
    last = len(tokens) - 1
    for a in range(0, last, CHUNK):
        b = min(a + CHUNK, last)
        p, q = log_softmax(reference[a:b].astype(np.float64)), log_softmax(engine[a:b].astype(np.float64))
        each, following = np.arange(b - a), np.array(tokens[a + 1 : b + 1])
        kl = (np.exp(p) * (p - q)).sum(axis=1)
        yield kl, p.argmax(axis=1) == q.argmax(axis=1), q[each, following], p[each, following]


def kernel_logits(model: Model, kv_type: str) -> Logits:
    """The engine's kernels over a KV store of their own; one call reads one text from its beginning."""

    def logits(tokens: Sequence[int]) -> NDArray[np.float32]:
        config, blocks = model.config, -(-len(tokens) // KVStore.BLOCK_TOKENS)
        store, pool = KVStore(config.layers, blocks, config.kv_heads, config.head_dim, kv_type), Pool(physical_cores())
        runner = KernelRunner(Decoder(config, model.weights, store, pool, len(tokens)), pool)
        row = Row(0, 0, tuple(tokens), len(tokens) - 1, len(tokens), tuple(range(blocks)), Sampling())
        return runner.run(lay_out([row])).copy()

    return logits


def measure(name: str, kv_types: Sequence[str], tokens: int) -> Iterator[tuple[str, Quality]]:
    """The quality of one model with each KV type; the reference reads the passage once."""
    model = open_model(Settings(model=name))
    text = model.codec.encode(PASSAGE.read_text())[:tokens]
    exact = Reference(read(model.path)).logits(text)
    for kv_type in kv_types:
        yield kv_type, compare(text, lambda _: exact, kernel_logits(model, kv_type))


def line(name: str, kv_type: str, quality: Quality) -> str:
    """A row of the table."""
    return (
        f"| {name} | {kv_type} | {quality.positions} | {quality.mean_kl:.5f} | {quality.max_kl:.4f} "
        f"| {quality.same_first:.1%} | {quality.perplexity:.3f} | {quality.reference_perplexity:.3f} |"
    )


HEAD = (
    "| model | KV | positions | mean KL | largest KL | same first | perplexity | exact perplexity |\n"
    "|---|---|---|---|---|---|---|---|"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit status."""
    parser = argparse.ArgumentParser("python -m bench quality", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", help="names, files or hub files; those fetched already by default")
    parser.add_argument("--kv-type", action="append", choices=KV_TYPES, help="default: each")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of the passage (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON document a line instead of a table")
    parser.add_argument("--write", action="store_true", help="put the table into the page that shows it")
    given = sys.argv[1:] if arguments is None else arguments
    chosen = parser.parse_args(given)
    if chosen.tokens < 2:
        parser.error("--tokens: at least 2, for each token is judged by the one that follows")
    lines = [HEAD]
    if not chosen.json:
        print(HEAD)
    try:
        for name in chosen.models or _fetched():
            for kv_type, quality in measure(name, chosen.kv_type or KV_TYPES, chosen.tokens):
                document = json.dumps({"model": name, "kv_type": kv_type, **asdict(quality)})
                lines.append(line(name, kv_type, quality))
                print(document if chosen.json else lines[-1], flush=True)
    except TwostrokeError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    if chosen.write:
        command = shlex.join(["python", "-m", "bench", "quality", *(word for word in given if word != "--write")])
        report.write_block(report.PERFORMANCE, "quality", "\n".join([f"`{command}`\n", *lines]))
    return 0


def _fetched() -> tuple[str, ...]:
    return tuple(name for name in catalog.known() if (catalog.home() / f"{name}.gguf").is_file())


if __name__ == "__main__":
    sys.exit(main())
