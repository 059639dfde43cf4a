"""The examples run as they are, through the real client, against a server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serve.live import serving
from tests.serve.scripted import EchoEngine, service

EXAMPLES = Path(__file__).parents[1] / "examples"
EXPECTED = {
    "anthropic_chat.py": "Write a haiku about caches.",
    "chat.py": "Write a haiku about caches.\n\nread 27 tokens, 13 of them cached",
    "openai_tools.py": "of the second prompt, ",
    "responses.py": "the second turn read ",
    "stream.py": "Count from one to twenty in words.\n\n35 tokens, first after",
    "switches.py": "one text for all of them",
}


def test_every_example_is_listed_and_tried() -> None:
    files = {file.name for file in EXAMPLES.glob("*.py")}
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert files == set(EXPECTED)
    assert all(f"`{name}`" in listed for name in files)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_example_runs(name: str) -> None:
    with serving(service(EchoEngine(drafts=3), context=8192, keys=("sesame",))) as url:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / name)],
            env={**os.environ, "TWOSTROKE_URL": url, "TWOSTROKE_API_KEY": "sesame"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert EXPECTED[name] in done.stdout
