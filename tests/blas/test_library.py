"""The library that `gemmlab blas` writes, in programs without Python: the reference BLAS's own tests, and one in C."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gemmlab.blas import write_library
from gemmlab.cli.app import build_app
from gemmlab.core.errors import CompileError, UsageError

PROGRAM = Path(__file__).with_name("program.c")
SIZES = "0 1 2 3 7 17 40"
"""Beside the program's own: more than a tile of any width in each direction, and parts of one."""
COMPILER = shutil.which("cc")

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="shared libraries are made on Linux only"),
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_library(tmp_path_factory.mktemp("library") / "libgemmlab_blas.so")


def reference(name: str) -> Path:
    """One of the reference BLAS's test programs."""
    found = next(iter(sorted(Path("/usr/lib").glob(f"*/blas/{name}"))), None)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian and Ubuntu: apt install libblas-test)")
    return found


def sgemm_alone(text: str) -> str:
    """A reference program's input, with more sizes and no other routine than the product."""
    lines = text.splitlines()
    (at,) = (index for index, line in enumerate(lines) if "VALUES OF N" in line and "NUMBER" not in line)
    lines[at - 1 : at + 1] = [f"{len(SIZES.split())} NUMBER OF VALUES OF N", f"{SIZES} VALUES OF N"]
    words = ("ssymm", "strmm", "strsm", "ssyrk", "ssyr2k")
    return "\n".join(line for line in lines if not any(word in line.lower() for word in words)) + "\n"


