"""`twostroke launch`: a coding agent, told by its own environment and flags to use the server that runs here.

Nothing is written to any of its files; what it reads from a file alone has one of ours.  The agent takes the place of
this process, so that its exit code, the terminal and Ctrl-C are its own.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from twostroke.config import ANY_MODEL
from twostroke.errors import ConfigError, TwostrokeError

KEY = "TWOSTROKE_API_KEY"
NO_KEY = "none"  # clients insist on a key, also where the server wants none
TIMEOUT_S = 10.0  # for the list of models
PATIENCE_MS = 3_600_000  # a first prompt of 20k tokens may take minutes to read on a CPU
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class Target:
    """The server to use.  `context` is in tokens, 0 where the server does not say."""

    url: str  # without /v1
    model: str
    context: int = 0
    key: str = NO_KEY


@dataclass(frozen=True, slots=True)
class Launch:
    """What to run: the flags that come before the person's own, variables to set, and variables to remove.

    `files` are texts by the path where the agent will look for them.
    """

    flags: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    files: Mapping[Path, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Client:
    """A coding agent: its program, how to get it, and how to point it at a server."""

    program: str
    install: str
    launch: Callable[[Target], Launch]


def _claude(target: Target) -> Launch:
    models = ("ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL")
    tiers = tuple(f"ANTHROPIC_DEFAULT_{tier}_MODEL" for tier in ("OPUS", "SONNET", "HAIKU"))
    quiet = (
        "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    )  # fmt: skip
    windows = ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "CLAUDE_CODE_AUTO_COMPACT_WINDOW") if target.context else ()
    return Launch(
        environ={
            "ANTHROPIC_BASE_URL": target.url,
            "ANTHROPIC_AUTH_TOKEN": target.key,
            **dict.fromkeys((*models, *tiers), target.model),
            **dict.fromkeys(windows, str(target.context)),
            **dict.fromkeys(quiet, "1"),
            "API_TIMEOUT_MS": str(PATIENCE_MS),
        },
        removed=(
            "ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY",
        ),
    )  # fmt: skip


def _codex(target: Target) -> Launch:
    provider = {
        "name": "Twostroke",
        "base_url": f"{target.url}/v1",
        "wire_api": "responses",
        "env_key": KEY,
        "stream_idle_timeout_ms": PATIENCE_MS,
    }
    table = ", ".join(f"{name} = {json.dumps(value)}" for name, value in provider.items())  # such JSON is TOML too
    chosen = {"model_provider": '"twostroke"', "model_providers.twostroke": "{" + table + "}"}
    if target.context:
        chosen["model_context_window"] = str(target.context)
    flags = [word for name, value in chosen.items() for word in ("-c", f"{name}={value}")]
    return Launch((*flags, "-m", target.model), {KEY: target.key})


def _opencode(target: Target) -> Launch:
    model: dict[str, Any] = {"name": target.model}
    if target.context:
        model["limit"] = {"context": target.context, "output": target.context // 4}
    name = f"twostroke/{target.model}"
    config = {
        "provider": {
            "twostroke": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Twostroke",
                "options": {"baseURL": f"{target.url}/v1", "apiKey": f"{{env:{KEY}}}", "timeout": PATIENCE_MS},
                "models": {target.model: model},
            }
        },
        "model": name,
        "small_model": name,
        "autoupdate": False,
        "share": "disabled",
    }
    return Launch(environ={"OPENCODE_CONFIG_CONTENT": json.dumps(config), KEY: target.key})


def _aider(target: Target) -> Launch:
    """Without a description of the model aider asks GitHub for one; without the window it never shortens a chat."""
    name = f"openai/{target.model}"
    card: dict[str, Any] = {"litellm_provider": "openai", "mode": "chat"}
    card |= {"input_cost_per_token": 0, "output_cost_per_token": 0}
    if target.context:
        card |= {"max_input_tokens": target.context, "max_output_tokens": target.context // 4}
    text = json.dumps({name: card})
    file = folder() / f"aider-{sha256(text.encode()).hexdigest()[:16]}.json"
    quiet = ("--no-show-model-warnings", "--no-analytics", "--no-check-update", "--no-show-release-notes")
    return Launch(
        ("--model", name, "--model-metadata-file", str(file), *quiet, "--timeout", str(PATIENCE_MS // 1000)),
        {
            "OPENAI_API_BASE": f"{target.url}/v1",
            "OPENAI_API_KEY": target.key,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # the library beneath would fetch it at its import
        },
        files={file: text},
    )


def folder() -> Path:
    """Where the files are kept that agents are given."""
    return Path.home() / ".cache" / "twostroke" / "launch"


CLIENTS: Mapping[str, Client] = {
    "claude": Client("claude", "npm install -g @anthropic-ai/claude-code", _claude),
    "codex": Client("codex", "npm install -g @openai/codex", _codex),
    "opencode": Client("opencode", "npm install -g opencode-ai", _opencode),
    "aider": Client("aider", "pip install aider-chat", _aider),
}


def client_of(name: str) -> Client:
    """Raises `ConfigError` for a client nobody here knows."""
    if name not in CLIENTS:
        raise ConfigError(f"the client is {name!r}; give one of {', '.join(CLIENTS)}", param="client")
    return CLIENTS[name]


def find(url: str, key: str | None, model: str | None) -> Target:
    """The server at `url`, and the model it prefers where none is asked for.

    Raises `ConfigError` for what is no address, a wrong key or a model that is not there, `TwostrokeError` where nobody
    answers.
    """
    url = _base(url)
    cards = _cards(url, key)
    names = [str(card["id"]) for card in cards if card["id"] != ANY_MODEL]
    if model is not None and model not in names and len(names) == len(cards):
        raise ConfigError(f"the model {model!r} is not served at {url}; there are {', '.join(names)}", param="model")
    chosen = model or names[0]
    lengths = {card["id"]: card.get("max_model_len") for card in cards}
    context = lengths.get(chosen) or lengths.get(names[0])
    return Target(url, chosen, context if isinstance(context, int) else 0, key or NO_KEY)


def _base(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigError(f"--url is {url!r}; give an address such as http://127.0.0.1:8000", param="url")
    return url.rstrip("/").removesuffix("/v1")


def _cards(url: str, key: str | None) -> list[dict[str, Any]]:
    try:
        listed = json.loads(_fetched(f"{url}/v1/models", key))
        cards = [card for card in listed["data"] if isinstance(card["id"], str)]
        if not any(card["id"] != ANY_MODEL for card in cards):
            raise KeyError("id")
    except HTTPError as problem:
        if problem.code == 401:
            raise ConfigError(f"{url} wants an API key; give --api-key or set {KEY}", param="api_key") from None
        raise TwostrokeError(f"{url}/v1/models answered {problem.code}; is this a Twostroke server?") from None
    except (URLError, OSError) as problem:
        reason = getattr(problem, "reason", problem)
        raise TwostrokeError(
            f"no server answers at {url} ({reason}); start one with `twostroke serve`, or give --url"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise TwostrokeError(f"{url}/v1/models lists no model; is this a Twostroke server?") from None
    return cards


def _fetched(url: str, key: str | None) -> bytes:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    opener = build_opener(ProxyHandler({})) if urlsplit(url).hostname in LOOPBACK else build_opener()
    with opener.open(Request(url, headers=headers), timeout=TIMEOUT_S) as answer:
        body: bytes = answer.read()
    return body


def shown(client: Client, launch: Launch, key: str, arguments: Sequence[str]) -> str:
    """The same as a command line for a shell; a key that is one is named, not shown."""

    def word(value: str) -> str:
        return f'"${KEY}"' if value == key != NO_KEY else shlex.quote(value)

    removed = [f"-u {name}" for name in launch.removed]
    set_ = [f"{name}={word(value)}" for name, value in launch.environ.items()]
    command = shlex.join([client.program, *launch.flags, *arguments])
    return "".join(map(_written, launch.files.items())) + " \\\n    ".join(["env", *removed, *set_, command])


def _written(file: tuple[Path, str]) -> str:
    path, text = file
    return f"mkdir -p {shlex.quote(str(path.parent))} && printf %s {shlex.quote(text)} > {shlex.quote(str(path))}\n"


def run(client: Client, launch: Launch, arguments: Sequence[str]) -> None:
    """Become the client.  Raises `ConfigError` where it is not installed."""
    program = shutil.which(client.program)
    if program is None:
        raise ConfigError(f"{client.program} is not installed; install it with `{client.install}`", param="client")
    for path, text in launch.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.stdout.flush()
    os.execve(program, [client.program, *launch.flags, *arguments], environment(launch, os.environ))


def environment(launch: Launch, ours: Mapping[str, str]) -> dict[str, str]:
    """The client's variables: ours, less those that lead it elsewhere; no proxy stands before this machine."""
    kept = {name: value for name, value in ours.items() if name not in launch.removed}
    direct = ",".join(filter(None, (kept.get("NO_PROXY") or kept.get("no_proxy"), *sorted(LOOPBACK))))
    return {**kept, "NO_PROXY": direct, "no_proxy": direct, **launch.environ}
