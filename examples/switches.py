"""The same question with the prefix cache and speculation off and on: the same text, at other costs.

Usage: python examples/switches.py
"""

from __future__ import annotations

import inspect
import os
import textwrap

from openai import OpenAI

URL = os.environ.get("TWOSTROKE_URL", "http://127.0.0.1:8000")
KEY = os.environ.get("TWOSTROKE_API_KEY", "none")
SOURCE = inspect.getsource(textwrap)[:3000]  # a long prefix to reuse, and text to quote from
QUESTION = f"```python\n{SOURCE}\n```\nRepeat the first ten lines of this file exactly."


def main() -> None:
    texts = set()
    print(f"{'cache':>6} {'speculate':>10} {'read ms':>9} {'cached':>7} {'write ms':>9} {'steps':>6}")
    with OpenAI(base_url=f"{URL}/v1", api_key=KEY, timeout=600) as client:
        model = client.models.list().data[0].id
        for cache in (False, True, True):  # the second turn with the cache on finds what the first one left
            for speculate in ("off", "ngram"):
                answer = client.chat.completions.create(
                    model=model,
                    messages=[{"role": "user", "content": QUESTION}],
                    temperature=0,
                    max_tokens=100,
                    extra_body={"prefix_cache": cache, "speculate": speculate},
                )
                texts.add(answer.choices[0].message.content)
                phases = (answer.model_extra or {})["phases"]
                prefill, decode = phases["prefill"], phases["decode"]
                print(
                    f"{'on' if cache else 'off':>6} {speculate:>10} {prefill['ms']:9.0f} {prefill['cached_tokens']:7}"
                    f" {decode['ms']:9.0f} {decode['steps']:6}"
                )
    print("one text for all of them" if len(texts) == 1 else "THE TEXTS DIFFER")


if __name__ == "__main__":
    main()
