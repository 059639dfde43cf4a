"""Coding agents are pointed at the server that runs, with their own variables and flags."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from twostroke.cli.launch import CLIENTS, KEY, NO_KEY, Target, environment, find, folder
from twostroke.cli.main import execute
from twostroke.errors import ConfigError, TwostrokeError

ROOT = Path(__file__).parents[2]
CARDS = [{"id": "coder", "max_model_len": 32768}, {"id": "other", "max_model_len": 32768}]
TARGET = Target("http://127.0.0.1:9", "coder", 32768, "sesame")
FAKE = """#!{python}
import json, os, sys
print(json.dumps({{"arguments": sys.argv[1:], "environ": dict(os.environ)}}), flush=True)
if "wait" in sys.argv:
    import signal
    signal.signal(signal.SIGINT, lambda *_: sys.exit(42))
    print("ready", flush=True)
    signal.pause()
sys.exit(7)
"""


class Models(BaseHTTPRequestHandler):
    """Answers nothing but the list of models."""

    body: bytes = json.dumps({"object": "list", "data": CARDS}).encode()
    key = ""

    def do_GET(self) -> None:
        allowed = not self.key or self.headers.get("authorization") == f"Bearer {self.key}"
        status = 404 if self.path != "/v1/models" else 200 if allowed else 401
        self.send_response(status)
        self.end_headers()
        self.wfile.write(self.body if status == 200 else b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files for agents go to a folder of this test."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def server() -> Iterator[type[Models]]:
    """The handler of a running server; `handler.url` is where it is."""
    handler = type("Handler", (Models,), {})
    with HTTPServer(("127.0.0.1", 0), handler) as listening:
        handler.url = f"http://127.0.0.1:{listening.server_port}"  # type: ignore[attr-defined]
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield handler
        listening.shutdown()
        thread.join()


@pytest.fixture
def fakes(tmp_path: Path) -> Path:
    """A folder of programs by the agents' names that tell how they were called."""
    for client in CLIENTS.values():
        file = tmp_path / client.program
        file.write_text(FAKE.format(python=sys.executable), encoding="utf-8")
        file.chmod(0o755)
    return tmp_path


