"""What shape a client wants an answer to have, as plain values.  `text/structure` turns them into grammars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AnyJson:
    """A JSON object."""


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """JSON that fits the schema."""

    schema: Mapping[str, Any] | bool
    path: str = "response_format.json_schema.schema"


@dataclass(frozen=True, slots=True)
class Regex:
    """Text that the regular expression matches as a whole."""

    pattern: str
    path: str = "structured_outputs.regex"


@dataclass(frozen=True, slots=True)
class Choices:
    """One of these texts."""

    texts: tuple[str, ...]
    path: str = "structured_outputs.choice"


@dataclass(frozen=True, slots=True)
class Lark:
    """Text of a grammar in llguidance's dialect of Lark, or in GBNF."""

    grammar: str
    path: str = "structured_outputs.grammar"


Format = AnyJson | JsonSchema | Regex | Choices | Lark
