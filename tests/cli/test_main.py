"""Command lines, right and wrong: one line says what is the matter, and the exit code whose fault it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from twostroke.cli import main as command_line
from twostroke.cli.main import app, execute
from twostroke.config import OPTIONS, PREFIX
from twostroke.errors import ConfigError, FetchFailed, ModelError, UnknownModel

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings from the environment, and help as wide as it likes."""
    for name in os.environ:
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "400")


def program(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "twostroke", *arguments],
        cwd=ROOT,
        env={**os.environ, **environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_commands() -> None:
    names = {(command.name or getattr(command.callback, "__name__", "")) for command in app.registered_commands}
    assert {"serve", "run", "chat", "pull", "calibrate", "whatif", "version"} <= names


def test_every_setting_is_an_option_of_serve(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["serve", "--help"]) == 0
    shown = capsys.readouterr().out
    for option in OPTIONS.values():
        if option.name != "model":
            assert option.flag in shown
            assert option.help.split(".")[0] in shown
    assert "--no-prefix-cache" in shown
    assert "--config" in shown
    assert "qwen2.5-coder-0.5b" in shown


@pytest.mark.parametrize("command", ["run", "chat"])
def test_one_shot_commands_have_no_server_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--temperature" in shown
    assert "--speculate" in shown
    assert "--port" not in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["frob"], "No such command 'frob'"),
        (["serve", "--prot", "1"], "No such option"),
        (["serve", "--port", "x"], "--port is 'x'; give a whole number, 0 to 65535"),
        (["serve", "--port", "-1"], "--port is -1; give a whole number"),
        (["serve", "--temperature", "nan"], "--temperature is nan; give a number"),
        (["serve", "--kv-type", "f8"], "one of q16, q8"),
        (["serve", "--config", "/nowhere.toml"], "cannot read /nowhere.toml"),
        (["run", "m"], "Missing argument 'PROMPT'"),
        (["run"], "Missing argument 'MODEL'"),
        (["whatif", "--alpha", "2"], "alpha is 2.0"),
        (["whatif", "--alpha", "x"], "--alpha"),
        (["whatif"], "--alpha"),
        (["pull", "no-such-model"], "no-such-model"),
    ],
)
def test_wrong_command_lines_are_one_line_and_exit_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert said in err


def test_a_misspelt_variable_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TWOSTROKE_PROT", "1")
    assert execute(["serve"]) == 2
    assert "TWOSTROKE_PORT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (ConfigError("wrong"), 2, "error: wrong\n"),
        (UnknownModel("which?"), 2, "error: which?\n"),
        (FetchFailed("tried\nall"), 1, "error: tried all\n"),
        (ModelError("broken"), 1, "error: broken\n"),
        (OSError(28, "No space left on device", "/full"), 1, "error: No space left on device: /full\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_failures_are_told_by_whose_they_are(
    raised: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(command_line, "app", fail)
    assert execute([]) == code
    assert capsys.readouterr().err == said


def test_a_fault_of_ours_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(command_line, "app", fail)
    assert execute([]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: ZeroDivisionError: oops; this is a fault of ours")
    assert "Traceback" not in err


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute([]) == 2
    out, err = capsys.readouterr()
    assert "serve" in out + err
    assert "error" not in out + err


def test_whatif_as_json_and_as_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["whatif", "--alpha", "0.8", "--cost", "0.05", "--verify", "0.05", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"expected_tokens", "speedup", "best_k", "break_even_alpha"}
    assert found["best_k"] == 6
    assert found["speedup"] == pytest.approx(2.47, abs=0.005)
    assert execute(["whatif", "--alpha", "0.8", "--cost", "0.05", "--verify", "0.05", "--draft-tokens", "2"]) == 0
    assert "With 2 drafts a step: 2.440 tokens" in capsys.readouterr().out
    assert execute(["whatif", "--alpha", "0.5", "--cost", "2"]) == 0
    assert "never pays" in capsys.readouterr().out


def test_version_as_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["--version"]) == 0
    said = capsys.readouterr().out
    assert execute(["version"]) == 0
    assert capsys.readouterr().out == said


def test_python_dash_m_and_version() -> None:
    done = program("version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


def test_help_needs_nothing_heavy() -> None:
    code = (
        "import sys; from twostroke.cli.main import execute; assert execute(['serve', '--help']) == 0; "
        "heavy = {'numpy', 'fastapi', 'uvicorn', 'tokenizers', 'jinja2', 'prometheus_client', 'asyncio'}; "
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    began_s = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "[]\n"
    assert time.monotonic() - began_s < 10


def test_a_reader_that_leaves_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "from twostroke.cli.main import main; main()", "serve", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        said = child.stderr.read()
        child.wait(20)
    assert b"Traceback" not in said


def test_a_port_in_use_is_told_before_anything_is_loaded() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = program("serve", "no-such-model", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "is in use" in done.stderr
    assert "no-such-model" not in done.stderr
