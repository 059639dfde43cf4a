"""The list of models in Anthropic's shape."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from twostroke.serve.submission import Json


def models(names: Sequence[str], created: int, context: int) -> Json:
    """One page with every model.  `created`: Unix time; `context`: tokens a prompt and its answer may span."""
    return {
        "data": [model_card(name, created, context) for name in names],
        "has_more": False,
        "first_id": names[0] if names else None,
        "last_id": names[-1] if names else None,
    }


def model_card(name: str, created: int, context: int) -> Json:
    """One model."""
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": datetime.fromtimestamp(created, UTC).isoformat().replace("+00:00", "Z"),
        "lifecycle": "active",
        "max_input_tokens": context,
        "max_tokens": context,
        "capabilities": None,
    }
