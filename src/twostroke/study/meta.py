"""What a report must say about a study besides its figures: what was measured, on what, by which command."""

from __future__ import annotations

from dataclasses import dataclass

from twostroke.study.plan import Plan
from twostroke.study.prices import Prices


@dataclass(frozen=True, slots=True)
class Study:
    """How a study was made.  Text comes from people, files and servers, and is printed as text only."""

    command: str  # as it can be typed again
    machine: str  # processor, cores, memory, system, in one line
    server: str  # name and version
    model: str
    drafter: str  # what speculates in the arms that do; "" where the server does not say
    switching: str  # how the arms are switched: "per request", "a server per arm"
    workload: str
    seed: int
    arms: tuple[str, ...]
    loads: tuple[str, ...]  # as in `Record.load`; the first is the headline's
    requests: int  # calls of the workload, per arm and repeat
    repeats: int
    started: str  # ISO 8601, UTC
    took_s: float
    versions: tuple[tuple[str, str], ...] = ()  # of what took part: ("twostroke", "0.1.0"), ("python", "3.11.2")
    context_tokens: int = 0  # of the contexts that each arm reads before timing starts; they are written to the cache
    interrupted: bool = False  # stopped before every call was made
    notes: tuple[str, ...] = ()  # what a reader should know: measures that were lost, arms that were left out
    prices: Prices | None = None
    plan: Plan | None = None  # made before anything ran
