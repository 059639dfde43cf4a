"""Lark texts of others, judged before the parser sees them.

The parser walks rules and brackets by recursion and builds an automaton of every regular expression, so both are
bounded; schemas inside (`%json`) are judged as all schemas are.
"""

from __future__ import annotations

import json
import re
from typing import Any

from llguidance import regex_to_lark
from llguidance.gbnf_to_lark import any_to_lark

from twostroke.errors import InvalidParameter
from twostroke.text.structure.schemas import schema_text

MOST_CHARACTERS = 16_384
MOST_RULES = 500  # rules and opening brackets, together
_RULE = re.compile(r"^[ \t]*[\w?!.-]+(?:\[[^\]\n]*\])?[ \t]*:", re.MULTILINE)
_SCHEMA = re.compile(r"%json\s*")


def judged(lark: str, path: str, *, lenient: bool = False) -> str:
    """The text, its schemas as the parser takes them.

    Raises:
        InvalidParameter: it is too large, or a schema in it is refused; `param` is `path`.
    """
    texts, schemas = _cut(lark, path)
    _judge_size("".join(texts), path)
    inner = [schema_text(schema, path, lenient=lenient) for schema in schemas]
    return "".join(part for pair in zip(texts, (*inner, ""), strict=True) for part in pair)


def lark_of_grammar(text: str, path: str) -> str:
    """A client's grammar, Lark or GBNF, as Lark.  Raises `InvalidParameter`."""
    _judge_size(_cut(text, path)[0][0], path)
    try:
        lark = any_to_lark(text)
    except Exception as error:  # the converter raises whatever its reading of the text runs into
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidParameter(f"the grammar cannot be read: {reason}", param=path) from error
    return judged(lark, path)


def lark_of_regex(pattern: str, path: str) -> str:
    """What the regular expression matches as a whole.  Raises `InvalidParameter`."""
    if len(pattern) > MOST_CHARACTERS // 4:
        raise _too_large(f"regular expression has {len(pattern)} characters, of at most {MOST_CHARACTERS // 4}", path)
    if not pattern:
        raise InvalidParameter("the regular expression is empty; send one that matches some text", param=path)
    return f"start: /{regex_to_lark(pattern, use_ascii='')}/"


def lark_of_choices(texts: tuple[str, ...], path: str) -> str:
    """One of the texts.  Raises `InvalidParameter`."""
    if not texts or "" in texts:
        raise InvalidParameter(f"the choices are {list(texts)!r:.60}; send at least one text, none empty", param=path)
    return f"start: {' | '.join(json.dumps(text, ensure_ascii=False) for text in texts)}"


def _cut(lark: str, path: str) -> tuple[list[str], list[Any]]:
    """The text around the schemas, one piece more than there are schemas, and the schemas."""
    texts, schemas, at = [], [], 0
    while found := _SCHEMA.search(lark, at):
        schema, end = _read(lark, found.end(), path)
        texts.append(lark[at : found.end()])
        schemas.append(schema)
        at = end
    return [*texts, lark[at:]], schemas


def _read(lark: str, start: int, path: str) -> tuple[Any, int]:
    try:
        return json.JSONDecoder().raw_decode(lark, start)
    except (ValueError, RecursionError) as error:
        raise InvalidParameter(f"the schema behind %json cannot be read: {error}", param=path) from error


def _judge_size(text: str, path: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise _too_large(f"grammar has {len(text)} characters beside its schemas, of at most {MOST_CHARACTERS}", path)
    rules = len(_RULE.findall(text)) + text.count("(") + text.count("[") + text.count("{")
    if rules > MOST_RULES:
        raise _too_large(f"grammar has {rules} rules and brackets, of at most {MOST_RULES}", path)


def _too_large(reason: str, path: str) -> InvalidParameter:
    return InvalidParameter(f"the {reason}; make it smaller", param=path)
