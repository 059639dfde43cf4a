"""`python -m bench [COMMAND]`: without a command, the table of steps, prefill and contexts of every fetched model.

Each command prints markdown; `--json FILE` keeps the figures and `--write` puts the tables into the pages that show
them, between their marks.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import (
    concurrency,
    first_token,
    gemm,
    machine,
    never_worse,
    overhead,
    report,
    speculation,
    speed,
    two_by_two,
    workload,
)
from bench.llama import peers
from bench.models import fetched, load
from twostroke import catalog
from twostroke._kernels import Pool, set_kernel_path
from twostroke.config import Settings
from twostroke.errors import TwostrokeError
from twostroke.runtime.machine import physical_cores

README = report.ROOT / "README.md"
SMALL, LARGE = "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"
OTHERS = ("quality",)  # modules of this package with a `main` of their own

Page = tuple[Path, str]  # where tables are kept, and the block's name


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in OTHERS:
        return int(importlib.import_module(f"bench.{given[0]}").main(given[1:]) or 0)
    parser = _parser()
    chosen = parser.parse_args(given)
    if chosen.warm and chosen.command != "speculation":
        parser.error("--warm is for `speculation` alone")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout` keeps the rounds that are whole, as Ctrl-C
    page = _page(chosen)
    try:
        if chosen.kernels:
            set_kernel_path(chosen.kernels)
        if chosen.write:
            report.find_block(*page)
        body, figures = COMMANDS[chosen.command](chosen)
    except (TwostrokeError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: interrupted before a round was whole", file=sys.stderr)
        return 130
    print(body)
    if chosen.json:
        report.write_json(chosen.json, {"command": given, **figures})
    if chosen.write:
        report.write_block(*page, body)
    return 0


def count(text: str) -> int:
    """A number from 1 up."""
    if not text.isdecimal() or (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return number


def destination(text: str) -> Path:
    """A file in a folder that is there, for an hour's figures are not lost over a name."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no file in a folder that is there")
    return path


def existing(text: str) -> Path:
    """A file that can be read."""
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text!r}")
    return path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m bench", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("command", nargs="?", default="speed", choices=[*COMMANDS, *OTHERS])
    parser.add_argument("--models", nargs="+", help="default: those whose files are here")
    parser.add_argument("--rounds", type=count, default=5, help="of interleaved measurements")
    parser.add_argument("--threads", type=count, default=physical_cores())
    parser.add_argument("--kernels", help="force an instruction set: portable, avx2, avx512, amx, neon")
    parser.add_argument("--no-peers", action="store_true", help="measure ourselves alone")
    parser.add_argument("--draft", default=SMALL, help="of `speculation` and `first-token`; off for none")
    parser.add_argument("--warm", action="store_true", help="`speculation` on texts that were read before, ours alone")
    parser.add_argument("--drafter", default="auto", help="what `two-by-two` switches on")
    parser.add_argument("--questions", type=count, help="at most so many of each kind or document")
    parser.add_argument("--sizes", type=count, nargs="+", default=concurrency.SIZES, help="of `concurrency`")
    parser.add_argument("--spec-bench", type=existing, help="Spec-Bench's file: ask 24 of its questions too")
    parser.add_argument("--json", type=destination, metavar="FILE", help="keep all figures")
    parser.add_argument("--write", action="store_true", help="put the tables into the page that shows them")
    return parser


def _page(chosen: argparse.Namespace) -> Page:
    """Where the command's tables are kept; a forced instruction set and warm texts have blocks of their own."""
    name = "-".join(filter(None, [chosen.command, chosen.kernels, "warm" if chosen.warm else None]))
    return (README if chosen.command == "two-by-two" else report.PERFORMANCE), name


def _heading(chosen: argparse.Namespace) -> str:
    return f"{machine.describe(chosen.threads).line}. `python -m bench {_typed(chosen)}`\n"


def _typed(chosen: argparse.Namespace) -> str:
    """The command that made a table, as one would type it again."""
    words = [] if chosen.command == "speed" else [chosen.command]
    for name in ("models", "kernels", "questions"):
        given = getattr(chosen, name)
        words += [f"--{name}", *(given if isinstance(given, list) else [str(given)])] if given else []
    words += ["--warm"] if chosen.warm else []
    in_rounds = chosen.command in ("speed", "concurrency", "first-token")
    return " ".join([*words, *(["--rounds", str(chosen.rounds)] if in_rounds else [])])


def _settings(chosen: argparse.Namespace, model: str, **more: Any) -> Settings:
    return Settings(model=model, threads=chosen.threads, **more)


