"""Answers that have a shape: formats and calls of tools become grammars, which say what tokens may come next.

`llguidance` parses and masks; this package gives it our vocabulary, judges what clients send, and makes one grammar per
answer.
"""

from __future__ import annotations

from twostroke.text.structure.calls import Tag
from twostroke.text.structure.structures import Structures

__all__ = ["Structures", "Tag"]
