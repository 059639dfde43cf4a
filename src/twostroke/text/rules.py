"""Pieces that grammars are written with, in llguidance's dialect of Lark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from twostroke.text.literals import Literals


def passage(rule: str, markers: Sequence[str]) -> tuple[str, ...]:
    """Lines that define the rule for any text, the empty one too, up to where one of `markers` is whole in it.

    What follows the rule must begin with a marker's text (`opening`), so that a marker is met as itself however it is
    cut into tokens.  The text is made of greedy pieces: characters that begin no marker, and markers broken off.  A
    lazy rule would say the same, but for it the parser looks at all tokens, and for a plain repetition at a few
    thousand (see `words`).  The first character of a marker must not come again inside it.
    """
    firsts = "".join(sorted({_in_class(marker[0]) for marker in markers}))
    name = rule.upper()
    broken = [f"{name}_BROKEN{i}: /{_broken_off(marker)}/" for i, marker in enumerate(markers)]
    pieces = " | ".join((f"{name}_PLAIN", *(f"{name}_BROKEN{i}" for i in range(len(markers)))))
    return (f"{rule}: ({pieces})*", f"{name}_PLAIN: /[^{firsts}]+/", *broken)


def opening(marker: str, special: Mapping[str, int]) -> str:
    """A marker in a rule: its text, and its token where it is a special one; a reader takes either for the marker."""
    return f"<[{special[marker]}]> | {quoted(marker)}" if marker in special else quoted(marker)


def _broken_off(marker: str) -> str:
    """A regular expression of the beginnings of a marker that are not all of it."""
    assert marker[0] not in marker[1:], f"{marker!r} holds its first character again"
    rest = ""
    for char in reversed(marker[1:-1]):
        rest = f"(?:{in_regex(char)}{rest})?"
    return in_regex(marker[0]) + rest


def in_regex(text: str) -> str:
    """The text itself in a regular expression of Lark."""
    return re.escape(text).replace("/", r"\/")


def _in_class(char: str) -> str:
    return "\\" + char if char in r"\]^-/[&~" else char


def symbols(text: str, special: Mapping[str, int]) -> str:
    """The text in a rule: special tokens by id, all else as strings; "" for no text."""
    return " ".join(_symbols(text, special))


def _symbols(text: str, special: Mapping[str, int]) -> Iterator[str]:
    position = 0
    for start, end in Literals(special).find(text):
        if start > position:
            yield quoted(text[position:start])
        yield f"<[{special[text[start:end]]}]>"
        position = end
    if rest := text[position:]:
        yield quoted(rest)


def quoted(text: str) -> str:
    """A string of Lark."""
    return json.dumps(text, ensure_ascii=False)
