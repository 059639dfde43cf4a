"""What a request may ask of sampling, in miniature: a grammar of five states, penalties, scores of the prompt."""

from __future__ import annotations

from collections.abc import Sequence

from twostroke.types import Logprobs, Sampling, TokenLogprob

VOCABULARY = 7
ALLOWED = ((0, 1, 2, 3), (2,), (1, 5, 6), (2,), (0, 1, 2, 3, 4, 5, 6))  # by state; 3 forces 1, and that 4


class Toy:
    """A grammar whose state is a sum; the answer is complete after `length` tokens."""

    def __init__(self, length: int = 12) -> None:
        self.length = length
        self.fed: list[int] = []  # exactly the committed tokens, which the auditing runner compares

    @property
    def finished(self) -> bool:
        return len(self.fed) >= self.length

    def advance(self, token: int) -> None:
        if token not in self.after(()):
            raise ValueError(f"token {token} is not allowed after {self.fed}")
        self.fed.append(token)

    def after(self, drafts: Sequence[int]) -> tuple[int, ...]:
        """The tokens allowed after drafts."""
        return ALLOWED[sum(token + 1 for token in (*self.fed, *drafts)) % len(ALLOWED)]

    def allowed(self, drafts: Sequence[int]) -> bytes:
        masks = (sum(1 << token for token in self.after(drafts[:i])) for i in range(1 + len(drafts)))
        return b"".join(mask.to_bytes(4, "little") for mask in masks)

    def valid(self, drafts: Sequence[int]) -> int:
        return next((i for i, draft in enumerate(drafts) if draft not in self.after(drafts[:i])), len(drafts))

    def forced(self) -> tuple[int, ...]:
        tokens: list[int] = []
        while len(only := self.after(tokens)) == 1:
            tokens += only
        return tuple(tokens)


def unmasked(mask: bytes) -> tuple[int, ...]:
    """The tokens of one mask."""
    bits = int.from_bytes(mask, "little")
    return tuple(token for token in range(VOCABULARY) if bits >> token & 1)


def choose(key: int, sampling: Sampling, prompt: Sequence[int], answer: Sequence[int], allowed: Sequence[int]) -> int:
    """The token with the most points among those that are allowed; `key` stands for logits and noise."""
    banned = sampling.withheld if len(answer) < sampling.min_tokens else ()
    points = {token: hash((key, token)) % 1000 for token in allowed if token not in banned}
    bias = dict(sampling.bias)
    for token in points:
        if token in prompt or token in answer:
            points[token] -= round(300 * (sampling.repetition_penalty - 1.0))
        points[token] -= round(100 * sampling.frequency_penalty * answer.count(token))
        points[token] -= round(200 * sampling.presence_penalty * (token in answer))
        points[token] += round(bias.get(token, 0.0))
    return max(points, key=lambda token: (points[token], -token), default=0)


def special(sampling: Sampling, allowed: Sequence[int] | None) -> bool:
    """Whether anything but the plain choice is asked for."""
    return sampling.penalizes or bool(sampling.bias or sampling.min_tokens) or allowed is not None


def score(digest: int, token: int) -> Logprobs:
    """What the model says of a known token, given the digest of all tokens before."""
    return Logprobs(TokenLogprob(token, -float(hash((digest, token)) % 1000)), ())
