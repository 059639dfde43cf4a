"""The Responses API: an answer as it is written, and a second turn that goes on from what the server stored.

Usage: python examples/responses.py "Your question"
"""

from __future__ import annotations

import os
import sys

from openai import OpenAI

URL = os.environ.get("TWOSTROKE_URL", "http://127.0.0.1:8000")
KEY = os.environ.get("TWOSTROKE_API_KEY", "none")


def main() -> None:
    question = " ".join(sys.argv[1:]) or "Name three uses of a prefix cache."
    with OpenAI(base_url=f"{URL}/v1", api_key=KEY) as client:
        model = client.models.list().data[0].id
        with client.responses.stream(model=model, input=question, temperature=0) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    print(event.delta, end="", flush=True)
            first = stream.get_final_response()
        second = client.responses.create(
            model=model, input="Now in one sentence.", previous_response_id=first.id, temperature=0
        )
    print(f"\n\n{second.output_text}")
    if usage := second.usage:
        reused = usage.input_tokens_details.cached_tokens
        print(f"\nthe second turn read {usage.input_tokens} tokens, {reused} of them cached")


if __name__ == "__main__":
    main()
