"""The disassembly of cubins in the cache: when it is made, and what a damaged or foreign file does."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from gemmlab.core.errors import CompileError, NoCompilerError
from gemmlab.core.program import Program
from gemmlab.precompile import cubins
from gemmlab.toolchain import disassembly, nvdisasm, nvrtc
from gemmlab.toolchain.build_cuda import build
from support.cuda_source import needs_compiler, program

Reads = list[tuple[bytes, str]]


@pytest.fixture(autouse=True)
def own_cache(folder: Path) -> Path:
    return folder


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Codes that were disassembled, with the kernel's name; the text has both, and a character that is not ASCII."""
    noted: Reads = []

    def disassemble(code: bytes, kernel: str) -> str:
        noted.append((code, kernel))
        return f"µ {kernel}: {code!r}\n" * 50

    monkeypatch.setattr(nvdisasm, "disassemble", disassemble)
    return noted


def probe(path: str = "probe.cu") -> Program:
    return program('extern "C" __global__ void f(int* p) {\n  *p = 4;\n}\n', "f", path=path)


def without_tools(patch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise NoCompilerError("it is not here: install it")

    patch.setattr(nvrtc, "compiler", missing)
    patch.setattr(nvdisasm, "tool", missing)


def test_a_text_is_made_once(reads: Reads, folder: Path) -> None:
    first = disassembly.text_of(b"code", "mine")
    assert disassembly.text_of(b"code", "another name") == first
    assert disassembly.text_of(b"other", "mine") != first
    assert reads == [(b"code", "mine"), (b"other", "mine")]
    kept = list(folder.iterdir())
    assert [file.suffix for file in kept] == [".sass"] * 2
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in kept)


@pytest.mark.parametrize(
    "damage",
    [lambda _: b"", lambda data: data[:-1], lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], lambda _: b"x"],
    ids=["empty", "truncated", "flipped", "short"],
)
def test_a_damaged_text_is_made_again(reads: Reads, folder: Path, damage: Callable[[bytes], bytes]) -> None:
    first = disassembly.text_of(b"code", "mine")
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert disassembly.text_of(b"code", "mine") == first
    assert file.read_bytes() == whole
    assert len(reads) == 2


def test_a_renamed_text_is_not_taken_for_that_of_other_code(reads: Reads, folder: Path) -> None:
    disassembly.text_of(b"code", "mine")
    (of_code,) = folder.iterdir()
    other = disassembly.text_of(b"other", "mine")
    (of_other,) = set(folder.iterdir()) - {of_code}
    shutil.copyfile(of_code, of_other)
    assert disassembly.text_of(b"other", "mine") == other
    assert len(reads) == 3


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no such permissions")
def test_a_text_that_others_could_have_written_is_not_read(reads: Reads, folder: Path) -> None:
    disassembly.text_of(b"code", "mine")
    (file,) = folder.iterdir()
    file.chmod(0o666)
    with pytest.warns(RuntimeWarning, match="make it yours alone"):
        disassembly.text_of(b"code", "mine")
    assert len(reads) == 2


def test_a_failure_is_not_kept(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def fails(_code: bytes, kernel: str) -> str:
        raise CompileError(f"{kernel}: damaged")

    monkeypatch.setattr(nvdisasm, "disassemble", fails)
    for _ in range(2):
        with pytest.raises(CompileError, match="mine: damaged"):
            disassembly.text_of(b"code", "mine")
    assert not folder.exists()


@needs_compiler
def test_nothing_is_disassembled_until_the_text_is_read(reads: Reads) -> None:
    first, again = build(probe("/one/probe.cu")), build(probe("/two/probe.cu"))
    assert first.texts["ptx"]
    assert reads == []
    assert first.texts["sass"] == again.texts["sass"]
    assert reads == [(first.code, "probe")]


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_cache_that_was_filled_ahead_of_time_has_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = probe()
    cubins.run(cubins.Job("probe", {}, asked))
    without_tools(monkeypatch)
    assert '//## File "probe.cu", line 2' in build(asked).texts["sass"]


@needs_compiler
def test_without_a_disassembler_the_error_names_the_kernel_and_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = build(probe())
    without_tools(monkeypatch)
    assert set(made.texts) == {"ptx", "log"}
    with pytest.raises(NoCompilerError, match=r"^probe: it is not here: install it"):
        made.texts["sass"]
