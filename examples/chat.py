"""One question, one answer, and what the answer took.

Usage: python examples/chat.py "Your question"
"""

from __future__ import annotations

import os
import sys

from openai import OpenAI

URL = os.environ.get("TWOSTROKE_URL", "http://127.0.0.1:8000")
KEY = os.environ.get("TWOSTROKE_API_KEY", "none")


def main() -> None:
    question = " ".join(sys.argv[1:]) or "Write a haiku about caches."
    with OpenAI(base_url=f"{URL}/v1", api_key=KEY) as client:
        model = client.models.list().data[0].id
        answer = client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": question}], temperature=0
        )
    print(answer.choices[0].message.content)
    phases = (answer.model_extra or {})["phases"]
    prefill, decode = phases["prefill"], phases["decode"]
    print(
        f"\nread {prefill['prompt_tokens']} tokens, {prefill['cached_tokens']} of them cached: {prefill['ms']:.0f} ms"
    )
    print(f"wrote {decode['output_tokens']} tokens in {decode['steps']} steps: {decode['ms']:.0f} ms")


if __name__ == "__main__":
    main()
