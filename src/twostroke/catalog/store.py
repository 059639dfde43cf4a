"""Verified model files on this disk, by name.

A file at its final place is whole and verified: it is written under another name, checked, flushed and renamed.  A
stamp beside it holds the checksum with the size and time at which it was true, so that looking again is quick and a
changed file is noticed.  Nothing here knows what is inside a model file.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from twostroke.catalog.names import CATALOG, Entry, hub_file, known
from twostroke.catalog.sources import HubSource, PackageSource, Source, SourceFailed, WrongBytes
from twostroke.errors import Corrupt, FetchFailed, UnknownModel

Progress = Callable[[int, int], None]  # bytes so far, bytes in all (0: not known)
Announce = Callable[[str], None]

HOME_VARIABLE = "TWOSTROKE_HOME"
PART = ".part-"  # how the folder of a fetch under way is called
ABANDONED_S = 24 * 3600  # a fetch that has written nothing for so long is over
SPARE_BYTES = 256 << 20  # for a wheel beside the growing file, and so as not to fill the disk to the brim


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file to have: what it is called, where it belongs, how it is known and who has it."""

    spec: str
    path: Path
    bytes: int  # 0: not known
    sha256: str  # "": not known, whatever arrives is taken and remembered
    sources: tuple[Source, ...]


def home() -> Path:
    """Where models are kept: $TWOSTROKE_HOME, or the cache folder of this user."""
    chosen = os.environ.get(HOME_VARIABLE)
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "twostroke" / "models"


def announce_on_stderr(line: str) -> None:
    """The default announcement."""
    print(line, file=sys.stderr, flush=True)


def resolve(
    spec: str | Path,
    progress: Progress | None = None,
    mirrors: bool = True,
    announce: Announce = announce_on_stderr,
) -> Path:
    """The path of the model file that `spec` names, fetched and verified where it is not here yet.

    `spec` is a name of the catalog, `owner/repo:file.gguf` on the model hub, or a path, which is returned as it is.
    `progress` is called from this thread; `mirrors=False` keeps to the model hub.

    Raises `UnknownModel` for a spec that means nothing here, `FetchFailed` where no source delivered or the disk
    refused, and `Corrupt` where what is here or arrived has another checksum (the file is then removed).
    """
    asked = wanted(str(spec), mirrors)
    if isinstance(asked, Path):
        return asked
    if verified(asked):
        return asked.path
    return fetch(asked, progress or (lambda done, total: None), announce)


def wanted(spec: str, mirrors: bool) -> Wanted | Path:
    """What `spec` asks for: a file to have, or a path that exists."""
    if entry := CATALOG.get(spec):
        return Wanted(spec, home() / f"{entry.name}.gguf", entry.bytes, entry.sha256, _sources(entry, mirrors))
    path = Path(spec).expanduser()
    if path.is_file():
        return path
    if remote := hub_file(spec):
        return Wanted(spec, home() / remote.repository / remote.file, 0, "", (HubSource(remote),))
    raise UnknownModel(
        f"{spec!r} is no file here and no known model; give a path, owner/repo:file.gguf on the model hub, "
        f"or one of {', '.join(known())}"
    )


def _sources(entry: Entry, mirrors: bool) -> tuple[Source, ...]:
    hub: list[Source] = [HubSource(entry.hub)] if entry.hub else []
    return (*hub, PackageSource(entry.mirror)) if mirrors and entry.mirror else tuple(hub)


# --- what is here


@dataclass(frozen=True, slots=True)
class Stamp:
    """A checksum, and the size and time of change of the file it was computed from."""

    sha256: str
    bytes: int
    mtime_ns: int

    @property
    def text(self) -> str:
        return f"{self.sha256} {self.bytes} {self.mtime_ns}\n"


def stamp_path(path: Path) -> Path:
    """Where the stamp of the file at `path` lies."""
    return path.with_name(path.name + ".sha256")


def read_stamp(path: Path) -> Stamp | None:
    """The stamp beside the file at `path`; None where there is none that can be read."""
    try:
        sha256, size, mtime_ns = stamp_path(path).read_text().split()
        return Stamp(sha256, int(size), int(mtime_ns))
    except (OSError, ValueError):
        return None


def verified(asked: Wanted) -> bool:
    """Whether the file is here and right.  A wrong one is removed, and `Corrupt` raised."""
    if not asked.path.is_file():
        return False
    stamp = read_stamp(asked.path)
    right = asked.sha256 or (stamp.sha256 if stamp else "")
    status = asked.path.stat()
    if stamp and stamp == Stamp(right, status.st_size, status.st_mtime_ns):
        return True
    found = sha256_of(asked.path)
    if right and found != right:
        discard(asked.path)
        raise Corrupt(_differs(asked.path, found, right) + f"; fetch it again with `twostroke pull {asked.spec}`")
    _write_stamp(asked.path, found)
    return True


