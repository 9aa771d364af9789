"""Folders of compiled code that are not ours, not writable or full: a warning, and everything works."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
import pytest

import gemmlab
from gemmlab.toolchain import cache
from support.compiled_code import ARTIFACT, build

pytestmark = pytest.mark.usefixtures("folder")


def test_without_a_name_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GEMMLAB_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_dir() == tmp_path / "gemmlab"
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", "~/here")
    assert cache.cache_dir() == Path.home() / "here"


def test_a_folder_that_cannot_be_made_costs_one_warning_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match=r"cannot be cached in .*file/cache.*continuing without") as said:
        first = build()
    assert len(said) == 1
    assert build() == first, "warned again, or another result"


@pytest.mark.in_turns(20)
def test_the_warning_is_at_the_line_that_called_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "file" / "cache"))
    source = "__global__ void mark(int* p) { *p = 1; }"
    with pytest.warns(RuntimeWarning, match="cannot be cached") as said:
        gemmlab.launch(source, "mark", 1, 1, [np.zeros(1, np.int32)], device="emulated")
    assert {warning.filename for warning in said} == {__file__}


def test_a_read_only_folder_is_read_from_and_costs_one_warning_for_what_is_new(
    folder: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def read_only(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, flags, *args, **options)

    first = build()
    monkeypatch.setattr(os, "open", read_only)
    assert build() == first
    assert len(compiled) == 1
    (path,) = folder.iterdir()
    path.unlink()
    with pytest.warns(RuntimeWarning, match=r"cannot be cached in .* \(Read-only file system\); continuing") as said:
        assert [build(), build()] == [first, first]
    assert len(said) == 1
    assert len(compiled) == 3


@pytest.mark.parametrize("step", ["write", "rename"])
def test_a_full_disk_costs_one_warning_and_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_args: Any, **_options: Any) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    class Full:
        def __init__(self, handle: int, _mode: str) -> None:
            os.close(handle)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_error: object) -> None:
            pass

        write = full

    with monkeypatch.context() as patch:
        if step == "write":
            patch.setattr(os, "fdopen", Full)
        else:
            patch.setattr(os, "replace", full)
        with pytest.warns(RuntimeWarning, match="No space left on device") as said:
            first = build()
        assert build() == first, "warned again, or another result"
        assert len(said) == 1
    assert list(folder.iterdir()) == []
    assert build() == first
    assert len(list(folder.iterdir())) == 1


def test_an_interrupted_store_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_args: object, **_options: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache.store("key", ARTIFACT)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_not_used(folder: Path, compiled: list[str], mode: int) -> None:
    build()
    folder.chmod(mode)
    with pytest.warns(RuntimeWarning, match="writable by others and is not used; chmod go-w") as said:
        assert build().kernel == "naive_ijk"
    assert len(said) == 1
    assert len(compiled) == 2
    folder.chmod(0o755)
    build()
    assert len(compiled) == 2


def test_a_folder_of_another_owner_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.store("key", ARTIFACT)
    if os.getuid() == 0:
        os.chown(folder, 65534, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.warns(RuntimeWarning, match="not used"):
        assert cache.load("key") is None


def test_a_file_under_another_name_is_not_loaded(folder: Path) -> None:
    """Names are what is trusted: one who can rename files must not make one kernel's code another's."""
    assert cache.store("key", ARTIFACT)
    (folder / "key.bin").rename(folder / "other.bin")
    assert cache.load("other") is None
    assert not list(folder.iterdir())
