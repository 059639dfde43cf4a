"""Real prompts: code and prose of the standard library, and questions over documents that share long prefixes.

Texts come from the running interpreter, so they differ between Python versions; every test compares runs on the same
texts.
"""

from __future__ import annotations

import inspect
import string
import textwrap
from collections.abc import Sequence

from twostroke.text.codec import Codec

BLOCK = 16
DOCUMENT = 17 * BLOCK  # tokens: just beyond the 256 keys that attention takes at once


def twelve_prompts(codec: Codec) -> list[tuple[int, ...]]:
    """Ten short ordinary prompts and two chats; the RAG prompts below make more than twelve."""
    shorten = inspect.getsource(textwrap.shorten)
    indent = inspect.getsource(textwrap.indent)
    capwords = inspect.getsource(string.capwords)
    texts = [
        shorten,
        f"# Repeat the function exactly.\n{capwords}\n# Again:\n",
        f"{indent}\n\ndef dedent_all(texts):\n",
        "def fibonacci(n):\n    a, b = 0, 1\n    for _ in range(n):\n",
        "The quick brown fox jumps over the lazy dog. The quick brown fox jumps over",
        "Once upon a time, in a village by the sea, there lived a fisherman who",
        "one two three four one two three four one two three four one two",
        'import json\n\ndata = {"name": "Ada", "born": 1815}\nprint(json.dumps(data',
        "Zürich liegt am Zürichsee. 東京は日本の首都です。 Москва —",
        "x",
    ]
    chats = [
        [{"role": "user", "content": f"Add a docstring to this function:\n\n{capwords}"}],
        [{"role": "system", "content": "Answer briefly."}, {"role": "user", "content": "What is a hash table?"}],
    ]
    return [codec.encode(text) for text in texts] + [codec.chat(chat) for chat in chats]


def rag_documents(codec: Codec) -> Sequence[tuple[int, ...]]:
    """One document under three questions each, diverging one token before, at, and after a block's border."""
    document = codec.encode(inspect.getdoc(textwrap.TextWrapper) or "")[: DOCUMENT + 1]
    question = codec.encode("\n\nQuestion: what does `width` mean?\nAnswer:")
    other = codec.encode("\n\nSummarise the text above in one sentence:")
    return [document[: DOCUMENT + shift] + tail for shift in (-1, 0, 1) for tail in (question, other)]
