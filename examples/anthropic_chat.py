"""One question through the `anthropic` client: the answer as it is written, and what the cache saved.

The second turn sends the first one back: all of it is read from the cache.

Usage: python examples/anthropic_chat.py "Your question"
"""

from __future__ import annotations

import os
import sys
from typing import Any

from anthropic import Anthropic

URL = os.environ.get("TWOSTROKE_URL", "http://127.0.0.1:8000")
KEY = os.environ.get("TWOSTROKE_API_KEY", "none")


def main() -> None:
    question = " ".join(sys.argv[1:]) or "Write a haiku about caches."
    messages: list[Any] = []
    with Anthropic(base_url=URL, auth_token=KEY) as client:
        model = client.models.list().data[0].id
        for words in (question, "Now one about speculation."):
            messages.append({"role": "user", "content": words})
            with client.messages.stream(
                model=model,
                max_tokens=200,
                system="You are brief.",
                messages=messages,
                cache_control={"type": "ephemeral"},
                extra_body={"temperature": 0},
            ) as stream:
                for text in stream.text_stream:
                    print(text, end="", flush=True)
                answer = stream.get_final_message()
            usage = answer.usage
            print(
                f"\n{usage.input_tokens} new tokens, {usage.cache_read_input_tokens} from the cache, "
                f"{usage.cache_creation_input_tokens} written to it; {usage.output_tokens} tokens answered\n"
            )
            messages.append(answer.to_param())


if __name__ == "__main__":
    main()
