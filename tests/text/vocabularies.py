"""Small vocabularies, as the metadata of a model file would give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twostroke.text.bytelevel import LETTERS
from twostroke.text.sentencepiece import SPACE

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<unk>")
UNCUT = ("<tool_call>", "</tool_call>")
MERGES = ("h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld", "Ġ Ġ", "Ã ©", "ð Ł", "ðŁ ĺ", "1 2")
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def byte_level(pre: str = "gpt-2", merges: Sequence[str] = MERGES, **changes: object) -> dict[str, object]:
    """All 256 bytes, a few merges, four special tokens, two user-defined ones and an unused one."""
    text = [*LETTERS.values(), *(merge.replace(" ", "") for merge in merges)]
    kinds = [NORMAL] * len(text) + [CONTROL] * 3 + [UNKNOWN] + [USER_DEFINED] * 2 + [UNUSED]
    tokens = [*text, *SPECIAL, *UNCUT, "[PAD]"]
    ggml: dict[str, object] = {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "token_type": kinds,
        "merges": list(merges),
        "bos_token_id": tokens.index("<|endoftext|>"),
        "eos_token_id": tokens.index("<|im_end|>"),
        "add_bos_token": False,
    }
    return metadata({**ggml, **changes})


def sentencepiece(pieces: Mapping[str, float], **changes: object) -> dict[str, object]:
    """The three special tokens of Llama 2, 256 byte tokens and `pieces` with their scores."""
    special = ["<unk>", "<s>", "</s>"]
    tokens = [*special, *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    ggml: dict[str, object] = {
        "model": "llama",
        "tokens": tokens,
        "token_type": [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(pieces),
        "scores": [0.0] * 259 + list(pieces.values()),
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unknown_token_id": 0,
    }
    return metadata({**ggml, **changes})


def metadata(ggml: Mapping[str, object]) -> dict[str, object]:
    """Under the keys of a GGUF file; None stands for a key that is absent."""
    return {f"tokenizer.ggml.{key}": value for key, value in ggml.items() if value is not None}


PIECES = {SPACE: -1.0, f"{SPACE}h": -2.0, "el": -3.0, "lo": -4.0, f"{SPACE}hel": -5.0, f"{SPACE}hello": -6.0} | {
    letter: -10.0 - i for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz")
}
