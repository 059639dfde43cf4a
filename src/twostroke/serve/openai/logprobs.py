"""Log-probabilities in the three shapes clients read: of a chat, of a text, and vLLM's of a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twostroke.serve.service import Text
from twostroke.serve.submission import Json
from twostroke.types import Logprobs, TokenLogprob

LEAST = -9999.0


def of_chat(entries: Sequence[Logprobs], text: Text) -> Json:
    """`choices[].logprobs` of a chat."""
    content = [_token(e.chosen, text) | {"top_logprobs": [_token(t, text) for t in e.top]} for e in entries]
    return {"content": content, "refusal": None}


def of_text(entries: Sequence[Logprobs], text: Text, *, at: int = 0) -> Json:
    """`choices[].logprobs` of a text whose first token begins at character `at`."""
    tokens = [_string(e.chosen.token, text) for e in entries]
    return {
        "tokens": tokens,
        "token_logprobs": [_finite(e.chosen.logprob) for e in entries],
        "top_logprobs": [_likely(e, text) for e in entries],
        "text_offset": _offsets(tokens, at),
    }


def of_echo(prompt: Sequence[int], scores: Sequence[Logprobs], top: int, text: Text) -> Json:
    """The same of a prompt that is repeated, `top` alternatives each; nothing comes before its first token."""
    rest = of_text([Logprobs(e.chosen, e.top[:top]) for e in scores], text)
    tokens = [_string(token, text) for token in prompt]
    return {
        "tokens": tokens,
        "token_logprobs": [None, *rest["token_logprobs"]],
        "top_logprobs": [None, *rest["top_logprobs"]],
        "text_offset": _offsets(tokens, 0),
    }


def joined(parts: Sequence[Json]) -> Json:
    """Texts' log-probabilities end to end."""
    return {name: [item for part in parts for item in part[name]] for name in parts[0]}


def length(part: Json) -> int:
    """Characters of its tokens."""
    return sum(map(len, part["tokens"]))


def of_prompt(scores: Sequence[Logprobs], text: Text) -> list[Json | None]:
    """vLLM's `prompt_logprobs`: null for the first token, then by token id; `rank` is null beyond the alternatives."""
    return [None, *(_ranked(entry, text) for entry in scores)]


def _ranked(entry: Logprobs, text: Text) -> Json:
    found = {str(item.token): _entry(item, rank, text) for rank, item in enumerate(entry.top, 1)}
    return {str(entry.chosen.token): _entry(entry.chosen, None, text)} | found


def _entry(item: TokenLogprob, rank: int | None, text: Text) -> Json:
    return {"logprob": _finite(item.logprob), "rank": rank, "decoded_token": _string(item.token, text)}


def _likely(entry: Logprobs, text: Text) -> Mapping[str, float]:
    """The alternatives and the chosen token, by text; the likelier of two with the same text."""
    found: dict[str, float] = {}
    for item in (*entry.top, entry.chosen):
        found.setdefault(_string(item.token, text), _finite(item.logprob))
    return found


def _token(item: TokenLogprob, text: Text) -> Json:
    piece = text.piece(item.token)
    return {"token": piece.decode("utf-8", "replace"), "logprob": _finite(item.logprob), "bytes": list(piece)}


def _string(token: int, text: Text) -> str:
    return text.piece(token).decode("utf-8", "replace")


def _finite(logprob: float) -> float:
    """The log-probability, or what OpenAI writes for one too small: JSON has no infinity."""
    return max(logprob, LEAST)


def _offsets(tokens: Sequence[str], at: int) -> list[int]:
    """Where each token's text begins."""
    found = []
    for token in tokens:
        found.append(at)
        at += len(token)
    return found
