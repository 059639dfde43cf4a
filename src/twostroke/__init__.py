"""An LLM serving engine in which prefix caching and speculative decoding stack, exactly.

from twostroke import LLM, Sampling

with LLM("smollm2-135m") as llm:
    answer = llm.generate("Once upon a time", Sampling(temperature=0.8, seed=7), max_tokens=64)
    print(answer.text, answer.phases)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twostroke.types import Sampling

if TYPE_CHECKING:
    from twostroke.llm import LLM, Answer

__all__ = ["LLM", "Answer", "Sampling"]


def __getattr__(name: str) -> Any:
    """The engine is imported when it is asked for: `twostroke --help` needs no kernels."""
    if name in ("LLM", "Answer"):
        from twostroke import llm

        return getattr(llm, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
