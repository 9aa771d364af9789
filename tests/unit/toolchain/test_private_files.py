"""Code that another user put into the cache is never loaded, whatever is done to folders and names meanwhile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab.core.program import Artifact
from gemmlab.toolchain import cache, cuda_headers, private_files
from gemmlab.toolchain.private_files import UntrustedError

OTHER = 65534
NAME = "a" * 64
OURS = Artifact("k", "object", "x86_64:8:cpu", "entry", b"ours", "d" * 64, "llvm 1")
FOREIGN = replace(OURS, code=b"foreign")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX owners and modes")
as_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="plays another user")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can look into."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of the test."""
    made = place / "cache"
    made.mkdir(0o700)
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(made))
    cache._warn.cache_clear()
    return made


def plant(folder: Path, artifact: Artifact = FOREIGN) -> Path:
    file = folder / f"{NAME}.bin"
    file.write_bytes(cache.encode(artifact, key=NAME))
    file.chmod(0o600)
    return file


@as_root
def test_a_file_of_another_user_is_not_loaded_and_gives_way(folder: Path) -> None:
    """Planted while the folder was open to others; then its owner did as the warning says."""
    folder.chmod(0o777)
    os.chown(plant(folder), OTHER, OTHER)
    folder.chmod(0o755)
    with pytest.warns(RuntimeWarning, match=rf"{NAME}.bin may belong to another user and is not used"):
        assert cache.load(NAME) is None
    assert cache.store(NAME, OURS)
    assert cache.load(NAME) == OURS


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_to_is_not_loaded(folder: Path, mode: int) -> None:
    plant(folder, OURS).chmod(mode)
    with pytest.warns(RuntimeWarning, match="may belong to another user"):
        assert cache.load(NAME) is None


@pytest.mark.parametrize("kind", ["hard link", "soft link", "pipe", "folder"])
def test_what_is_no_file_of_its_own_is_not_loaded(folder: Path, kind: str) -> None:
    file = plant(folder, OURS)
    elsewhere = folder / "elsewhere"
    if kind == "hard link":
        os.link(file, elsewhere)
    else:
        file.rename(elsewhere)
    if kind == "soft link":
        file.symlink_to(elsewhere)
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    with pytest.warns(RuntimeWarning, match="is not used"):
        assert cache.load(NAME) is None


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o702])
def test_a_folder_on_the_way_that_others_can_write_to(place: Path, folder: Path, mode: int) -> None:
    plant(folder, OURS)
    deep = folder.rename(place / "moved")
    place.chmod(mode)
    os.chown(place, -1, OTHER)
    with pytest.raises(UntrustedError, match="lies in a folder that others can write to"):
        private_files.read(deep / f"{NAME}.bin")
    place.chmod(mode | 0o1000)
    assert private_files.read(deep / f"{NAME}.bin"), "of a sticky folder's entries others' cannot be moved"


def test_a_group_of_ones_own_is_nobody_else(place: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(folder, OURS)
    place.chmod(0o775)
    monkeypatch.setattr(private_files, "_own_group", lambda _number: True)
    assert cache.load(NAME) == OURS
    place.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="others can write to"):
        assert cache.load(NAME) is None


@as_root
@pytest.mark.parametrize("which", ["the folder", "one on the way", "a link on the way"])
def test_a_folder_of_another_user_is_not_used(
    place: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    plant(folder, OURS)
    if which == "a link on the way":
        (place / "link").symlink_to(folder)
        monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(place / "link"))
        assert cache.load(NAME) == OURS
        os.lchown(place / "link", OTHER, OTHER)
    else:
        os.chown(folder if which == "the folder" else place, OTHER, OTHER)
    with pytest.warns(RuntimeWarning, match="is not used"):
        assert cache.load(NAME) is None
    assert not cache.store(NAME, OURS)


def test_links_are_followed_where_nobody_else_could_change_them(
    place: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "deep").mkdir()
    (place / "deep" / "relative").symlink_to("../absolute")
    (place / "absolute").symlink_to(folder)
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(place / "deep" / "relative"))
    assert cache.store(NAME, OURS)
    assert cache.load(NAME) == OURS
    (place / "round").symlink_to("round")
    with pytest.raises(UntrustedError):
        private_files.read(place / "round" / "file")


def test_a_folder_that_is_not_there_is_no_trusted_one(place: Path) -> None:
    with pytest.raises(FileNotFoundError), private_files.folder(place / "missing"):
        pass


@as_root
def test_headers_that_another_user_put_beside_the_compilers_are_not_read(folder: Path) -> None:
    (folder / "headers" / "deep").mkdir(parents=True, mode=0o700)
    header = folder / "headers" / "deep" / "x.h"
    header.write_text("")
    private_files.check_tree(folder / "headers")
    os.chown(header, OTHER, OTHER)
    cuda_headers._trusted.cache_clear()
    with pytest.warns(RuntimeWarning, match="headers may contain another user's files"):
        assert not cuda_headers._trusted(folder / "headers")


PLANT = """
import os, shutil, sys
folder, data = sys.argv[1], bytes.fromhex(sys.argv[2])
os.setgroups([]); os.setgid(65534); os.setuid(65534)
os.umask(0)
name = "a" * 64 + ".bin"
print("go", flush=True)
while True:
    for action in (
        lambda: os.mkdir(folder, 0o755),
        lambda: open(folder + "/new", "wb").write(data),
        lambda: os.chmod(folder + "/new", 0o600),
        lambda: os.rename(folder + "/new", folder + "/" + name),
        lambda: os.remove(folder + "/" + name) if os.stat(folder).st_uid == 65534 else None,
        lambda: os.rmdir(folder),
    ):
        try: action()
        except OSError: pass
"""


@pytest.mark.in_turns(20)
@as_root
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("flips", ["its mode", "its being there"])
def test_no_foreign_file_is_loaded_from_a_folder_that_flips(place: Path, folder: Path, flips: str) -> None:
    place.chmod(0o1777)
    away, over = place / "away", threading.Event()

    def flip() -> None:
        while not over.is_set():
            if flips == "its mode":
                folder.chmod(0o777)
                time.sleep(0.0003)
                folder.chmod(0o700)
            else:
                try:
                    folder.rename(away)
                    time.sleep(0.0003)
                    away.rename(folder)
                except OSError:
                    # The other user's own is there.
                    shutil.rmtree(folder, ignore_errors=True)
                    if away.exists() and not folder.exists():
                        away.rename(folder)
            time.sleep(0.0003)

    planting = subprocess.Popen(
        [sys.executable, "-c", PLANT, str(folder), cache.encode(FOREIGN, key=NAME).hex()],
        stdout=subprocess.PIPE, text=True, cwd="/",
    )  # fmt: skip
    flipping = threading.Thread(target=flip)
    loaded: dict[bytes | None, int] = {}
    try:
        assert planting.stdout is not None
        assert planting.stdout.readline() == "go\n"
        flipping.start()
        end = time.monotonic() + 3
        while time.monotonic() < end:
            found = cache.load(NAME)
            code = None if found is None else found.code
            loaded[code] = loaded.get(code, 0) + 1
            if found is None:
                cache.store(NAME, OURS)
    finally:
        over.set()
        planting.kill()
        planting.wait()
        assert planting.stdout is not None
        planting.stdout.close()
        flipping.join()
    assert b"foreign" not in loaded
    assert set(loaded) == {None, b"ours"}, "nothing was found, or nothing was refused"
