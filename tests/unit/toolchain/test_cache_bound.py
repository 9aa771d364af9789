"""The bound of the cache: the least recently used goes first, readers are not disturbed, foreign files stay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core.program import Artifact
from gemmlab.toolchain import cache, cache_bound, private_files

HOUR_NS = 3600 * 10**9


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache_bound, "_added", cache_bound._LOOK_EVERY)
    tmp_path.chmod(0o700)
    return tmp_path


def artifact(number: int, nbytes: int = 1000) -> Artifact:
    return Artifact("k", "object", "cpu", "k", bytes([number]) * nbytes, "", "test")


def key(number: int) -> str:
    return cache.key_of(str(number))


def fill(folder: Path, count: int) -> None:
    """Store artifacts, the first one used longest ago."""
    for number in range(count):
        assert cache.store(key(number), artifact(number))
        used = time.time_ns() - (count - number) * 2 * HOUR_NS
        os.utime(folder / f"{key(number)}.bin", ns=(used, used))


def test_what_was_used_least_recently_goes_first(folder: Path) -> None:
    fill(folder, 6)
    assert cache.load(key(0)) is not None  # used now
    each = cache_bound.size(folder) // 6
    removed = cache_bound.prune(folder, 3 * each)
    assert removed.files == 3
    assert [number for number in range(6) if cache.load(key(number))] == [0, 4, 5]


def test_the_cache_keeps_itself_under_the_bound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache_bound.VARIABLE, "20k")
    monkeypatch.setattr(cache_bound, "_LOOK_EVERY", 1)
    for number in range(60):
        cache.store(key(number), artifact(number))
        assert cache_bound.size(folder) <= 20_000
    assert cache.load(key(59)) is not None


@pytest.mark.parametrize(
    ("text", "nbytes"), [("", 2 * 10**9), ("500M", 5 * 10**8), ("1.5 GB", 15 * 10**8), ("7", 7), ("none", None)]
)
def test_a_variable_sets_the_bound(monkeypatch: pytest.MonkeyPatch, text: str, nbytes: int | None) -> None:
    monkeypatch.setenv(cache_bound.VARIABLE, text)
    assert cache_bound.limit() == nbytes


def test_a_bound_that_is_no_size_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache_bound.VARIABLE, "plenty")
    cache_bound._parsed.cache_clear()
    with pytest.warns(RuntimeWarning, match="'plenty' is no size: write 500M"):
        assert cache_bound.limit() == cache_bound.DEFAULT_LIMIT


def test_only_what_the_cache_wrote_is_removed(folder: Path) -> None:
    fill(folder, 2)
    foreign = folder / "thesis.tex"
    foreign.write_text("mine")
    deeper = folder / "photos"
    deeper.mkdir()
    (deeper / f"{key(9)}.bin").write_text("mine, too")
    headers = folder / "cuda-headers-13.5.37"
    headers.mkdir()
    (headers / "cuda.h").write_text("#pragma once")
    fresh, stale = folder / f".new-{'0' * 16}", folder / f".new-{'1' * 16}"
    for temporary in (fresh, stale):
        temporary.write_text("half")
    os.utime(stale, (0, 0))
    assert cache_bound.prune(folder, 0).files == 3  # both artifacts and the old temporary file
    assert fresh.exists()
    assert (headers / "cuda.h").exists()
    cache_bound.clear(folder)
    assert not (headers / "cuda.h").exists()
    assert foreign.read_text() == "mine"
    assert (deeper / f"{key(9)}.bin").exists()


def test_a_file_that_goes_while_it_is_read_is_read_to_its_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(folder, 1)
    noted = private_files._note_use

    def removed_meanwhile(file: int, facts: os.stat_result) -> None:
        noted(file, facts)
        cache_bound.clear(folder)

    monkeypatch.setattr(private_files, "_note_use", removed_meanwhile)
    found = cache.load(key(0))
    assert found is not None
    assert found.code == artifact(0).code
    assert cache.load(key(0)) is None


@pytest.mark.in_turns(20)
def test_processes_read_write_and_remove_at_once(folder: Path) -> None:
    program = """
import sys
from gemmlab.core.program import Artifact
from gemmlab.toolchain import cache, cache_bound
cache_bound._LOOK_EVERY = 1
for turn in range(150):
    number = turn * int(sys.argv[1]) % 25
    code = bytes([number]) * 2000
    found = cache.load(cache.key_of(str(number)))
    assert found is None or found.code == code, number
    if found is None:
        cache.store(cache.key_of(str(number)), Artifact("k", "object", "cpu", "k", code, "", "test"))
"""
    environment = {**os.environ, cache_bound.VARIABLE: "30k"}
    started = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", program, str(step)], env=environment)
        for step in (3, 7, 11)
    ]
    assert [process.wait(timeout=100) for process in started] == [0, 0, 0]
    assert cache_bound.size(folder) <= 40_000


def test_the_command_line_prunes_and_clears(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache_bound.VARIABLE, "none")
    fill(folder, 4)
    monkeypatch.setenv(cache_bound.VARIABLE, "3000")
    pruned = json.loads(CliRunner().invoke(build_app(), ["compile", "--prune", "--json"]).stdout)
    assert (pruned["limit_bytes"], pruned["files"]) == (3000, 2)
    assert pruned["left"] <= 3000
    cleared = CliRunner().invoke(build_app(), ["compile", "--clear"])
    assert "2 files removed" in cleared.stdout
    assert cache_bound.size(folder) == 0
    assert CliRunner().invoke(build_app(), ["compile", "naive", "--clear"]).exit_code == 2