def run_reference(name: str, data: str, preload: Path, folder: Path) -> str:
    """All that the program says when `preload` comes before the system's BLAS, and who was bound to whom."""
    program = reference(name)
    environment = {**os.environ, "LD_PRELOAD": str(preload), "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": "bound"}
    done = subprocess.run(
        [program], input=sgemm_alone(program.with_name(data).read_text()), cwd=folder, env=environment,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    summaries = [path.read_text() for path in folder.glob("*.out")]
    return "\n".join([done.stdout, *summaries])


def bound(folder: Path, user: Path, symbol: str) -> str:
    """The file that `user`'s reference to a symbol was bound to, by its last name."""
    lines = (line for path in folder.glob("bound.*") for line in path.read_text().splitlines())
    (found,) = {
        line.split(" to ")[1].split(" [")[0] for line in lines if f"{user} [0]" in line and f"`{symbol}'" in line
    }
    return Path(found).name


def test_the_reference_blas_tests_pass(library: Path, tmp_path: Path) -> None:
    said = run_reference("xblat3s", "sblat3.in", library, tmp_path)
    assert "SGEMM  PASSED THE TESTS OF ERROR-EXITS" in said
    assert "SGEMM  PASSED THE COMPUTATIONAL TESTS ( 27783 CALLS)" in said
    assert "FAIL" not in said
    assert "***" not in said
    program = reference("xblat3s")
    assert bound(tmp_path, program, "sgemm_") == library.name
    assert bound(tmp_path, library, "xerbla_") == program.name


def test_the_reference_cblas_tests_pass(library: Path, tmp_path: Path) -> None:
    said = run_reference("xscblat3", "sin3", library, tmp_path)
    assert "cblas_sgemm  PASSED THE TESTS OF ERROR-EXITS" in said
    for layout in ("COLUMN-MAJOR", "ROW-MAJOR   "):
        assert f"cblas_sgemm  PASSED THE {layout} COMPUTATIONAL TESTS ( 27783 CALLS)" in said
    assert "FAIL" not in said
    assert "***" not in said
    program = reference("xscblat3")
    assert bound(tmp_path, program, "cblas_sgemm") == library.name
    assert bound(tmp_path, library, "cblas_xerbla") == program.name
    assert bound(tmp_path, library, "RowMajorStrg") == program.name


def test_the_reference_blas_tests_can_fail(tmp_path: Path) -> None:
    (tmp_path / "wrong.c").write_text("void sgemm_(void) {}\n")
    wrong = tmp_path / "wrong.so"
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", wrong, tmp_path / "wrong.c"], check=True)
    said = run_reference("xblat3s", "sblat3.in", wrong, tmp_path)
    assert "SGEMM  FAILED THE TESTS OF ERROR-EXITS" in said
    assert "SGEMM  FAILED ON CALL NUMBER" in said


@pytest.fixture(scope="module")
def program(library: Path) -> Path:
    """The program in C, linked with the library."""
    made = library.with_name("program")
    options = ["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", f"-Wl,-rpath,{library.parent}"]
    subprocess.run([str(COMPILER), *options, "-o", made, PROGRAM, library], check=True)
    return made


def say(program: Path, what: str, **environment: str) -> str:
    done = subprocess.run(
        [program, what], env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_of_a_program_at_once_and_the_librarys_own(program: Path, threads: int) -> None:
    said = say(program, "threads", GEMMLAB_NUM_THREADS=str(threads))
    assert said == f"0 wrong, {threads} threads\n"


def test_a_program_that_forks(program: Path) -> None:
    assert say(program, "fork", GEMMLAB_NUM_THREADS="2") == "0 wrong, status 0\n"


def test_without_memory_for_a_workspace_the_product_is_right(program: Path) -> None:
    assert say(program, "bare") == "0 0 wrong\n"


ERRORS = """\
SGEMM  1
SGEMM  4
SGEMM  8
cblas_sgemm 1 layout is 100
cblas_sgemm 2 TransA is 7
cblas_sgemm 3 TransB is 110
cblas_sgemm 4
cblas_sgemm 5
cblas_sgemm 9
cblas_sgemm 11
cblas_sgemm 14
cblas_sgemm 9
5 5 5 5
"""


def test_a_programs_own_handlers_are_called_and_c_is_left_alone(program: Path) -> None:
    assert say(program, "errors").replace(" \n", "\n") == ERRORS


@pytest.mark.in_turns(20)
def test_an_object_file_is_linked_into_a_program(tmp_path: Path) -> None:
    made = write_library(str(tmp_path / "blas.o"))
    subprocess.run([str(COMPILER), "-pthread", "-o", tmp_path / "program", PROGRAM, made], check=True)
    assert say(tmp_path / "program", "errors").replace(" \n", "\n") == ERRORS
    assert say(tmp_path / "program", "threads", GEMMLAB_NUM_THREADS="2") == "0 wrong, 2 threads\n"


@pytest.mark.in_turns(20)
def test_the_command_writes_it_and_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def blas(*arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(build_app(), ["blas", *arguments])
        return result.exit_code, result.stdout, result.stderr

    path = tmp_path / "lib.so"
    path.write_text("something else")
    code, out, _ = blas("--emit", str(path), "--json")
    assert code == 0
    assert f'"path": "{path}"' in out
    assert path.read_bytes().startswith(b"\x7fELF")
    assert list(tmp_path.iterdir()) == [path]
    for name, said in (("x.dll", "must end with .so"), ("no/x.so", "there is no folder")):
        code, out, err = blas("--emit", str(tmp_path / name))
        assert (code, out) == (2, "")
        assert said in err
    code, _, err = blas("--emit", "/proc/x.o")
    assert code == 2
    assert "/proc/x.o cannot be written" in err
    code, _, err = blas("--emit", str(tmp_path / "x.o"), "--lanes", "5")
    assert code == 2
    assert "vectors of 5 float32: there are 4, 8, 16" in err
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "which", lambda _name: None)
        patch.delenv("CC", raising=False)
        with pytest.raises(
            UsageError, match=r"no C compiler to link it with; set CC, or write .*\.o, which needs none"
        ):
            write_library(path)
    for compiler, message in (
        ("false", "could not be linked by false"),
        ("no-such-compiler", "could not be run: No such"),
    ):
        monkeypatch.setenv("CC", compiler)
        with pytest.raises(CompileError, match=message):
            write_library(path)
    assert list(tmp_path.iterdir()) == [path]
