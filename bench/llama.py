"""The peer: llama.cpp's own programs on the same file, run between our own measurements.

A peer is a folder that holds `llama-bench` and `llama-server`: those in TWOSTROKE_LLAMA_BIN (several, joined as PATH
is), else the one on PATH.  None is fine: tables then say so.  A build that dies is tried once more without its
repacked kernels, and after that its failure is reported, never raised past `Unmeasured`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench import wire
from bench.rounds import Unmeasured

VARIABLE = "TWOSTROKE_LLAMA_BIN"
TIMEOUT_S = 600
WITHOUT_REPACKING = ("--repack", "0")
SERVER_WITHOUT_REPACKING = ("--no-repack",)
PROBE = {"prompt": list(range(100, 164)), "n_predict": 4, "cache_prompt": False}  # a batch, which some builds die of
ABSENT = f"llama.cpp was not found: put llama-bench on PATH, or name its folder in {VARIABLE}"


@dataclass(frozen=True, slots=True)
class Peer:
    """One build of llama.cpp."""

    folder: Path
    version: str
    flags: tuple[str, ...] = ()  # beside those of the measurement

    @property
    def label(self) -> str:
        """What tables call it: the folder that tells it from other builds, and flags that are not its defaults."""
        name = self.folder.parent.name if self.folder.name == "bin" else self.folder.name
        return " ".join([f"llama.cpp [{name}]", *self.flags])

    def program(self, name: str) -> str:
        """The path of one of its programs."""
        return str(self.folder / name)


def peers() -> tuple[Peer, ...]:
    """Every build that was named or found and that runs; those that die on a batch get flags with which they do not."""
    return tuple(Peer(folder, _version(folder)) for folder in _folders())


def _folders() -> list[Path]:
    named = os.environ.get(VARIABLE, "")
    if named:
        return [Path(folder) for folder in named.split(os.pathsep) if folder]
    found = shutil.which("llama-bench")
    return [Path(found).resolve().parent] if found else []


def _version(folder: Path) -> str:
    try:
        answer = subprocess.run([folder / "llama-bench", "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run: {error}"
    lines = [line for line in (answer.stdout + answer.stderr).splitlines() if line.startswith(("version", "built"))]
    return ", ".join(lines) or "version unknown"


# --- llama-bench


@dataclass(slots=True)
class Bench:
    """`llama-bench` on one model file; the flags a build needs are found at its first run and kept."""

    peer: Peer
    model: Path
    threads: int
    _flags: tuple[str, ...] | None = field(default=None)

    @property
    def label(self) -> str:
        """The peer's name with the flags that worked."""
        return " ".join([self.peer.label, *(self._flags or ())])

    def seconds(self, prompts: Sequence[int], generated: int, repeats: int) -> Mapping[str, float]:
        """Seconds of a prompt of so many tokens in one batch ("p8"), and of one generated token ("n").

        Medians of `repeats`.  Raises `Unmeasured` where the program fails.
        """
        arguments = ["-p", ",".join(map(str, prompts)) or "0", "-n", str(generated), "-r", str(repeats)]
        return read(self._run(arguments))

    def _run(self, arguments: Sequence[str]) -> str:
        tries = [self._flags] if self._flags is not None else [(), WITHOUT_REPACKING]
        failures = []
        for flags in tries:
            try:
                answer = self._call([*arguments, *flags])
            except Unmeasured as reason:
                failures.append(str(reason))
            else:
                self._flags = flags
                return answer
        raise Unmeasured("; ".join(dict.fromkeys(failures)))

    def _call(self, arguments: Sequence[str]) -> str:
        program = self.peer.program("llama-bench")
        command = [program, "-m", str(self.model), "-t", str(self.threads), "-o", "json", *arguments]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unmeasured(f"{program}: {error}") from None
        if answer.returncode:
            raise Unmeasured(f"{' '.join([self.peer.label, *arguments])}: {ending(answer.returncode)}")
        return answer.stdout


def ending(code: int) -> str:
    """How a process ended, in words."""
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


def read(text: str) -> Mapping[str, float]:
    """What `llama-bench -o json` measured: "p8" is seconds of a batch of 8, "n" seconds of one generated token."""
    try:
        tests = json.loads(text)
        return dict(_test(test) for test in tests)
    except (ValueError, KeyError, TypeError) as error:
        raise Unmeasured(f"llama-bench wrote no results: {error!r}") from None


def _test(test: Mapping[str, object]) -> tuple[str, float]:
    samples = test["samples_ns"]
    assert isinstance(samples, list)
    seconds = median(samples) / 1e9
    generated = test["n_gen"]
    assert isinstance(generated, int)
    return ("n", seconds / generated) if generated else (f"p{test['n_prompt']}", seconds)


# --- llama-server


@dataclass(frozen=True, slots=True)
class Drafting:
    """A way in which `llama-server` speculates."""

    name: str
    flags: tuple[str, ...]


def draftings(draft: Path | None) -> tuple[Drafting, ...]:
    """Those that are compared: none, a lookup, and a draft model where there is one."""
    ngram = ("--spec-type", "ngram-simple", "--spec-ngram-simple-size-n", "3", "--spec-ngram-simple-size-m", "8")
    known = [Drafting("off", ()), Drafting("ngram-simple", ngram)]
    if draft is not None:
        model = ("-md", str(draft), "--spec-type", "draft-simple", "--spec-draft-n-max", "4")
        known.append(Drafting("draft-simple", model))
    return tuple(known)


def server_command(
    peer: Peer, model: Path, port: int, threads: int, slots: int, context: int, flags: Iterable[str] = ()
) -> list[str]:
    """The command line of `llama-server` with `slots` slots of `context` tokens each."""
    place = ["--host", "127.0.0.1", "--port", str(port), "--no-webui"]
    size = ["-t", str(threads), "-np", str(slots), "-c", str(slots * context)]
    return [peer.program("llama-server"), "-m", str(model), *place, *size, *peer.flags, *flags]


@contextmanager
def serving(
    peer: Peer, model: Path, threads: int, slots: int, context: int, flags: Iterable[str] = ()
) -> Iterator[int]:
    """Run `llama-server` and yield its port, without repacked kernels where it dies on a batch with them.

    Raises `Unmeasured` where it serves neither way.
    """
    with ExitStack() as stack:
        yield _first_that_answers(stack, peer, model, threads, slots, context, tuple(flags))


def _first_that_answers(
    stack: ExitStack, peer: Peer, model: Path, threads: int, slots: int, context: int, flags: tuple[str, ...]
) -> int:
    failures = []
    for extra in ((), SERVER_WITHOUT_REPACKING):
        port = wire.free_port()
        attempt = ExitStack()
        try:
            command = server_command(peer, model, port, threads, slots, context, (*flags, *extra))
            attempt.enter_context(wire.server(command, port))
            wire.post(port, "/completion", PROBE)
        except Unmeasured as reason:
            failures.append(str(reason))
            attempt.close()
        else:
            stack.push(attempt)
            return port
    raise Unmeasured("; ".join(dict.fromkeys(failures)))
