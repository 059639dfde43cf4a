"""What a person sees while waiting, and how a running answer is interrupted.

Everything here goes to stderr, so that stdout holds answers alone.
"""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Progress = Callable[[str, int, int], None]  # what is going on, bytes done, bytes in all (0: not known)


def say(text: str) -> None:
    """A line for the person, not part of any answer."""
    print(text, file=sys.stderr, flush=True)


def start_logging(level: str) -> None:
    """Our log on stderr at `level`; other libraries speak up from warnings on."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr, level="WARNING")
    logging.getLogger("twostroke").setLevel(level.upper())


@contextmanager
def progress() -> Iterator[Progress]:
    """Bars on a terminal, one line for each thing that is done elsewhere."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Bars(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bars:
        tasks = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total or None)
            bars.update(tasks[what], completed=done, total=total or None)

        yield show


def _lines() -> Progress:
    seen: set[str] = set()

    def show(what: str, done: int, total: int) -> None:
        if what not in seen:
            seen.add(what)
            say(f"{what} …" if not total else f"{what}: {total / 1e6:.0f} MB …")

    return show


class Interrupt:
    """Ctrl-C as a wish rather than an exception: the first one sets `wished`, the second one ends the program.

    An exception in the middle of a step would leave the engine half-way.
    """

    def __init__(self) -> None:
        self.wished = False

    def __enter__(self) -> Interrupt:
        self._before = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(self, *error: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self.wished:
            raise KeyboardInterrupt
        self.wished = True
