"""Text to token ids and back, as the model file's own metadata describes it.

Invariant: special tokens come from a chat template or from nowhere.  `encode` reads its text as plain text, so a user
who types `<|im_end|>` sends those characters; `encode_marked` turns the special strings of a rendered template into
their tokens, except those that a mark interrupts.  No Unicode normalisation: decoding gives back what went in.
Knows nothing about messages or requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from twostroke.errors import Corrupt, InvalidParameter, ModelError
from twostroke.text.bytelevel import ByteLevel
from twostroke.text.literals import Literals
from twostroke.text.pretokenizers import pretokenizer
from twostroke.text.sentencepiece import SentencePiece
from twostroke.text.vocabulary import PREFIX, Kind, Vocabulary, byte_value, flag, numbers, read_vocabulary, strings


class Splitter(Protocol):
    """How ordinary text becomes tokens: text without special or user-defined ones."""

    def encode(self, text: str) -> list[int]: ...

    def piece(self, token: str) -> bytes:
        """The bytes that a normal token of that string stands for."""
        ...


class Tokenizer:
    """One model's vocabulary.  Immutable, safe to share between threads.

    `end_ids`: any of these ends an answer.  `adds_bos`: a prompt begins with `bos_id`.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        splitter: Splitter,
        *,
        adds_bos: bool,
        space_prefix: bool = False,
    ) -> None:
        self.vocabulary = vocabulary
        self.adds_bos = adds_bos and vocabulary.bos is not None
        self._splitter = splitter
        self._space_prefix = space_prefix
        named = {text: i for text, i in vocabulary.special_ids.items() if len(text) > 1}  # else a mark finds no place
        self._literal_ids = vocabulary.uncut_ids | named
        self._uncut = Literals(vocabulary.uncut_ids)
        self._named = Literals(self._literal_ids)
        self._bytes: list[bytes | None] = [None] * len(vocabulary.tokens)

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, object]) -> Tokenizer:
        """The tokenizer of a model file, from its GGUF keys and plain values (`tokenizer.ggml.*`).

        Raises:
            ModelError: the kind of tokenizer or its pre-tokenizer is not known.
            Corrupt: a list is missing, damaged or contradicts another.
        """
        kind = metadata.get(PREFIX + "model")
        if kind not in _KINDS:
            known = ", ".join(map(repr, _KINDS))
            raise ModelError(f"the file's tokenizer {kind!r} (tokenizer.ggml.model) is not known; known here: {known}")
        return _KINDS[str(kind)](read_vocabulary(metadata), metadata)

    @property
    def vocab_size(self) -> int:
        return len(self.vocabulary.tokens)

    @property
    def bos_id(self) -> int | None:
        return self.vocabulary.bos

    @property
    def end_ids(self) -> frozenset[int]:
        return self.vocabulary.ends

    @property
    def special_strings(self) -> frozenset[str]:
        """What `encode_marked` turns into special tokens."""
        return frozenset(self.vocabulary.special_ids)

    def is_special(self, token: int) -> bool:
        """Whether `token` stands for no text: control tokens, the unknown token, ends of answers."""
        return token in self.vocabulary.special

    def encode(self, text: str, *, bos: bool = False) -> tuple[int, ...]:
        """The ids of plain text; with `bos` preceded by the BOS token, where the file asks for one.

        Raises:
            InvalidParameter: `text` holds a lone surrogate, which is not text.
        """
        ids = self._encode(text, self._uncut, "")
        return self._begin(ids) if bos else tuple(ids)

    def encode_marked(self, text: str, mark: str, *, bos: bool = True) -> tuple[int, ...]:
        """The ids of a rendered template, whose special strings become special tokens.

        Every `mark` is removed, and no special token is made of characters that had a mark between them; apart from
        that a mark has no effect, so the ids are those of the text without marks.  With `bos` (and a file that asks for
        it) a BOS token is put first unless the template wrote one.
        """
        ids = self._encode(text, self._named, mark)
        return self._begin(ids) if bos else tuple(ids)

    def token_bytes(self, token: int) -> bytes:
        """What `token` stands for, special tokens by their names.

        Raises:
            InvalidParameter: no such token.
        """
        if not 0 <= token < self.vocab_size:
            raise InvalidParameter(f"token id {token} is not in the vocabulary (0 to {self.vocab_size - 1})")
        found = self._bytes[token]
        if found is None:
            found = self._bytes[token] = self._read(token)
        return found

    def text_bytes(self, token: int) -> bytes:
        """What `token` adds to an answer: its bytes, none for a special or unused token."""
        known = self.token_bytes(token)
        hidden = token in self.vocabulary.special or self.vocabulary.kinds[token] == Kind.UNUSED
        return b"" if hidden else known

    def token_text(self, token: int) -> str:
        """`token_bytes` as text for people; bytes that are no text by themselves become U+FFFD."""
        return self.token_bytes(token).decode(errors="replace")

    def decode(self, ids: Iterable[int], *, special: bool = False) -> str:
        """The text of `ids`, with the names of special tokens only if asked; invalid UTF-8 becomes U+FFFD."""
        read = self.token_bytes if special else self.text_bytes
        return b"".join(map(read, ids)).decode(errors="replace")

    def _begin(self, ids: list[int]) -> tuple[int, ...]:
        bos = self.bos_id
        if not self.adds_bos or bos is None or ids[:1] == [bos]:
            return tuple(ids)
        return (bos, *ids)

    def _encode(self, text: str, literals: Literals, mark: str) -> list[int]:
        _refuse_surrogates(text)
        ids: list[int] = []
        lead = " " if self._space_prefix else ""  # a text begins a word, at the start and after every literal
        for part, literal in _cut(text, literals, mark):
            ids += [self._literal_ids[part]] if literal else self._splitter.encode(lead + part)
        return ids

    def _read(self, token: int) -> bytes:
        text, kind = self.vocabulary.tokens[token], self.vocabulary.kinds[token]
        if kind == Kind.BYTE:
            return bytes([byte_value(text)])
        return (
            self._splitter.piece(text)
            if kind == Kind.NORMAL and token not in self.vocabulary.special
            else text.encode()
        )


