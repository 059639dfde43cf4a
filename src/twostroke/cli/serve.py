"""`twostroke serve`: from settings to a server that says how to talk to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from twostroke.cli.screen import progress, say, start_logging
from twostroke.cli.version import own_version
from twostroke.config import ANY_MODEL, Settings


def serve(settings: Settings) -> None:
    """Bind, load, serve until Ctrl-C.  Raises `ConfigError` for a port in use before anything is loaded."""
    from twostroke.serve.server import Server, bind

    start_logging(settings.log_level)
    began_s = time.monotonic()
    with bind(settings.host, settings.port) as socket:
        from twostroke.serve.start import start

        with progress() as show:
            service = start(settings, show, own_version())
        url = address(settings.host, socket.getsockname()[1])
        server = Server(
            service,
            on_ready=lambda: say(
                ready(
                    service.models,
                    url,
                    bool(settings.api_key),
                    time.monotonic() - began_s,
                    service.kv_bytes,
                    service.context_reason,
                )
            ),
            on_drain=lambda running: say(draining(running, settings.drain_s)),
        )
        asyncio.run(server.serve([socket]))


def address(host: str, port: int) -> str:
    """Where a client on this machine finds the server."""
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}"


def draining(running: int, limit_s: float) -> str:
    """What is said after the first Ctrl-C."""
    if not running:
        return "stopping"
    answers = "1 answer" if running == 1 else f"{running} answers"
    return f"stopping: {answers} may finish within {limit_s:g} s; Ctrl-C again stops at once"


def ready(
    models: Sequence[str], url: str, locked: bool, took_s: float, kv_bytes: Mapping[str, int] = {}, context: str = ""
) -> str:
    """The ready lines, and two ways to talk to the server that can be copied as they are."""
    model, more = models[0], [f"any name ({ANY_MODEL})" if name == ANY_MODEL else name for name in models[1:]]
    header = ' \\\n    -H "Authorization: Bearer $TWOSTROKE_API_KEY"' if locked else ""
    key = 'os.environ["TWOSTROKE_API_KEY"]' if locked else '"none"'
    memory = "".join(f"; {size / 2**20:.0f} MiB of KV for the {group} model" for group, size in kv_bytes.items())
    imports = "import os\nfrom openai import OpenAI" if locked else "from openai import OpenAI"
    return f"""\
Twostroke serves {model} at {url} (ready in {took_s:.1f} s{memory}; Ctrl-C stops)
{_line("context", context)}{_line("also answers to", ", ".join(more))}
curl {url}/v1/chat/completions -H "Content-Type: application/json"{header} \\
    -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "Hello!"}}]}}'

{imports}
client = OpenAI(base_url="{url}/v1", api_key={key})
answer = client.chat.completions.create(model="{model}", messages=[{{"role": "user", "content": "Hello!"}}])
print(answer.choices[0].message.content)
"""


def _line(what: str, said: str) -> str:
    return f"{what}: {said}\n" if said else ""
