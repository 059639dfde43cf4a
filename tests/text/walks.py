"""Answers made of nothing but what a grammar allows: a seeded walk that ends."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.text.vocabularies import byte_level
from twostroke.text.structure import Structures
from twostroke.text.tokenizer import Tokenizer
from twostroke.types import Grammar

TOKENIZER = Tokenizer.from_metadata(byte_level())
STRUCTURES = Structures(TOKENIZER)
MASK_BYTES = 4 * -(-TOKENIZER.vocab_size // 32)
_CLOSING = '"}],:'  # what brings JSON to an end, the nearest first
_OPENING = "{["


def tokens(mask: bytes) -> list[int]:
    """The ids that a mask allows."""
    return [token for token in range(8 * len(mask)) if mask[token >> 3] >> (token & 7) & 1]


def walk(grammar: Grammar, seed: int, budget: int = 120, most: int = 4000) -> list[int]:
    """The ids of a whole answer, without an end of text: lively for `budget` tokens, then as short as it can be."""
    chance = random.Random(seed)
    ids: list[int] = []
    while not grammar.finished and len(ids) < most:
        allowed = tokens(grammar.allowed(()))
        tired = len(ids) >= budget
        if TOKENIZER.end_ids & set(allowed) and (tired or chance.random() < 0.2):
            return ids
        ids.append(_choice([token for token in allowed if token not in TOKENIZER.end_ids], chance, tired))
        grammar.advance(ids[-1])
    assert grammar.finished, "the walk found no end"
    return ids


def follow(grammar: Grammar, ids: Sequence[int]) -> int | None:
    """Moves the grammar on; the index of the first token that it refuses, else None."""
    for index, token in enumerate(ids):
        if token not in tokens(grammar.allowed(())):
            return index
        grammar.advance(token)
    return None


def follow_text(grammar: Grammar, text: str) -> str:
    """What of the text is left when the grammar refuses; "" where it takes all."""
    ids = TOKENIZER.encode(text)
    at = follow(grammar, ids)
    return "" if at is None else TOKENIZER.decode(ids[at:])


def _choice(allowed: Sequence[int], chance: random.Random, tired: bool) -> int:
    if chance.random() < (0.7 if tired else 0.3):
        return min(allowed, key=lambda token: (_rank(TOKENIZER.token_text(token)), chance.random()))
    return chance.choice(allowed)


def _rank(text: str) -> int:
    if text[:1] in _OPENING:
        return len(_CLOSING) + 1
    found = _CLOSING.find(text[:1])
    return found if found >= 0 else len(_CLOSING)
