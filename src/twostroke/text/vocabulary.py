"""What a model file says about its tokens: their strings, kinds and roles.

Invariant: a token is *special* when the file calls it control or unknown, or when it ends an answer; special tokens
stand for no text.  User-defined tokens are not special: they are ordinary text that is never cut (`<tool_call>`, runs
of spaces), as in llama.cpp and in Hugging Face's `special: false`.  Knows nothing about how text is split.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from twostroke.errors import Corrupt

PREFIX = "tokenizer.ggml."

# Ends of a turn, a message or a text that files often leave without a key of their own (llama.cpp's list).  Only where
# the token is not a normal one: in Qwen's vocabulary `</s>` is a piece of HTML.
_END_TEXTS = frozenset(
    (
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|eom_id|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<end_of_utterance>",
        "<EOT>",
        "[EOT]",
        "</s>",
        "<｜end▁of▁sentence｜>",
    )
)
INFILL = (  # the tokens before a prefix, a suffix and what belongs between them, by family
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
)
_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")


class Kind(IntEnum):
    """`tokenizer.ggml.token_type`, as the GGUF specification numbers it."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class Vocabulary:
    """Tokens by id, and the ids with a role.  `ends`: any of these ends an answer."""

    tokens: tuple[str, ...]
    kinds: tuple[int, ...]
    bos: int | None
    eos: int | None
    unknown: int | None
    ends: frozenset[int]

    @cached_property
    def special(self) -> frozenset[int]:
        """Ids that no user text may produce and no answer shows."""
        return self.ends | frozenset(self._of(Kind.CONTROL, Kind.UNKNOWN))

    @cached_property
    def special_ids(self) -> dict[str, int]:
        """The special tokens by name."""
        return {self.tokens[i]: i for i in sorted(self.special)}

    @cached_property
    def uncut_ids(self) -> dict[str, int]:
        """The user-defined tokens by string: text that is found before anything is split."""
        return {self.tokens[i]: i for i in self._of(Kind.USER_DEFINED) if i not in self.special}

    @cached_property
    def text_ids(self) -> dict[str, int]:
        """The ids that splitting ordinary text may produce, by string."""
        ids = dict(zip(self.tokens, range(len(self.tokens)), strict=True))
        for other in {*self.special, *self._of(Kind.UNUSED, Kind.BYTE)}:
            ids.pop(self.tokens[other], None)
        return ids

    def _of(self, *kinds: Kind) -> list[int]:
        wanted = frozenset(map(int, kinds))
        return [i for i, kind in enumerate(self.kinds) if kind in wanted]


def read_vocabulary(metadata: Mapping[str, object]) -> Vocabulary:
    """The vocabulary of a file's metadata (GGUF keys to plain values).

    Raises:
        Corrupt: a list is missing or its length differs, or a role names an id that does not exist.
    """
    tokens = tuple(strings(metadata, "tokens"))
    kinds = tuple(integers(metadata, "token_type")) if PREFIX + "token_type" in metadata else (1,) * len(tokens)
    if len(kinds) != len(tokens):
        raise Corrupt(f"the file has {len(tokens)} tokens but {len(kinds)} token types; fetch the file again")
    ids = {key: token_id(metadata, key, len(tokens)) for key in (*_END_KEYS, "bos_token_id", "unknown_token_id")}
    named = {i for i, token in enumerate(tokens) if token in _END_TEXTS and kinds[i] != Kind.NORMAL}
    keyed = {i for key in _END_KEYS if (i := ids[key]) is not None}
    return Vocabulary(
        tokens=tokens,
        kinds=kinds,
        bos=ids["bos_token_id"],
        eos=ids["eos_token_id"],
        unknown=ids["unknown_token_id"],
        ends=frozenset(named | keyed),
    )


def strings(metadata: Mapping[str, object], key: str) -> list[str]:
    """A required list of strings.  Raises `Corrupt` where it is missing or holds anything else."""
    values = _values(metadata, key)
    if not all(isinstance(value, str) for value in values):
        raise Corrupt(f"{PREFIX}{key} must hold strings only; the file is damaged or was converted wrongly")
    return values  # type: ignore[return-value]  # checked above


def integers(metadata: Mapping[str, object], key: str) -> list[int]:
    """A required list of integers.  Raises `Corrupt` where it is missing or holds anything else."""
    return [int(value) for value in numbers(metadata, key)]


def numbers(metadata: Mapping[str, object], key: str) -> list[float]:
    """A required list of numbers.  Raises `Corrupt` where it is missing or holds anything else."""
    try:
        return [float(value) for value in _values(metadata, key)]  # type: ignore[arg-type]  # judged by float itself
    except (TypeError, ValueError) as error:
        raise Corrupt(f"{PREFIX}{key} must hold numbers only: {error}") from error


def token_id(metadata: Mapping[str, object], key: str, size: int) -> int | None:
    """An optional token id below `size`.  Raises `Corrupt` for any other value."""
    value = metadata.get(PREFIX + key)
    if value is None:
        return None
    if not isinstance(value, int) or not 0 <= value < size:
        raise Corrupt(f"{PREFIX}{key} is {value!r}, but the file has {size} tokens; fetch the file again")
    return value


def flag(metadata: Mapping[str, object], key: str, default: bool) -> bool:
    """An optional yes or no."""
    value = metadata.get(PREFIX + key)
    return default if value is None else bool(value)


def byte_value(token: str) -> int:
    """The byte that a byte token such as `<0x41>` stands for.  Raises `Corrupt` for any other form."""
    if not _BYTE.fullmatch(token):
        raise Corrupt(f"byte token {token!r} is not of the form <0x41>; fetch the file again")
    return int(token[3:5], 16)


def _values(metadata: Mapping[str, object], key: str) -> list[object]:
    value = metadata.get(PREFIX + key)
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        raise Corrupt(f"the file has no list {PREFIX}{key}, which its tokenizer needs; use a complete model file")
    return list(value)
