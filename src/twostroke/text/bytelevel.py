"""Split text as GPT-2's byte-level BPE does: cut into words, spell their bytes as letters, merge by rank.

Source: Radford et al. 2019, section 2.2; the merging itself is the `tokenizers` library's.  Invariant: only ordinary
tokens come out, whatever the text, because the model never sees the others.  A byte that the vocabulary has no letter
for is dropped (SmolLM2 lacks some control characters), as llama.cpp does.  Knows nothing about special tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from twostroke.errors import Corrupt
from twostroke.text.pretokenizers import PreTokenizer
from twostroke.text.vocabulary import Vocabulary


def _letters() -> dict[int, str]:
    """GPT-2's printable letter for each byte: itself where it prints, else the next free one from U+0100."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + i) for i, byte in enumerate(rest)}


LETTERS = _letters()
_BYTE_OF = {letter: bytes([byte]) for byte, letter in LETTERS.items()}


class ByteLevel:
    """`merges` are pairs of tokens with a space between, best rank first.

    Raises:
        Corrupt: a merge names a token that the vocabulary lacks.
    """

    def __init__(self, vocabulary: Vocabulary, merges: Sequence[str], cut: PreTokenizer) -> None:
        self._library = Tokenizer(_model(vocabulary, merges, cut))
        words = [pre_tokenizers.Split(Regex(expression), "isolated") for expression in cut.expressions]
        spelling = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        self._library.pre_tokenizer = pre_tokenizers.Sequence([*words, spelling])

    def encode(self, text: str) -> list[int]:
        """The ids of `text`."""
        return list(self._library.encode(text, add_special_tokens=False).ids)

    def piece(self, token: str) -> bytes:
        """The bytes that a normal token stands for; a letter outside GPT-2's alphabet is itself."""
        return b"".join(_BYTE_OF.get(letter) or letter.encode() for letter in token)


def _model(vocabulary: Vocabulary, merges: Sequence[str], cut: PreTokenizer) -> models.BPE:
    """The merges without those that touch a special token: they would make it from text."""
    named = vocabulary.special_ids.keys()
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    kept = [(a, b) for a, b in pairs if a + b not in named and a not in named and b not in named]
    try:
        return models.BPE(vocabulary.text_ids, kept, ignore_merges=cut.whole_words)
    except Exception as error:  # the library raises nothing more precise
        raise Corrupt(f"the file's merges do not fit its tokens: {error}; fetch the file again") from error
