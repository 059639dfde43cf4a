"""How a byte-level BPE vocabulary cuts text into words before it merges, by the name a model file gives.

Each entry lists regular expressions applied one after the other: every match becomes a word of its own, and what lies
between matches is a word too.  The expressions are those of llama.cpp (`src/llama-vocab.cpp`, `llm_tokenizer_bpe`),
since it is the converter's `tokenizer.ggml.pre` that names them; a fault there is a fault here.  Text is not
normalised, again as there.  Knows nothing about vocabularies.
"""

from __future__ import annotations

from dataclasses import dataclass

from twostroke.errors import ModelError


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """`expressions` cut the text.  `whole_words`: a word that is a token is taken as it is, unmerged.

    `bos`: whether a prompt starts with the BOS token when the file does not say.
    """

    expressions: tuple[str, ...]
    whole_words: bool = False
    bos: bool = False


_CONTRACTION = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_LLAMA3 = rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_SYMBOLS}|{_SPACES}"
_QWEN2 = rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_SYMBOLS}|{_SPACES}"
_UPPER = r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))"
_LOWER = r"((?=[\p{L}])([^A-Z]))"
_CASED = rf"{_UPPER}*{_LOWER}+%s|{_UPPER}+{_LOWER}*%s"
_SLASHES = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"

_CUTS = {
    "default": PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")),
    "gpt-2": PreTokenizer((_GPT2,)),
    "smollm": PreTokenizer((r"\p{N}", _GPT2)),
    "falcon": PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, r"[0-9][0-9][0-9]")),
    "llama-bpe": PreTokenizer((_LLAMA3,), whole_words=True, bos=True),
    "dbrx": PreTokenizer((_LLAMA3,)),
    "qwen2": PreTokenizer((_QWEN2,)),
    "tekken": PreTokenizer(
        (rf"{_CASED % ('', '')}|\p{{N}}|{_SLASHES}|{_SPACES}",),
        whole_words=True,
        bos=True,
    ),
    "gpt-4o": PreTokenizer(
        (rf"{_CASED % (f'{_CONTRACTION}?', f'{_CONTRACTION}?')}|\p{{N}}{{1,3}}|{_SLASHES}|{_SPACES}",)
    ),
    "deepseek-coder": PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}")),
    "deepseek-v3": PreTokenizer(
        (
            r"\p{N}{1,3}",
            "[一-龥぀-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}",
        )
    ),
}

_SAME_AS = {
    "gpt-2": ("phi-2", "mpt", "olmo", "jais", "gigachat", "a.x-4.0", "mellum", "exaone4", "trillion"),
    "smollm": ("starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"),
    "llama-bpe": ("llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"),
    "dbrx": ("smaug-bpe",),
    "qwen2": ("deepseek-r1-qwen", "kormo", "stablelm2", "megrez", "hunyuan", "solar-open", "grok-2"),
    "gpt-4o": ("llama4", "kanana2"),
    "deepseek-v3": ("hunyuan-dense",),
}

PRETOKENIZERS = _CUTS | {alias: _CUTS[name] for name, aliases in _SAME_AS.items() for alias in aliases}


def pretokenizer(name: str) -> PreTokenizer:
    """The entry of that name.

    Raises:
        ModelError: the name is not known, so that every id would be a guess.
    """
    if name not in PRETOKENIZERS:
        known = ", ".join(sorted(PRETOKENIZERS))
        raise ModelError(f"the file's pre-tokenizer {name!r} (tokenizer.ggml.pre) is not known; known here: {known}")
    return PRETOKENIZERS[name]