def _cut(text: str, literals: Literals, mark: str) -> Iterator[tuple[str, bool]]:
    """`text` in parts: (a literal, True) or (what lies between, False), marks removed, empty parts left out."""
    position = 0
    for start, end in literals.find(text):
        if before := _unmarked(text[position:start], mark):
            yield before, False
        yield text[start:end], True
        position = end
    if rest := _unmarked(text[position:], mark):
        yield rest, False


def _unmarked(text: str, mark: str) -> str:
    return text.replace(mark, "") if mark else text


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = f"U+{ord(text[error.start]):04X}"
        raise InvalidParameter(
            f"the text holds a lone surrogate ({found}) at character {error.start}; send well-formed Unicode"
        ) from error


def _byte_level(vocabulary: Vocabulary, metadata: Mapping[str, object]) -> Tokenizer:
    cut = pretokenizer(str(metadata.get(PREFIX + "pre") or "default"))
    splitter = ByteLevel(vocabulary, strings(metadata, "merges"), cut)
    return Tokenizer(vocabulary, splitter, adds_bos=flag(metadata, "add_bos_token", cut.bos))


def _score_ordered(vocabulary: Vocabulary, metadata: Mapping[str, object]) -> Tokenizer:
    scores = numbers(metadata, "scores")
    if len(scores) != len(vocabulary.tokens):
        raise Corrupt(f"the file has {len(vocabulary.tokens)} tokens but {len(scores)} scores; fetch the file again")
    return Tokenizer(
        vocabulary,
        SentencePiece(vocabulary.text_ids, scores, _byte_ids(vocabulary)),
        adds_bos=flag(metadata, "add_bos_token", True),
        space_prefix=flag(metadata, "add_space_prefix", True),
    )


def _byte_ids(vocabulary: Vocabulary) -> list[int]:
    """The token of each byte, the unknown token where a byte has none."""
    found = {byte_value(vocabulary.tokens[i]): i for i, kind in enumerate(vocabulary.kinds) if kind == Kind.BYTE}
    ids = [found.get(byte, vocabulary.unknown) for byte in range(256)]
    if None in ids:
        byte = ids.index(None)
        raise Corrupt(f"the file has no token for byte 0x{byte:02X} and no unknown token; use a complete file")
    return [i for i in ids if i is not None]


_KINDS: dict[str, Callable[[Vocabulary, Mapping[str, object]], Tokenizer]] = {
    "gpt2": _byte_level,
    "llama": _score_ordered,
}
