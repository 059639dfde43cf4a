"""A tool loop and an answer of a given shape: the model calls, the function answers, the model tells it in JSON.

Usage: python examples/openai_tools.py "Your question"
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from openai import OpenAI

URL = os.environ.get("TWOSTROKE_URL", "http://127.0.0.1:8000")
KEY = os.environ.get("TWOSTROKE_API_KEY", "none")
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather in a city, now.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
SHAPE: Any = {
    "type": "json_schema",
    "json_schema": {
        "name": "advice",
        "schema": {
            "type": "object",
            "properties": {"umbrella": {"type": "boolean"}, "why": {"type": "string", "maxLength": 100}},
            "required": ["umbrella", "why"],
            "additionalProperties": False,
        },
    },
}


def main() -> None:
    messages: list[Any] = [{"role": "user", "content": " ".join(sys.argv[1:]) or "Do I need an umbrella in Oslo?"}]
    with OpenAI(base_url=f"{URL}/v1", api_key=KEY) as client:
        model = client.models.list().data[0].id
        first = client.chat.completions.create(
            model=model, messages=messages, tools=TOOLS, tool_choice="required", max_tokens=200, temperature=0
        )
        calls: list[Any] = first.choices[0].message.tool_calls or []
        messages.append(first.choices[0].message.model_dump(exclude_none=True))
        for call in calls:
            print("called", call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps({"rain_mm": 12})})
        second = client.chat.completions.create(
            model=model, messages=messages, tools=TOOLS, tool_choice="none", response_format=SHAPE, temperature=0
        )
    print(second.choices[0].message.content)
    details = second.usage and second.usage.prompt_tokens_details
    print(f"of the second prompt, {details.cached_tokens if details else 0} tokens were reused")


if __name__ == "__main__":
    main()
