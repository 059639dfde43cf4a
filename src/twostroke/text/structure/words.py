"""Our vocabulary as `llguidance` wants it.

Special tokens have no text there: a grammar allows one by its id or not at all.  Unused tokens have no bytes and are
never allowed.
"""

from __future__ import annotations

from collections.abc import Sequence

from llguidance import LLTokenizer, TokenizerWrapper

from twostroke.text.tokenizer import Tokenizer
from twostroke.text.vocabulary import Kind

# Sets of tokens that the parser allows or refuses as one, each without those of the sets before it: where a set fits
# what may come next (a plain repetition of characters) its tokens are not looked at.  `<` and `[` begin the markers of
# calls and thoughts, so free text is a repetition of all else; quotes and escapes are what a JSON string ends with.
_IN_ALL = r'[^<\["\\\x00-\x1F\x7F]'
SLICES = (
    _IN_ALL + "{1,10}",
    _IN_ALL + "{1,30}",
    _IN_ALL + "+",
    r"[^<\[]+",
    r'[^"\\\x00-\x1F\x7F]+',
)


class Words:
    """What `TokenizerWrapper` reads of a tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        vocabulary = tokenizer.vocabulary
        self._tokenizer = tokenizer
        self.eos_token_id = min(vocabulary.ends) if vocabulary.ends else None
        self.bos_token_id = vocabulary.bos
        self.special_token_ids = sorted(vocabulary.special)
        self.tokens: Sequence[bytes] = [
            b"" if kind == Kind.UNUSED and token not in vocabulary.special else tokenizer.token_bytes(token)
            for token, kind in enumerate(vocabulary.kinds)
        ]

    def __call__(self, text: bytes | str) -> list[int]:
        return list(self._tokenizer.encode(text.decode() if isinstance(text, bytes) else text))


def llguidance_tokenizer(tokenizer: Tokenizer) -> LLTokenizer:
    """The tokenizer's vocabulary, whole: a mask has a bit for each of its ids.

    Takes about a second for 152 000 tokens.
    """
    wrapper = TokenizerWrapper(Words(tokenizer))
    return LLTokenizer(wrapper, n_vocab=tokenizer.vocab_size, eos_token=sorted(tokenizer.end_ids), slices=list(SLICES))
