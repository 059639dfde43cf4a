"""What is wrong with a schema or a grammar, in plain words: `llguidance`'s messages, told to the one who sent it."""

from __future__ import annotations

import re
from collections.abc import Callable

_Match = re.Match[str]


def _keywords(found: _Match) -> str:
    return f"no grammar expresses the keywords {found[1]}; leave them out"


def _nothing(found: _Match) -> str:
    return f"nothing fits the schema: {found[1]}"


def _regex(found: _Match) -> str:
    pattern, caret, reason = found[1], len(found[2]), found[3]
    at = f" at character {caret + 1} ({pattern[caret]!r})" if caret < len(pattern) else " at its end"
    return f"the regular expression {pattern!r:.80} cannot be used{at}: {reason}"


_MESSAGES: tuple[tuple[re.Pattern[str], Callable[[_Match], str]], ...] = (
    (re.compile(r"Unimplemented keys: \[(.*)\]"), _keywords),
    (re.compile(r"Unsatisfiable schema: (.*)"), _nothing),
    (re.compile(r"regex parse error:\n    (.*)\n    ( *)\^+\s*\nerror: (.*)"), _regex),
    (
        re.compile(r'invalid regex "(.*)" \(in regex\): ([^;\n]*)'),
        lambda m: f"the regular expression {m[1]:.80} cannot be used: {m[2]}",
    ),
    (re.compile(r"Pointer '(.*?)' does not exist"), lambda m: f'"$ref" names #{m[1]}, which the schema does not hold'),
    (
        re.compile(r"Resource '(.*?)' is not present"),
        lambda m: f'"$ref" leads out of the schema to {m[1]}; put what it names under "$defs"',
    ),
    (
        re.compile(r"oneOf constraints are not supported"),
        lambda m: '"oneOf" works only where one required constant tells its alternatives apart; use "anyOf"',
    ),
    (re.compile(r"circular references with sibling keys"), lambda m: '"$ref" leads back to itself through other keys'),
    (
        re.compile(r"Unable to determine if regex is empty"),
        lambda m: '"pattern" together with a length is too complex; leave one of them out',
    ),
    (
        re.compile(r"NoExtension|only an end of text"),
        lambda m: "the grammar allows no answer at all; give it one that has an end",
    ),
    (
        re.compile(r"too (?:large|big)|precomputation failed|LexerTooComplex|ParserTooComplex|limit"),
        lambda m: "the grammar is too large; make it smaller",
    ),
    (re.compile(r"failed to compile JSON schema: (.*)"), lambda m: f"the schema cannot be used: {m[1]}"),
    (re.compile(r"(?:at )?(\d+)\((\d+)\): (.*)"), lambda m: f"line {m[1]}, column {m[2]}: {m[3]}"),
)


def explained(message: str) -> str:
    """The message in plain words: its cause, and what to do where that is known."""
    told = ((pattern.search(message), say) for pattern, say in _MESSAGES)
    known = next((say(found) for found, say in told if found), None)
    return known or next(iter(message.strip().splitlines()), "the grammar cannot be used")
