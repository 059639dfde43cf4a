"""What is asked: the committed prompts, and documents made of the standard library's own sources.

Everything is fixed by the files of this folder and of the Python that runs; nothing is drawn at random.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

PROMPTS = Path(__file__).parent / "prompts"
KINDS = ("code", "rag", "chat")
Message = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question, as a conversation."""

    id: str
    kind: str
    messages: tuple[Message, ...]


def committed(kinds: Iterable[str] = KINDS, most: int | None = None) -> tuple[Prompt, ...]:
    """The prompts of `bench/prompts`, the first `most` of each kind, the kinds in turn."""
    files = [_read(PROMPTS / f"{kind}.jsonl")[:most] for kind in kinds]
    return tuple(prompt for turn in zip_longest(*files) for prompt in turn if prompt is not None)


def _read(path: Path) -> list[Prompt]:
    with path.open(encoding="utf-8") as lines:
        return [_prompt(json.loads(line)) for line in lines]


def _prompt(row: Mapping[str, object]) -> Prompt:
    messages = row["messages"]
    assert isinstance(messages, list)
    return Prompt(str(row["id"]), str(row["kind"]), tuple(messages))


def spec_bench(path: Path, most: int) -> tuple[Prompt, ...]:
    """The first turns of Spec-Bench's file, `most` of them, evenly spaced over all its categories."""
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    step = max(1, len(rows) // most)
    return tuple(_turn(row) for row in rows[::step][:most])


def _turn(row: Mapping[str, object]) -> Prompt:
    turns = row["turns"]
    assert isinstance(turns, list)
    message = {"role": "user", "content": turns[0]}
    return Prompt(f"spec-bench-{row['question_id']}", str(row["category"]), (message,))


# --- documents that several questions share


@dataclass(frozen=True, slots=True)
class Subject:
    """A module of the standard library, and what is asked about it."""

    module: str
    questions: tuple[str, ...]


SUBJECTS = (
    Subject(
        "heapq",
        (
            "What is the difference between heappushpop and heapreplace?",
            "Add type annotations to heappush, heappop and heapify and return the three functions.",
            "How does merge keep the order of equal elements?",
            "Rename the parameter `heap` of heappush to `items` and return the function.",
        ),
    ),
    Subject(
        "textwrap",
        (
            "Which options change what happens to whitespace?",
            "Add a parameter `tabsize=None` to dedent that expands tabs first, and return the function.",
            "What does shorten do with a text that fits?",
            "Write the docstring of TextWrapper's method fill anew, with an example, and return the method.",
        ),
    ),
    Subject(
        "shlex",
        (
            "When does the lexer treat a quote inside a word as a quote?",
            "Make quote accept pathlib.Path objects too, and return the function.",
            "What do the modes posix and non-posix do differently?",
            "Add a method `rest` to the class that returns all tokens not read yet, and return the method.",
        ),
    ),
    Subject(
        "queue",
        (
            "What does task_done do, and what happens if it is called too often?",
            "Add a method `peek` to Queue that returns the next item without removing it, and return the method.",
            "How do LifoQueue and PriorityQueue differ from Queue?",
            "Rewrite Queue.get so that a negative timeout means no wait, and return the method.",
        ),
    ),
)


def document(module: str, most: int, count: Callable[[str], int]) -> str:
    """The source of a module, from its beginning, cut at a line so that it has at most `most` tokens by `count`."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    lines = Path(spec.origin).read_text(encoding="utf-8").splitlines(keepends=True)
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count("".join(lines[:middle])) <= most else (low, middle - 1)
    return "".join(lines[:low])


def shared(count: Callable[[str], int], most: int = 2000, subjects: Sequence[Subject] = SUBJECTS) -> Iterator[Prompt]:
    """Questions about documents: the document comes first, so that questions about one share a prefix."""
    for subject in subjects:
        text = f"Here is the module {subject.module} of the Python standard library:\n\n" + document(
            subject.module, most, count
        )
        for number, question in enumerate(subject.questions):
            messages = ({"role": "system", "content": text}, {"role": "user", "content": question})
            yield Prompt(f"{subject.module}-{number + 1}", subject.module, messages)
