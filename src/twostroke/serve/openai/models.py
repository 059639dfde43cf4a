"""A model as the list of models shows it."""

from __future__ import annotations

from twostroke.serve.submission import Json


def card(name: str, created: int, context: int) -> Json:
    """One model, loaded at the Unix time `created`; a prompt and its answer may span `context` tokens."""
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "twostroke",
        "max_model_len": context,
    }
