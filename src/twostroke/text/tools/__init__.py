"""Calls of tools inside an answer's text, one file per model family, and the choice of a family.

The choice is made by what a chat template writes: a model is trained on the form that it is shown.
"""

from __future__ import annotations

from collections.abc import Collection

from twostroke.text.tools.family import Family
from twostroke.text.tools.gemma import GEMMA, GEMMA4
from twostroke.text.tools.generic import GENERIC, instructions
from twostroke.text.tools.hermes import CLOSE, HERMES, OPEN
from twostroke.text.tools.llama3 import LLAMA3
from twostroke.text.tools.mistral import MISTRAL, MISTRAL_NAMED
from twostroke.text.tools.qwen3_coder import QWEN3_CODER

__all__ = ["CLOSE", "FAMILIES", "OPEN", "Family", "family_of", "instructions"]

FAMILIES = (QWEN3_CODER, GEMMA, GEMMA4, MISTRAL_NAMED, MISTRAL, HERMES, LLAMA3, GENERIC)
_SIGNS = (  # all of these in the template: the family; the first that fits
    (("<function=", "<parameter="), QWEN3_CODER),
    (("<start_function_call>",), GEMMA),
    (("<|tool_call>", "<tool_call|>"), GEMMA4),
    (("[TOOL_CALLS]", "[ARGS]"), MISTRAL_NAMED),
    (("[TOOL_CALLS]",), MISTRAL),
    (("<tool_call>",), HERMES),
    (("<|start_header_id|>", "<|python_tag|>"), LLAMA3),
)


def family_of(template_source: str | None, special_names: Collection[str]) -> Family:
    """The family that a model's chat template writes calls for; `GENERIC` where it knows no tools or no form we know.

    `special_names`, the names of the model's special tokens, decide where the template alone does not.
    """
    source = template_source or ""
    if "tools" not in source:
        return GENERIC
    return _signed(source) or _signed("\n".join((source, *special_names))) or GENERIC


def _signed(text: str) -> Family | None:
    return next((family for signs, family in _SIGNS if all(sign in text for sign in signs)), None)
