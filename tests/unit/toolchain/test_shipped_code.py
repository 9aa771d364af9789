"""Machine code that came with the package: when it serves, and when it must not."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gemmlab.core.errors import NoCompilerError
from gemmlab.core.program import Artifact, Program
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.toolchain import cache, nvdisasm, nvrtc
from gemmlab.toolchain import shipped_code as shipped
from gemmlab.toolchain.build_cuda import build, ship
from gemmlab.toolchain.cubin import digest
from gemmlab.toolchain.line_tables import read_line_tables
from support.cuda_source import needs_compiler, program

pytestmark = needs_compiler

SOURCE = '#include "by.cuh"\ntemplate <int T> __global__ void scale(float* x) {\n  x[threadIdx.x] *= T * BY;\n}\n'
HEADERS = {"by.cuh": "#define BY 2\n"}


def scale(by: int = 3, source: str = SOURCE, arch: str = "sm_90", **facts: Any) -> Program:
    return program(source, f"scale<{by}>", arch, **{"headers": HEADERS, **facts})


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Artifact]:
    """A folder as a wheel has it, with one kernel in it; and what the compiler and the disassembler made of that."""
    folder = tmp_path_factory.mktemp("machine_code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GEMMLAB_CACHE_DIR", str(folder / "cache"))
        ship(scale(), folder)
        made = build(scale())
        return folder, replace(made, texts=dict(made.texts))


@pytest.fixture
def installed(package: tuple[Path, Artifact], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That package, an empty cache, and neither compiler nor disassembler."""
    return install(package[0], tmp_path, monkeypatch)


def install(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make `folder` the package's, take compiler and disassembler away, and return the folder of an empty cache."""

    def missing() -> str:
        raise NoCompilerError("no CUDA compiler: install one")

    monkeypatch.setattr(shipped, "FOLDER", folder)
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(nvrtc, "compiler", missing)
    monkeypatch.setattr(nvdisasm, "tool", missing)
    return tmp_path / "cache"


@pytest.mark.in_turns(20)
def test_it_is_what_was_compiled(installed: Path, package: tuple[Path, Artifact]) -> None:
    made, found = package[1], build(scale(path="/here/probe.cu"))
    assert (found.code, found.digest, found.entry) == (made.code, made.digest, made.entry)
    assert found.compiler == made.compiler
    assert found.resources == made.resources
    assert set(found.texts) == {"log", "sass"}
    assert '"/here/probe.cu", line 3' in found.texts["sass"]
    assert not list(installed.glob("*"))


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_line_tables_are_shipped_for_all_and_ptx_for_the_default(
    arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "with a compiler"))
    asked = scale(arch=arch)
    ship(asked, tmp_path / "package")
    made = build(asked)
    text = made.texts["sass"]
    install(tmp_path / "package", tmp_path, monkeypatch)
    found = build(asked)
    ours, theirs = (read_line_tables(one.code, "scale") for one in (found, made))
    assert theirs.ptx
    assert ours.ptx == (theirs.ptx if arch == "sm_90" else ())
    assert [one.source for one in ours.functions.values()] == [one.source for one in theirs.functions.values()]
    assert found.texts["sass"] == text
    assert digest(found.code, "scale") == found.digest == made.digest


@pytest.mark.in_turns(20)
@pytest.mark.usefixtures("installed")
def test_the_emulator_loads_it() -> None:
    device = EmulatedDevice("sm_90")
    assert device.load(device.build(scale())).artifact.resources["registers"] > 0


@pytest.mark.in_turns(20)
@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "changed",
    [
        scale(4),
        scale(source=SOURCE.replace("*=", "+=")),
        scale(headers={"by.cuh": "#define BY 3\n"}),
        scale(options=("-DMORE",)),
        scale(arch="sm_80"),
    ],
    ids=["configuration", "source", "header", "option", "architecture"],
)
def test_for_anything_else_a_compiler_is_needed(changed: Program) -> None:
    told = r"^no CUDA compiler: install one; .* is not in .* nor in the code of gemmlab \(its own kernels .* sm_90\)$"
    with pytest.raises(NoCompilerError, match=told):
        build(changed)


@pytest.mark.in_turns(20)
@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("damage", [b"", b"x" * 300, None], ids=["empty", "foreign", "truncated"])
def test_damaged_code_is_never_run(package: tuple[Path, Artifact], damage: bytes | None) -> None:
    (path,) = package[0].glob("sm_90/*.xz")
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[:-100] if damage is None else damage)
        with pytest.raises(NoCompilerError):
            build(scale())
    finally:
        path.write_bytes(whole)


@pytest.mark.usefixtures("installed")
def test_a_python_without_lzma_says_that_a_compiler_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build(scale()).digest
    monkeypatch.setitem(sys.modules, "lzma", None)
    with pytest.raises(NoCompilerError):
        build(scale())


def test_the_cache_comes_first(
    installed: Path, package: tuple[Path, Artifact], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(package[0] / "cache"))
    monkeypatch.setattr(shipped, "find", lambda *_: pytest.fail("it was not needed"))
    assert "ptx" in build(scale()).texts
    assert not installed.exists()


def test_with_a_compiler_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(shipped, "find", lambda *_: pytest.fail("it was not needed"))
    assert "ptx" in build(scale()).texts


def test_where_nothing_was_shipped_nothing_is_said_of_it(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "none")
    with pytest.raises(NoCompilerError, match=rf"^no CUDA compiler: install one; .* is not in {installed}$"):
        build(scale())


def test_texts_that_are_packed_later_are_not_packed_twice(package: tuple[Path, Artifact]) -> None:
    made = package[1]
    assert cache.decode(cache.encode(made, level=0)) == made
    assert len(cache.encode(made, level=0)) > len(cache.encode(made))


@pytest.mark.in_turns(20)
def test_code_that_was_never_disassembled_is_shipped_from_the_cache(
    package: tuple[Path, Artifact], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "cache"))
    assert build(scale()).code
    assert not [*(tmp_path / "cache").rglob("*.sass")]
    assert ship(scale(), tmp_path / "wheel").read_bytes() == next(package[0].rglob("*.xz")).read_bytes()