def started(fakes: Path, *arguments: str, **environ: str) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TWOSTROKE_")}
    return subprocess.Popen(
        [sys.executable, "-m", "twostroke", "launch", *arguments],
        env={**inherited, **environ, "PATH": str(fakes), "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ran(fakes: Path, *arguments: str, **environ: str) -> dict[str, Any]:
    """How the fake agent was called."""
    with started(fakes, *arguments, **environ) as process:
        out, err = process.communicate(timeout=30)
    assert process.returncode == 7, err
    told: dict[str, Any] = json.loads(out)
    return told


def test_claude_code_gets_the_address_the_key_and_one_model_for_all_its_tiers(server: Any, fakes: Path) -> None:
    told = ran(fakes, "--url", server.url, "claude", "-p", "hello", ANTHROPIC_API_KEY="sk", CLAUDE_CODE_USE_VERTEX="1")
    environ = told["environ"]
    assert told["arguments"] == ["-p", "hello"]
    assert environ["ANTHROPIC_BASE_URL"] == server.url
    assert environ["ANTHROPIC_AUTH_TOKEN"] == NO_KEY
    names = {name for name in environ if name.startswith("ANTHROPIC_") and name.endswith("_MODEL")}
    assert len(names) >= 5
    assert {environ[name] for name in names} == {"coder"}
    assert environ["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] == "32768"
    assert environ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == environ["DISABLE_TELEMETRY"] == "1"
    assert not {"ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_VERTEX"} & set(environ)


def test_codex_gets_a_provider_in_toml(server: Any, fakes: Path) -> None:
    told = ran(fakes, "--url", server.url + "/v1/", "--model", "other", "codex", "exec", "hello")
    flags = told["arguments"]
    assert flags[-2:] == ["exec", "hello"]
    assert flags[flags.index("-m") + 1] == "other"
    chosen = tomllib.loads("\n".join(value for flag, value in pairwise(flags) if flag == "-c"))
    assert chosen["model_provider"] == "twostroke"
    assert chosen["model_context_window"] == 32768
    provider = chosen["model_providers"]["twostroke"]
    assert provider["base_url"] == server.url + "/v1"
    assert provider["wire_api"] == "responses"
    assert told["environ"][provider["env_key"]] == NO_KEY


def test_opencode_gets_its_config_as_a_variable(server: Any, fakes: Path) -> None:
    server.key = "sesame"
    told = ran(fakes, "--url", server.url, "--api-key", "sesame", "opencode", "run", "hello")
    assert told["arguments"] == ["run", "hello"]
    config = json.loads(told["environ"]["OPENCODE_CONFIG_CONTENT"])
    provider = config["provider"]["twostroke"]
    assert config["model"] == config["small_model"] == "twostroke/coder"
    assert provider["npm"] == "@ai-sdk/openai-compatible"
    assert provider["options"]["baseURL"] == server.url + "/v1"
    assert provider["options"]["apiKey"] == f"{{env:{KEY}}}"
    assert told["environ"][KEY] == "sesame"
    assert provider["models"]["coder"]["limit"]["context"] == 32768


def test_aider_gets_the_address_and_the_model(server: Any, fakes: Path) -> None:
    told = ran(fakes, "--url", server.url, "aider", "--message", "hello")
    assert told["arguments"][:2] == ["--model", "openai/coder"]
    assert told["arguments"][-2:] == ["--message", "hello"]
    assert told["environ"]["OPENAI_API_BASE"] == server.url + "/v1"
    assert told["environ"]["OPENAI_API_KEY"] == NO_KEY


def test_aider_is_told_the_window_in_a_file_of_ours_and_asks_nobody_else(server: Any, fakes: Path) -> None:
    for model in ("coder", "other"):
        told = ran(fakes, "--url", server.url, "--model", model, "aider")
        flags = told["arguments"]
        file = Path(flags[flags.index("--model-metadata-file") + 1])
        assert file.parent == folder()
        card = json.loads(file.read_text(encoding="utf-8"))[f"openai/{model}"]
        assert (card["max_input_tokens"], card["max_output_tokens"]) == (32768, 8192)
        assert {"--no-analytics", "--no-check-update"} <= set(flags)
        assert told["environ"]["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
    assert len(list(folder().iterdir())) == 2


def test_the_key_comes_from_the_environment_and_is_never_printed(
    server: Any, fakes: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.key = "sesame"
    monkeypatch.setenv(KEY, "sesame,another")
    for name in CLIENTS:
        assert execute(["launch", "--url", server.url, "--print", name, "--print"]) == 0
        printed = capsys.readouterr().out
        assert "sesame" not in printed
        assert f'"${KEY}"' in printed
        assert printed.rstrip().endswith("--print")


def test_what_is_printed_runs_in_a_shell_and_does_the_same(
    server: Any, fakes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in CLIENTS:
        assert execute(["launch", "--url", server.url, "--print", name, "it's"]) == 0
        command = capsys.readouterr().out
        done = subprocess.run(
            ["/bin/bash", "-c", f"PATH={shlex.quote(str(fakes))}:$PATH\n{command}"],
            capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        chosen = CLIENTS[name].launch(find(server.url, None, None))
        assert {path: path.read_text(encoding="utf-8") for path in chosen.files} == dict(chosen.files)
        told, direct = json.loads(done.stdout), ran(fakes, "--url", server.url, name, "it's")
        assert told["arguments"] == direct["arguments"]
        assert {key: told["environ"][key] for key in chosen.environ} == dict(chosen.environ)


def test_ctrl_c_goes_to_the_agent_and_its_exit_code_is_ours(server: Any, fakes: Path) -> None:
    with started(fakes, "--url", server.url, "claude", "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("{")
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 42


def test_an_agent_that_is_not_installed_is_told_with_how_to_install_it(server: Any, tmp_path: Path) -> None:
    for name, client in CLIENTS.items():
        with started(tmp_path, "--url", server.url, name) as process:
            _, err = process.communicate(timeout=30)
        assert process.returncode == 2
        assert err == f"error: {client.program} is not installed; install it with `{client.install}`\n"


def test_an_unknown_agent_lists_those_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["launch", "emacs"]) == 2
    assert "'emacs'; give one of claude, codex, opencode, aider" in capsys.readouterr().err


def test_no_server_is_one_line_that_says_how_to_start_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["launch", "--url", "http://127.0.0.1:9", "claude"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: no server answers at http://127.0.0.1:9 (")
    assert "start one with `twostroke serve`, or give --url" in said


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://x", "http://", ""])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="give an address such as"):
        find(url, None, None)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"data": []}', b'{"data": [{"id": "*"}]}', b'{"data": 5}'])
def test_another_kind_of_server_is_told(server: Any, body: bytes) -> None:
    server.body = body
    with pytest.raises(TwostrokeError, match=r"lists no model; is this a Twostroke server\?"):
        find(server.url, None, None)


def test_a_locked_server_asks_for_the_key(server: Any) -> None:
    server.key = "sesame"
    with pytest.raises(ConfigError, match=f"wants an API key; give --api-key or set {KEY}"):
        find(server.url, "wrong", None)
    assert find(server.url, "sesame", None).key == "sesame"


def test_a_model_must_be_served_unless_any_is(server: Any) -> None:
    with pytest.raises(ConfigError, match=r"'strange' is not served .* there are coder, other"):
        find(server.url, None, "strange")
    server.body = json.dumps({"data": [*CARDS, {"id": "*"}]}).encode()
    assert find(server.url, None, "strange") == Target(server.url, "strange", 32768)
    assert find(server.url, None, None).model == "coder"


def test_a_server_that_does_not_say_its_context_leaves_it_to_the_agent() -> None:
    bare = Target("http://x", "m")
    assert not any("WINDOW" in name for name in CLIENTS["claude"].launch(bare).environ)
    assert not any("model_context_window" in flag for flag in CLIENTS["codex"].launch(bare).flags)
    assert all('"max_input_tokens"' not in text for text in CLIENTS["aider"].launch(bare).files.values())
    assert '"limit"' not in CLIENTS["opencode"].launch(bare).environ["OPENCODE_CONFIG_CONTENT"]


def test_no_proxy_stands_before_this_machine() -> None:
    environ = environment(CLIENTS["aider"].launch(TARGET), {"HTTP_PROXY": "http://p", "NO_PROXY": "corp"})
    assert environ["NO_PROXY"] == environ["no_proxy"] == "corp,127.0.0.1,::1,localhost"
    assert environ["HTTP_PROXY"] == "http://p"
