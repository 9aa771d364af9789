"""The package's machine code for GPUs: found for exactly its source, and never for another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain import code_archive
from gemmlab.toolchain.build_cuda import archived, build, compile_here, for_gpu, source_of
from gemmlab.toolchain.elf import read_elf
from support.cuda_source import needs_compiler, program

pytestmark = needs_compiler

SOURCE = '#include "by.cuh"\ntemplate <int T> __global__ void scale(float* x) {\n  x[threadIdx.x] *= T * BY;\n}\n'


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "by.cuh").write_text("#define BY 2\n")
    return tmp_path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An archive of its own, and nothing remembered of another one."""
    monkeypatch.setattr(code_archive, "FOLDER", tmp_path / "gpu_code")
    monkeypatch.delenv(code_archive.SWITCH, raising=False)
    yield tmp_path / "gpu_code"
    _forget()


def _forget() -> None:
    code_archive._index.cache_clear()
    code_archive._codes.cache_clear()


def scale(sources: Path, by: int = 3, text: str = SOURCE) -> Program:
    return program(text, f"scale<{by}>", path=str(sources / "probe.cu"), options=(f"-I{sources}",))


def written(
    folder: Path, *programs: Program, kept: dict[str, Artifact] | None = None, lines: bool = False
) -> list[Artifact]:
    members = [code_archive.Made(source_of(one), compile_here(one)[0], lines) for one in programs]
    index = code_archive.put(folder, "sm_90", programs[0].kernel, members, kept or {})
    code_archive.write_index(folder, "sm_90", {programs[0].kernel: index})
    _forget()
    return [member.artifact for member in members]


@pytest.mark.in_turns(20)
def test_it_is_what_was_compiled_without_what_no_gpu_reads(sources: Path, folder: Path) -> None:
    programs = [scale(sources), scale(sources, 5)]
    for one, made in zip(programs, written(folder, *programs), strict=True):
        found = for_gpu(one)
        assert (found.digest, found.entry, found.compiler) == (made.digest, made.entry, made.compiler)
        assert (found.resources, found.texts) == (made.resources, {})
        was, now = read_elf(made.code, "was").sections, read_elf(found.code, "now").sections
        for before, after in zip(was, now, strict=True):
            unread = before.name.startswith((".nv_debug", ".debug_line", ".debug_str"))
            assert after == (replace(before, data=bytes(len(before.data))) if unread else before)
    assert any(one.name == ".debug_line" and any(one.data) for one in read_elf(build(programs[0]).code, "x").sections)


def test_line_tables_stay_where_they_are_wanted(sources: Path, folder: Path) -> None:
    (made,) = written(folder, scale(sources), lines=True)
    was, now = ({one.name: one.data for one in read_elf(code, "code").sections}
                for code in (made.code, for_gpu(scale(sources)).code))  # fmt: skip
    assert now[".debug_line"] == was[".debug_line"] != bytes(len(was[".debug_line"]))
    assert not any(now[".nv_debug_ptx_txt"])


def test_it_is_not_found_for_anything_else(sources: Path, folder: Path) -> None:
    written(folder, scale(sources))
    assert archived(scale(sources)) is not None
    assert archived(scale(sources, 4)) is None
    assert archived(scale(sources, text=SOURCE.replace("*=", "+="))) is None
    assert archived(replace(scale(sources), target="sm_80")) is None
    assert archived(replace(scale(sources), options=(f"-I{sources}", "-DMORE"))) is None


def test_an_edited_header_makes_it_stale(sources: Path, folder: Path) -> None:
    written(folder, scale(sources))
    (sources / "by.cuh").write_text("#define BY 3\n")
    assert archived(scale(sources)) is None
    assert for_gpu(scale(sources)).digest != ""


def test_compilation_can_be_asked_for(sources: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(folder, scale(sources))
    monkeypatch.setenv(code_archive.SWITCH, "1")
    assert archived(scale(sources)) is None
    assert "ptx" in for_gpu(scale(sources)).texts


@pytest.mark.parametrize("damage", ["file", "code"])
def test_damaged_code_is_not_used(sources: Path, folder: Path, damage: str) -> None:
    import lzma

    written(folder, scale(sources))
    place = next(folder.glob("sm_90/*.xz"))
    data = place.read_bytes()
    place.write_bytes(data[:-40] if damage == "file" else lzma.compress(_other_machine_word(lzma.decompress(data))))
    _forget()
    assert archived(scale(sources)) is None


def _other_machine_word(data: bytes) -> bytes:
    """The archive with every byte of one machine word (an unconditional exit) changed."""
    exit_word = bytes.fromhex("4d79000000000000")
    assert exit_word in data
    return data.replace(exit_word, bytes(8))


def test_an_edited_comment_leaves_the_codes_file_as_it_was(sources: Path, folder: Path) -> None:
    written(folder, scale(sources))
    place = next(folder.glob("sm_90/*.xz"))
    was = place.read_bytes()
    edited = scale(sources, text=SOURCE + "\n// more\n")
    written(folder, edited, kept=dict(code_archive.codes_of("sm_90", edited.kernel)))
    assert place.read_bytes() == was
    assert archived(edited) is not None
    assert archived(scale(sources)) is None


def test_its_contents_are_counted(sources: Path, folder: Path) -> None:
    (one,) = written(folder, scale(sources))
    found = code_archive.contents()["sm_90"]
    assert (found["instances"], found["compilers"]) == (1, [one.compiler])
    assert found["bytes"] == sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
