"""What `serve` says, and that what it says works."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from tests.serve.live import serving
from tests.serve.scripted import service
from twostroke.cli import serve
from twostroke.cli.main import execute
from twostroke.errors import ModelError


def test_the_curl_of_the_ready_line_is_a_request_that_works() -> None:
    with serving(service()) as url:
        lines = serve.ready(["echo"], url, False, 1.0).split("\n")
        command = "\n".join(lines[2:4])
        assert command.startswith("curl http")
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=20, check=True)
    assert '"content":"Hello!"' in done.stdout


def test_the_python_of_the_ready_line_works() -> None:
    with serving(service(keys=("sesame",))) as url:
        text = serve.ready(["echo"], url, True, 1.0)
        code = text[text.index("import os") :]
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={"TWOSTROKE_API_KEY": "sesame"},
        )
    assert done.stdout == "Hello!\n", done.stderr


def test_the_ready_line_says_what_kv_memory_each_model_was_given() -> None:
    line = serve.ready(["m"], "http://x", False, 1.0, {"target": 256 * 2**20, "draft": 96 * 2**20}).splitlines()[0]
    assert "; 256 MiB of KV for the target model; 96 MiB of KV for the draft model;" in line
    assert "KV" not in serve.ready(["m"], "http://x", False, 1.0)


def test_the_context_and_why_it_is_that_long_and_further_names_are_said() -> None:
    lines = serve.ready(["m", "other", "*"], "http://x", False, 1.0, {}, "64 tokens (the model's own)").splitlines()
    assert lines[1:3] == ["context: 64 tokens (the model's own)", "also answers to: other, any name (*)"]
    assert '"model": "m"' in lines[5]


def test_a_key_is_asked_for_and_never_printed() -> None:
    text = serve.ready(["m"], "http://x", True, 1.0)
    assert "Bearer $TWOSTROKE_API_KEY" in text
    assert "Bearer" not in serve.ready(["m"], "http://x", False, 1.0)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("::1", "http://[::1]:8000"),
        ("box.local", "http://box.local:8000"),
    ],
)
def test_the_address_is_one_that_a_client_can_use(host: str, url: str) -> None:
    assert serve.address(host, 8000) == url


def test_draining_counts_the_answers() -> None:
    assert serve.draining(0, 30) == "stopping"
    assert "1 answer may finish within 30 s" in serve.draining(1, 30)
    assert "2 answers" in serve.draining(2, 2.5)


def test_a_model_that_cannot_be_opened_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(settings: Any, progress: Any, version: str) -> None:
        progress("loading", 1, 2)
        raise ModelError("the file is not one")

    module = ModuleType("twostroke.serve.start")
    module.start = start  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "twostroke.serve.start", module)
    assert execute(["serve", "m", "--port", "0"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "error: the file is not one"
