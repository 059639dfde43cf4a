"""For models whose template does not know tools: they are told of them in words and write Hermes' form.

The tools stand in the text as JSON, in the order sent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from twostroke.text.conversation import Tool
from twostroke.text.messages import template_tool
from twostroke.text.tools.hermes import CLOSE, HERMES, OPEN

GENERIC = replace(HERMES, name="generic")


def instructions(tools: Sequence[Tool]) -> str:
    """What a system message says of the tools."""
    lines = [json.dumps(template_tool(tool), ensure_ascii=False) for tool in tools]
    return "\n".join(
        (
            "# Tools",
            "You may call one or more functions. Their signatures:",
            "<tools>",
            *lines,
            "</tools>",
            "To call a function, write a JSON object with its name and arguments between tags:",
            f'{OPEN}\n{{"name": <function-name>, "arguments": <args-json-object>}}\n{CLOSE}',
        )
    )
