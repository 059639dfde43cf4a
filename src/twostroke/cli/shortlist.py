"""`twostroke shortlist`: how much of a text a draft model could say with a shorter output head.

A draft model computes the scores of its first tokens only (`assemble.model.SHORTLIST` of them): its output matrix is a
third of its bytes, and a token it cannot say costs no more than a rejected draft.  How often that happens is measured
here, next to what the most frequent tokens would reach: those are counted on every second text and judged on the
others, or they would be praised for knowing the answer.
"""

from __future__ import annotations

import json
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from twostroke.cli.screen import progress
from twostroke.config import Settings
from twostroke.errors import ConfigError

SIZES = (8192, 16_384, 32_768, 65_536, 131_072)
Encode = Callable[[str], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of a text's tokens that a head of `size` tokens can say."""

    size: int
    first_ids: float
    most_frequent: float | None  # of the texts it was not chosen from; None where there is one text alone


@dataclass(frozen=True, slots=True)
class Shortlist:
    """What was counted, and what each size covers."""

    model: str
    vocabulary: int
    texts: int
    tokens: int
    coverage: tuple[Coverage, ...]


def measured(settings: Settings, files: Sequence[Path], size: int | None) -> Shortlist:
    """Read the model's vocabulary and count.  Raises `ConfigError` for texts that cannot be read."""
    from twostroke.assemble import open_codec

    with progress() as show:
        codec = open_codec(settings, show)
        texts = list(texts_of(files or standard_library()))
        counts = [Counter(codec.encode(text, bos=False)) for text in shown_along(texts, show)]
    sizes = [size] if size else [n for n in SIZES if n < codec.vocabulary]
    return count(settings.model, codec.vocabulary, counts, sizes)


def standard_library() -> list[Path]:
    """The sources that every Python brings, without its tests and what is installed beside it."""
    root = Path(sysconfig.get_path("stdlib"))
    left_out = {"site-packages", "dist-packages", "test", "tests", "idle_test"}
    return sorted(path for path in root.rglob("*.py") if not left_out & set(path.relative_to(root).parts))


def texts_of(files: Iterable[Path]) -> Iterator[str]:
    """Each file is a text; of `.jsonl` files each line is one, made of the strings in it."""
    for path in files:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
            yield from map(_strings, text.splitlines()) if path.suffix == ".jsonl" else (text,)
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read {path}: {error}; give files of text or of JSON lines") from error


def _strings(line: str) -> str:
    def found(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            for item in value.values() if isinstance(value, dict) else value:
                yield from found(item)

    return "\n".join(found(json.loads(line)))


def shown_along(texts: Sequence[str], show: Callable[[str, int, int], None]) -> Iterator[str]:
    total, done = sum(map(len, texts)), 0
    for text in texts:
        yield text
        done += len(text)
        show("counting", done, total)


def count(model: str, vocabulary: int, texts: Sequence[Counter[int]], sizes: Sequence[int]) -> Shortlist:
    """What heads of these sizes cover of texts given as token counts."""
    whole, seen, unseen = (sum(part, Counter()) for part in (texts, texts[::2], texts[1::2]))
    if not whole:
        raise ConfigError("the texts have no tokens; give some text")
    coverage = []
    for size in sizes:
        frequent = {token for token, _ in seen.most_common(size)}
        # Places that the counted half leaves free go to the first ids, as nothing else is known of them.
        frequent |= set([t for t in range(vocabulary) if t not in frequent][: size - len(frequent)])
        coverage.append(Coverage(size, share(whole, set(range(size))), share(unseen, frequent) if unseen else None))
    return Shortlist(model, vocabulary, len(texts), whole.total(), tuple(coverage))


def share(counts: Counter[int], tokens: set[int]) -> float:
    """How much of what was counted is one of `tokens`."""
    return sum(number for token, number in counts.items() if token in tokens) / counts.total()


def shown(found: Shortlist, *, as_json: bool) -> str:
    """What `twostroke shortlist` prints."""
    if as_json:
        return json.dumps(asdict(found))
    head = f"{found.model}: {found.vocabulary} tokens; {found.texts} texts of {found.tokens} tokens in all"
    rows = [f"{'size':>8} {'first ids':>10} {'most frequent':>14}"]
    for row in found.coverage:
        other = "" if row.most_frequent is None else f"{row.most_frequent:.2%}"
        rows.append(f"{row.size:8} {row.first_ids:10.2%} {other:>14}")
    return "\n".join([head, "", *rows])