def sha256_of(path: Path) -> str:
    """The checksum of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def discard(path: Path) -> None:
    """Removes a file and its stamp."""
    stamp_path(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _write_stamp(path: Path, sha256: str) -> None:
    status = path.stat()
    with suppress(OSError):  # a read-only store works without stamps, only slower
        stamp_path(path).write_text(Stamp(sha256, status.st_size, status.st_mtime_ns).text)


def _differs(path: Path, found: str, right: str) -> str:
    return f"{path}: the SHA-256 is {found[:16]}…, not {right[:16]}…; the file was removed"


# --- what is not


def fetch(asked: Wanted, progress: Progress, announce: Announce) -> Path:
    """Tries the sources in order; the first that delivers the right bytes wins."""
    failures: list[str] = []
    kind: type[FetchFailed | Corrupt] = FetchFailed
    for source in asked.sources:
        if source.notice:
            announce(source.notice)
        try:
            with _workshop(asked) as folder:
                return _fetch_from(source, asked, folder, progress)
        except SourceFailed as failure:
            failures.append(f"{source.name}: {failure}")
            announce(failures[-1])
            if isinstance(failure, WrongBytes):
                kind = Corrupt
        except OSError as error:
            raise _refused_by_disk(asked, error) from None
    raise kind(_undelivered(asked, failures))


@contextmanager
def _workshop(asked: Wanted) -> Iterator[Path]:
    """A folder beside the file's final place that is gone afterwards, however this ends."""
    asked.path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(asked.path.parent)
    free = shutil.disk_usage(asked.path.parent).free
    if free < asked.bytes + SPARE_BYTES:
        raise OSError(errno.ENOSPC, f"{asked.bytes + SPARE_BYTES:,} bytes are needed and {free:,} free")
    folder = Path(tempfile.mkdtemp(prefix=PART, dir=asked.path.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove what fetches that were killed have left: nothing in it has grown for a day."""
    for left in folder.glob(f"{PART}*"):
        with suppress(OSError):
            if max(path.stat().st_mtime for path in (left, *left.rglob("*"))) < time.time() - ABANDONED_S:
                shutil.rmtree(left, ignore_errors=True)


class _Arrival:
    """A file on its way in: written, hashed and counted at once."""

    def __init__(self, asked: Wanted, file: IO[bytes], progress: Progress) -> None:
        self._asked = asked
        self._file = file
        self._progress = progress
        self._digest = hashlib.sha256()
        self._shown = 0
        self.bytes = 0

    def write(self, chunk: bytes) -> None:
        self.bytes += len(chunk)
        if self._asked.bytes and self.bytes > self._asked.bytes:
            raise WrongBytes(f"it sent more than the {self._asked.bytes:,} bytes of the file")
        self._digest.update(chunk)
        self._file.write(chunk)

    def show(self, done: int) -> None:
        """Progress that never goes back, though a source's intermediate copies come and go."""
        total = self._asked.bytes
        self._shown = max(self._shown, min(done, total or done))
        self._progress(self._shown, total)

    def finish(self) -> str:
        """On the disk, not only on its way there; the checksum."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._digest.hexdigest()


def _fetch_from(source: Source, asked: Wanted, folder: Path, progress: Progress) -> Path:
    part, scratch = folder / "file.part", folder / "source"
    scratch.mkdir()
    with part.open("wb") as file:
        arrival = _Arrival(asked, file, progress)
        source.fetch(scratch, arrival.write, arrival.show)
        found = arrival.finish()
    if asked.sha256 and found != asked.sha256:
        raise WrongBytes(_differs(asked.path, found, asked.sha256))
    os.replace(part, asked.path)
    _write_stamp(asked.path, found)
    progress(arrival.bytes, asked.bytes or arrival.bytes)
    return asked.path


def _refused_by_disk(asked: Wanted, error: OSError) -> FetchFailed:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        why, remedy = f"the disk is full ({error.strerror})", "free some space"
    else:
        why, remedy = f"it cannot be written ({error.strerror})", "make the folder writable"
    return FetchFailed(f"{asked.path}: {why}; {remedy}, or set {HOME_VARIABLE} to another folder, and pull again")


def _undelivered(asked: Wanted, failures: Sequence[str]) -> str:
    tried = "".join(f"\n  - {failure}" for failure in failures) or "\n  - nothing: mirrors are switched off"
    return (
        f"{asked.spec} could not be fetched; tried:{tried}\nCheck the network and run `twostroke pull {asked.spec}` "
        f"again, or give the path of a file you have."
    )
