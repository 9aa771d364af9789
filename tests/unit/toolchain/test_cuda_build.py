"""Cubins and the cache: who compiles, who only looks, and what a damaged, moved or foreign cache does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gemmlab.core.errors import CompileError, NoCompilerError
from gemmlab.core.program import Program
from gemmlab.toolchain import cache, nvdisasm, nvrtc
from gemmlab.toolchain.build_cuda import build, compile_here
from support.cuda_source import needs_compiler, program

pytestmark = needs_compiler

SOURCE = "template <int T> __global__ void scale(float* x) {\n  x[threadIdx.x] *= T;\n}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache of the test's own."""
    place = tmp_path / "cache"
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(place))
    cache._warn.cache_clear()
    yield place
    monkeypatch.undo()


def scale(by: int = 3, **facts: Any) -> Program:
    return program(SOURCE, f"scale<{by}>", **facts)


def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise NoCompilerError("no CUDA compiler: install one")

    monkeypatch.setattr(nvrtc, "compiler", missing)


def another_compiler(monkeypatch: pytest.MonkeyPatch, name: str = "NVRTC 13.9.1") -> None:
    monkeypatch.setattr(nvrtc, "compiler", lambda: name)


def files(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.glob(f"*{suffix}"))


@pytest.mark.in_turns(20)
def test_the_second_build_finds_the_first(folder: Path, made: list[str]) -> None:
    first = build(scale())
    assert build(scale()) == first
    assert made == ["scale<3>"]
    assert set(first.texts) == {"ptx", "sass", "log"}
    assert len(files(folder, ".bin")) == len(files(folder, ".ref")) == 1


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "other",
    [
        {"entry": "scale<4>"}, {"target": "sm_80"}, {"options": ("-use_fast_math",)}, {"kernel": "other"},
        {"headers": {"x.cuh": "#define X 1\n"}}, {"emit": lambda: SOURCE + "\n"}, {"path": "other.cu"},
    ],
    ids=["instance", "architecture", "option", "kernel", "header", "source", "file name"],
)  # fmt: skip
def test_whatever_changes_the_artifact_is_in_its_key(made: list[str], other: dict[str, Any]) -> None:
    build(scale())
    build(replace(scale(), **other))
    build(scale())
    assert len(made) == 2


@pytest.mark.in_turns(20)
def test_headers_beside_the_source_are_in_the_key(tmp_path: Path, made: list[str]) -> None:
    (tmp_path / "value.cuh").write_text("#define VALUE 3\n")
    file = tmp_path / "mine.cu"
    file.write_text('#include "value.cuh"\n__global__ void f(int* x) { x[0] = VALUE; }\n')
    asked = program(file.read_text(), "f", path=str(file))
    digests = [build(asked).digest, build(asked).digest]
    (tmp_path / "value.cuh").write_text("#define VALUE 4\n")
    digests += [build(asked).digest]
    assert digests[0] == digests[1] != digests[2]
    assert len(made) == 2


@pytest.mark.in_turns(20)
def test_the_compilers_version_is_in_the_key(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    compile_here(scale())
    another_compiler(monkeypatch)
    assert compile_here(scale())[0].compiler == "NVRTC 13.9.1"
    assert len(made) == 2


@pytest.mark.in_turns(20)
def test_line_information_names_the_file_that_was_asked_with(made: list[str]) -> None:
    here, there = (build(scale(path=f"{place}/scale.cu")) for place in ("/one", "relative/two"))
    assert len(made) == 1
    assert here.code == there.code
    assert '//## File "/one/scale.cu", line 2' in here.texts["sass"]
    assert '//## File "relative/two/scale.cu", line 2' in there.texts["sass"]
    assert '"/one/scale.cu"' in here.texts["ptx"]
    assert "/gemmlab/" not in "".join(here.texts.values())


@pytest.mark.in_turns(20)
def test_a_machine_without_a_compiler_runs_from_a_copied_cache(
    folder: Path, made: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = build(scale(path="/there/scale.cu"))
    folder.rename(tmp_path / "copied")
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "copied"))
    no_compiler(monkeypatch)
    again = build(scale(path="/here/scale.cu"))
    assert (again.code, again.compiler, again.digest) == (first.code, first.compiler, first.digest)
    assert '"/here/scale.cu", line 2' in again.texts["sass"]
    assert len(made) == 1


@pytest.mark.in_turns(20)
def test_without_a_compiler_what_is_missing_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(scale())
    no_compiler(monkeypatch)
    told = rf"^no CUDA compiler: install one; probe \(scale<4>\) for sm_90 is not in {folder}$"
    with pytest.raises(NoCompilerError, match=told):
        build(scale(4))
    with pytest.raises(NoCompilerError, match=r"^no CUDA compiler"):
        compile_here(scale())


