"""Keep the caller's text from becoming special tokens when a chat template mixes it with its own.

Every string of the caller that holds a special token's name gets a *mark* after the first character of that name, and
at an end where a name could begin or finish outside the string.  The mark is a character that occurs nowhere else, so
it can be taken out again without a trace.  Invariant: without marks the text is unchanged, and no special token's name
is left unmarked inside a string or across one of its ends.  Knows nothing about templates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from twostroke.errors import InvalidParameter
from twostroke.text.literals import Literals

_MARKS = [chr(code) for code in (*range(0xFDD0, 0xFDF0), *range(0xF0000, 0xF0100))]  # noncharacters, then private use


class Guard:
    """`special`: the names of special tokens, of two characters or more (a shorter one has no inside to mark)."""

    def __init__(self, special: Iterable[str]) -> None:
        names = [name for name in special if len(name) > 1]
        self._names = Literals(names)
        self._heads = frozenset(name[:cut] for name in names for cut in range(1, len(name)))
        self._tails = frozenset(name[cut:] for name in names for cut in range(1, len(name)))
        self._reach = max(map(len, names), default=0)

    def mark(self, value: object) -> str:
        """A character that no string inside `value` and no special token's name holds; raises as `marks` does."""
        return self.marks(value, 1)[0]

    def marks(self, value: object, count: int) -> list[str]:
        """`count` different characters that no string inside `value` and no special token's name holds.

        Raises:
            InvalidParameter: a string holds a lone surrogate, or too many characters set apart for this are taken.
        """
        texts = (*_strings(value, ""), *self._names.strings)
        taken = {char for text in texts if not text.isascii() for char in _MARKS if char in text}
        free = [char for char in _MARKS if char not in taken][:count]
        if len(free) < count:
            raise InvalidParameter(
                f"the messages hold nearly all {len(_MARKS)} reserved characters (U+FDD0 and others); leave some out",
                param="messages",
            )
        return free

    def marked(self, value: Any, mark: str) -> Any:
        """A copy of plain data (strings, mappings, lists) with every string in it marked, keys included."""
        if isinstance(value, str):
            return self.marked_text(value, mark)
        if isinstance(value, Mapping):
            return {self.marked(key, mark): self.marked(item, mark) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.marked(item, mark) for item in value]
        return value

    def marked_text(self, text: str, mark: str) -> str:
        """`text` with its marks."""
        cuts = [start + 1 for start, _ in self._names.find_all(text)]
        inner = mark.join(text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))
        reach = range(1, min(self._reach, len(text) + 1))
        before = mark if any(text[:length] in self._tails for length in reach) else ""
        after = mark if any(text[-length:] in self._heads for length in reach) else ""
        return f"{before}{inner}{after}"


def _strings(value: object, path: str) -> Iterator[str]:
    """Every string inside plain data, keys included."""
    if isinstance(value, str):
        _refuse_surrogates(value, path)
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _strings(key, path)
            yield from _strings(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _strings(item, f"{path}[{index}]")


def _refuse_surrogates(text: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidParameter(
            f"{path} holds a lone surrogate (U+{ord(text[error.start]):04X}) at character {error.start}; "
            "send well-formed Unicode",
            param=path,
        ) from error
