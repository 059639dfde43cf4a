"""An answer as it is written; usage and phases arrive with the last chunk.

Usage: python examples/stream.py "Your question"
"""

from __future__ import annotations

import os
import sys

from openai import OpenAI

URL = os.environ.get("TWOSTROKE_URL", "http://127.0.0.1:8000")
KEY = os.environ.get("TWOSTROKE_API_KEY", "none")


def main() -> None:
    question = " ".join(sys.argv[1:]) or "Count from one to twenty in words."
    with OpenAI(base_url=f"{URL}/v1", api_key=KEY) as client:
        chunks = client.chat.completions.create(
            model=client.models.list().data[0].id,
            messages=[{"role": "user", "content": question}],
            seed=7,
            stream=True,
            stream_options={"include_usage": True},
        )
        for chunk in chunks:
            for choice in chunk.choices:
                print(choice.delta.content or "", end="", flush=True)
            if chunk.usage:
                phases = (chunk.model_extra or {})["phases"]
                print(f"\n\n{chunk.usage.completion_tokens} tokens, first after {phases['ttft_ms']:.0f} ms")


if __name__ == "__main__":
    main()