@pytest.mark.in_turns(20)
def test_another_compiler_gives_way_to_what_the_cache_has(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    first = build(scale())
    another_compiler(monkeypatch)
    assert build(scale()) == first
    assert len(made) == 1
    own, cached = compile_here(scale())
    assert (own.compiler, cached) == ("NVRTC 13.9.1", False)
    assert build(scale()) == own
    assert compile_here(scale()) == (own, True)
    assert len(made) == 2


@pytest.mark.in_turns(20)
def test_the_newest_entry_serves_where_there_is_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NVRTC 13.8.1", "NVRTC 13.9.1", "NVRTC 13.8.1"):
        with monkeypatch.context() as patch:
            another_compiler(patch, name)
            compile_here(scale())
    no_compiler(monkeypatch)
    assert build(scale()).compiler == "NVRTC 13.8.1"


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("damage", [b"", b"x" * 300, None], ids=["empty", "foreign", "truncated"])
def test_a_damaged_cubin_is_compiled_again(folder: Path, made: list[str], damage: bytes | None) -> None:
    first = build(scale())
    (path,) = files(folder, ".bin")
    whole = path.read_bytes()
    path.write_bytes(whole[:-100] if damage is None else damage)
    assert build(scale()) == first
    assert len(made) == 2
    assert path.read_bytes() == whole


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("damage", ["", "../../etc/passwd", "f" * 64, "ä" * 64], ids=["empty", "path", "gone", "text"])
def test_a_damaged_alias_leads_nowhere(
    folder: Path, made: list[str], monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    build(scale())
    (path,) = files(folder, ".ref")
    path.write_text(damage)
    with monkeypatch.context() as patch:
        no_compiler(patch)
        with pytest.raises(NoCompilerError, match="is not in"):
            build(scale())
    another_compiler(monkeypatch)
    assert build(scale()).compiler == "NVRTC 13.9.1"
    assert len(made) == 2


@pytest.mark.in_turns(20)
def test_a_cubin_whose_alias_was_lost_is_pointed_to_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build(scale())
    (path,) = files(folder, ".ref")
    path.unlink()
    assert compile_here(scale()) == (first, True)
    no_compiler(monkeypatch)
    assert build(scale()) == first


@pytest.mark.in_turns(20)
def test_text_is_made_later_where_code_came_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise NoCompilerError("no nvdisasm")

    with monkeypatch.context() as patch:
        patch.setattr(nvdisasm, "tool", none)
        bare = build(scale(path="a.cu"))
        assert "sass" not in build(scale(path="a.cu")).texts
    assert '//## File "a.cu", line 2' in build(scale(path="a.cu")).texts["sass"]
    assert build(scale(path="a.cu")).code == bare.code


@pytest.mark.in_turns(20)
def test_texts_take_little_room(folder: Path) -> None:
    made = build(scale(path="a.cu"))
    whole = replace(made, texts=dict(made.texts))
    assert cache.decode(cache.encode(whole)) == whole
    nbytes = sum(path.stat().st_size for suffix in (".bin", ".sass") for path in files(folder, suffix))
    assert nbytes < len(made.code) + sum(map(len, made.texts.values())) / 2


def test_failures_are_not_kept(folder: Path) -> None:
    for _ in range(2):
        with pytest.raises(CompileError, match="cannot determine which instance"):
            build(replace(scale(), entry="scale"))
    assert not files(folder, "")


@pytest.mark.in_turns(20)
def test_a_cache_that_cannot_be_written_costs_a_warning(
    tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "file" / "cache"))
    asked = program("#include <cuda_fp16.h>\n" + SOURCE, "scale<2>")
    with pytest.warns(RuntimeWarning, match="continuing without") as said:
        assert build(asked) == build(asked)
    assert len(said) == 1
    assert len(made) == 2


@pytest.mark.in_turns(20)
def test_the_compilers_headers_lie_in_the_cache(folder: Path, made: list[str]) -> None:
    asked = program("#include <cuda_fp16.h>\n" + SOURCE, "scale<2>")
    build(asked)
    (headers,) = [path for path in folder.iterdir() if path.is_dir()]
    assert headers.name == f"cuda-headers-{nvrtc.compiler().split()[-1]}"
    assert (headers / "cuda_fp16.h").is_file()
    assert headers.stat().st_mode & 0o777 == 0o700
    build(replace(asked, entry="scale<5>"))
    assert made == ["scale<2>", "scale<5>"]


@pytest.mark.slow
def test_many_processes_compiling_the_same_kernel(folder: Path) -> None:
    code = (
        "from gemmlab.core.program import Program\n"
        "from gemmlab.toolchain.build_cuda import build\n"
        f"source = '#include <cuda_fp16.h>\\n' + {SOURCE!r}\n"
        "made = build(Program('probe', 'cuda', 'sm_90', 'scale<7>', 'x', lambda: source, path='scale.cu'))\n"
        "print(made.digest, len(made.texts['sass']))\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", code], env=dict(os.environ), text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(8)
    ]  # fmt: skip
    outcomes = [process.communicate(timeout=100) for process in running]
    assert [process.returncode for process in running] == [0] * 8, outcomes
    assert len({said for said, _ in outcomes}) == 1
    assert len(files(folder, ".bin")) == len(files(folder, ".ref")) == 1
    assert not list(folder.glob(".new-*"))
