"""The clients of npm against a real model: their tests are in tests/npm, in their own language.

The packages are installed once, into build/npm, at the versions that tests/npm/package-lock.json pins.  Where there is
no npm, or no registry to reach, the tests are skipped and say so; `make test-npm` fails instead.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.serve.live import serving
from twostroke.config import Settings
from twostroke.serve.start import start

pytestmark = pytest.mark.model
MODEL = "qwen2.5-coder-0.5b"
ROOT = Path(__file__).parents[2]
SOURCES, BUILD = ROOT / "tests" / "npm", ROOT / "build" / "npm"
EXAMPLE = ROOT / "examples" / "ai_sdk.mjs"
REQUIRED = "TWOSTROKE_NPM_REQUIRED"  # set by `make test-npm`
INSTALL = ("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=20000")
UNREACHABLE = re.compile(r"npm error code (E(NOTFOUND|CONN\w+|TIMEDOUT|AI_AGAIN|HOSTUNREACH|NETUNREACH|40[13]|5\d\d))")


def absent(why: str) -> NoReturn:
    if os.environ.get(REQUIRED):
        pytest.fail(why)
    pytest.skip(why)


def install() -> None:
    """Fill build/npm, unless it holds just these versions.  An unreachable registry skips; any other failure fails."""
    lock = (SOURCES / "package-lock.json").read_bytes()
    made = BUILD / "installed"
    if made.is_file() and made.read_bytes() == lock:
        return
    for file in SOURCES.glob("package*.json"):
        shutil.copy(file, BUILD)
    done = subprocess.run(INSTALL, cwd=BUILD, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode and (found := UNREACHABLE.search(done.stderr)):
        absent(f"npm cannot reach its registry ({found[1]}): the npm clients were not tried")
    assert done.returncode == 0, done.stderr
    made.write_bytes(lock)


@pytest.fixture(scope="module")
def installed() -> Path:
    """The folder with the packages, the tests and the example; Node looks for packages beside the file that it runs."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            absent(f"{program} is not on PATH: install Node.js 20 or later to try the npm clients")
    BUILD.mkdir(parents=True, exist_ok=True)
    install()
    for file in (*SOURCES.glob("*.mjs"), EXAMPLE):
        shutil.copy(file, BUILD)
    return BUILD


@pytest.fixture(scope="module")
def url(installed: Path) -> Iterator[str]:
    settings = Settings(model=MODEL, kv_memory=256 * 2**20, threads=2, drain_s=5.0)
    with serving(start(settings, lambda what, done, total: None, "test")) as url:
        yield url


def node(folder: Path, url: str, *arguments: str) -> str:
    """What a run printed.  Fails with all of it where the exit status is not 0."""
    done = subprocess.run(
        ["node", *arguments],
        cwd=folder,
        env={**os.environ, "TWOSTROKE_URL": url, "TWOSTROKE_MODEL": MODEL, "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("file", sorted(file.name for file in SOURCES.glob("*.test.mjs")))
def test_a_client_of_npm(installed: Path, url: str, file: str) -> None:
    told = node(installed, url, "--test", "--test-reporter=tap", file)
    assert re.search(r"^# fail 0$", told, re.MULTILINE)
    assert re.search(r"^# skipped 0$", told, re.MULTILINE)


def test_the_example_runs(installed: Path, url: str) -> None:
    told = node(installed, url, EXAMPLE.name)
    assert "called weather {" in told
    assert told.count("of them cached") == 4
    assert "umbrella:" in told


def test_what_is_pinned_is_what_the_example_asks_for() -> None:
    pinned = json.loads((SOURCES / "package.json").read_text(encoding="utf-8"))["dependencies"]
    asked = json.loads((EXAMPLE.parent / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert asked.items() <= pinned.items()
    assert f"`{EXAMPLE.name}`" in (EXAMPLE.parent / "README.md").read_text(encoding="utf-8")


def test_the_lock_names_versions_and_sums_and_no_registry() -> None:
    packages = json.loads((SOURCES / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    del packages[""]
    assert all("integrity" in package and "resolved" not in package for package in packages.values())
