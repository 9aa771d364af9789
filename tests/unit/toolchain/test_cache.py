"""The store of compiled code: whole files or none, never in the way, never under a name that is not theirs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gemmlab
from gemmlab.core.program import Artifact
from gemmlab.core.sources import Sources
from gemmlab.devices.cpu import CpuDevice
from gemmlab.toolchain import cache
from support.compiled_code import ARTIFACT, build, program

pytestmark = pytest.mark.usefixtures("folder")

SOURCE = Path(gemmlab.__file__).parent


@given(st.binary(max_size=200), st.text(max_size=20), st.lists(st.text(max_size=9), max_size=3))
def test_what_is_decoded_is_what_was_encoded(code: bytes, name: str, exports: list[str]) -> None:
    artifact = Artifact(name, "object", "t", "e", code, "d", "c", {"n": 2**40}, tuple(exports))
    assert cache.decode(cache.encode(artifact)) == artifact


@given(st.data())
def test_no_damage_goes_unseen(data: st.DataObject) -> None:
    whole = cache.encode(ARTIFACT)
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    for damaged in (bytes(flipped), whole[:at], whole + b"x"):
        with pytest.raises(ValueError, match="damaged"):
            cache.decode(damaged)


def test_keys_depend_on_every_part_and_on_where_parts_end() -> None:
    keys = [cache.key_of(*parts) for parts in (("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("ab", "d"))]
    assert len(set(keys)) == len(keys)


def test_an_artifact_comes_back_from_a_private_folder(folder: Path) -> None:
    assert cache.load("key") is None
    assert cache.store("key", ARTIFACT)
    assert cache.load("key") == ARTIFACT
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in folder.iterdir()] == ["key.bin"]
    assert (folder / "key.bin").stat().st_mode & 0o077 == 0


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"gemmlab artifact 1\n",
        b"something else entirely",
        cache.encode(ARTIFACT)[:-1],
        cache.encode(ARTIFACT).replace(b"artifact 1", b"artifact 0"),
        cache.encode(ARTIFACT)[:80] + b"\x00" + cache.encode(ARTIFACT)[81:],
    ],
    ids=["empty", "header only", "foreign", "truncated", "other version", "damaged"],
)
def test_a_file_that_is_not_whole_is_made_again(folder: Path, compiled: list[str], content: bytes) -> None:
    first = build()
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(content)
    assert build() == first
    assert len(compiled) == 2
    assert path.read_bytes() == whole
    assert build() == first
    assert len(compiled) == 2


def test_a_warm_start_does_not_compile(compiled: list[str]) -> None:
    assert build() == build() == build()
    assert len(compiled) == 1


def test_the_folder_can_be_moved(folder: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    first = build()
    folder.rename(folder.with_name("elsewhere"))
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(folder.with_name("elsewhere")))
    assert build() == first
    assert len(compiled) == 1


@pytest.mark.slow
@pytest.mark.parametrize("home", ["HOME unset", "HOME not from the root"])
def test_without_a_home_there_is_one_warning_and_everything_works(home: str, tmp_path: Path) -> None:
    """A container with a user number that has no entry anywhere."""
    process = start(
        "import os, pwd, warnings\n"
        "def nobody(_number): raise KeyError('no such user')\n"
        "pwd.getpwuid = nobody\n"
        "for name in ('HOME', 'XDG_CACHE_HOME', 'GEMMLAB_CACHE_DIR'): os.environ.pop(name, None)\n"
        f"if {home != 'HOME unset'}: os.environ['HOME'] = 'there'\n"
        f"os.chdir({str(tmp_path)!r})\n"
        "import numpy as np, gemmlab\nfrom gemmlab.timing import inventory\n"
        "a = np.ones((40, 50), np.float32)\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    print(gemmlab.gemm(a, a.T).sum(), gemmlab.sum(a), gemmlab.gemm(a, a.T, threads=2).sum())\n"
        "print(*{str(one.message) for one in said})\n"
        "print(inventory.cache_folder()['exists'])\n"
    )
    told = "compiled kernels cannot be cached: there is no home; set HOME or GEMMLAB_CACHE_DIR; continuing without"
    assert process.communicate(timeout=100) == (f"80000.0 2000.0 80000.0\n{told}\nFalse\n", "")
    assert not list(tmp_path.iterdir())


def test_nothing_is_kept_without_a_fingerprint(folder: Path, compiled: list[str]) -> None:
    unknown = replace(program(), fingerprint="")
    assert CpuDevice().build(unknown) == CpuDevice().build(unknown)
    assert len(compiled) == 2
    assert not folder.exists()


def test_a_source_that_changed_since_it_was_noted_has_no_fingerprint(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.py", "b.py")]
    for path in paths:
        path.write_text("x = 1\n")
    first = Sources(paths).fingerprint()
    assert Sources(reversed(paths)).fingerprint() == first != ""
    sources = Sources(paths)
    assert sources.fingerprint() == first
    paths[1].write_text("x = 2\n")
    assert sources.fingerprint() == ""
    assert Sources(paths).fingerprint() not in ("", first)
    paths[1].unlink()
    assert Sources(paths[:1]).fingerprint() not in ("", first)
    assert sources.fingerprint() == ""


def start(code: str, tree: Path = SOURCE.parent) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(tree)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("edited", ["codegen/packing.py", "kernels/cpu_kernel.py", "kernels/gemm_cpu/naive_ijk.py"])
def test_code_from_a_source_that_changed_under_the_process_is_not_kept(
    folder: Path, tmp_path: Path, edited: str
) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(SOURCE, tree / "gemmlab", ignore=shutil.ignore_patterns("__pycache__"))
    process = start(
        "from pathlib import Path\n"
        "from gemmlab.kernels.catalog import find_kernel\nfrom gemmlab.devices.cpu import CpuDevice\n"
        "kernel, device = find_kernel('naive_ijk'), CpuDevice()\n"
        f"path = Path({str(tree / 'gemmlab' / edited)!r})\n"
        "path.write_text(path.read_text() + '# edited')\n"
        "assert device.build(kernel.program(kernel.configure(), device.target({}))).code\n",
        tree,
    )
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0
    assert not folder.exists()


@pytest.mark.slow
def test_two_processes_that_compile_at_once_and_a_third_that_need_not(folder: Path) -> None:
    code = "import numpy as np, gemmlab\na = np.ones((40, 50), np.float32)\nprint(gemmlab.gemm(a, a.T).sum())\n"
    both = [start(code), start(code)]
    assert [process.communicate(timeout=60) for process in both] == [("80000.0\n", "")] * 2
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 1
    assert names[0].endswith(".bin")
    third = start(
        "from gemmlab.ir import build\n"
        "def fail(*_args, **_options): raise SystemExit('compiled')\n"
        "build.compile_object = fail\n" + code
    )
    assert third.communicate(timeout=60) == ("80000.0\n", "")