def _drafted(chosen: argparse.Namespace, kv_memory: int) -> Settings:
    """Those of a large model and the draft model beside it."""
    name = (chosen.models or [LARGE])[0]
    draft = None if chosen.draft == "off" else chosen.draft
    return _settings(chosen, name, draft=draft, context=speculation.CONTEXT, kv_memory=kv_memory)


def _peers(chosen: argparse.Namespace) -> Any:
    return () if chosen.no_peers else peers()


def _versions(chosen: argparse.Namespace) -> str:
    lines = [f"- {peer.label}: {peer.version}, -t {chosen.threads}" for peer in _peers(chosen)]
    return "\n".join(lines) + "\n" if lines else ""


Outcome = tuple[str, Mapping[str, Any]]  # markdown, and what is kept as JSON
Command = Callable[[argparse.Namespace], Outcome]


def _speed(chosen: argparse.Namespace) -> Outcome:
    names = chosen.models or fetched()
    if not names:
        raise ValueError(f"no model is here; fetch one, for example with `twostroke pull {SMALL}`")
    parts, figures = [_heading(chosen), _versions(chosen)], {}
    pool = Pool(chosen.threads)
    for name in names:
        model = load(_settings(chosen, name))
        print(f"{name}: steps, prompts, contexts", file=sys.stderr)
        result = speed.measure(model, pool, _peers(chosen), chosen.rounds)
        products = gemm.measure(model, pool, chosen.rounds)
        print(f"{name}: overhead", file=sys.stderr)
        outside = overhead.measure(model, _settings(chosen, name), chosen.rounds)
        parts += [speed.tables(result), gemm.table(products), overhead.table(outside)]
        figures[name] = {"steps": result, "products": products, "overhead": outside}
    return "\n".join(parts), figures


def _two_by_two(chosen: argparse.Namespace) -> Outcome:
    name = (chosen.models or [SMALL])[0]
    settings = _settings(chosen, name, speculate=chosen.drafter)
    model = load(settings)
    prompts = list(workload.shared(lambda text: len(model.codec.encode(text))))
    if chosen.questions:
        prompts = [prompt for prompt in prompts if int(prompt.id.rpartition("-")[2]) <= chosen.questions]
    result = two_by_two.run(model, settings, prompts)
    cells = {cell.label: outcomes for cell, outcomes in result.outcomes.items()}
    return _heading(chosen) + "\n" + two_by_two.markdown(result), {"cells": cells}


def _speculation(chosen: argparse.Namespace) -> Outcome:
    settings = _drafted(chosen, speculation.KV_MEMORY)
    prompts = workload.committed(most=chosen.questions)
    if chosen.spec_bench:
        prompts += workload.spec_bench(chosen.spec_bench, 24)
    path = catalog.resolve(settings.draft) if settings.draft else None
    model = load(settings)
    if chosen.warm:
        result, versions = speculation.run_warm(model, settings, path, prompts, speculation.MAX_TOKENS), ""
    else:
        result = speculation.run(model, settings, path, _peers(chosen), prompts, speculation.MAX_TOKENS)
        versions = _versions(chosen)
    body = [_heading(chosen), versions, speculation.markdown(result), speculation.first_token(result)]
    return "\n".join(body), {"result": result}


def _never_worse(chosen: argparse.Namespace) -> Outcome:
    name = (chosen.models or [SMALL])[0]
    settings = _settings(chosen, name, context=never_worse.CONTEXT)
    prompts = workload.committed(["chat"], chosen.questions or never_worse.QUESTIONS)
    result = never_worse.run(load(settings), settings, prompts, never_worse.CURVES)
    return _heading(chosen) + "\n" + never_worse.markdown(result), {"result": result}


def _first_token(chosen: argparse.Namespace) -> Outcome:
    settings = _drafted(chosen, first_token.KV_MEMORY)
    prompts = workload.committed(most=chosen.questions)
    result = first_token.run(load(settings), settings, prompts, chosen.rounds)
    return _heading(chosen) + "\n" + first_token.markdown(result), {"result": result}


def _concurrency(chosen: argparse.Namespace) -> Outcome:
    name = (chosen.models or [SMALL])[0]
    path = catalog.resolve(name)
    result = concurrency.run(name, path, chosen.threads, _peers(chosen), chosen.rounds, chosen.sizes)
    body = [_heading(chosen), _versions(chosen), concurrency.markdown(result)]
    return "\n".join(body), {"result": result}


COMMANDS: Mapping[str, Command] = {
    "speed": _speed,
    "two-by-two": _two_by_two,
    "speculation": _speculation,
    "concurrency": _concurrency,
    "never-worse": _never_worse,
    "first-token": _first_token,
}

if __name__ == "__main__":
    sys.exit(main())
