"""A file with several kernels is compiled once; each of them gets the artifact that its own compilation would give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gemmlab.core.errors import CompileError, NoCompilerError
from gemmlab.core.program import Program
from gemmlab.toolchain import compilation, nvrtc
from gemmlab.toolchain.build_cuda import build, compile_here
from support.cuda_source import needs_compiler, program

pytestmark = needs_compiler

SOURCE = """
template <int T> __global__ void scale(float* x) { x[threadIdx.x] *= T; }
template <> __global__ void scale<9>(float* x) { x[threadIdx.x] = 9; }
__global__ void add(float* x, const float* y) { __shared__ float s[32]; s[threadIdx.x] = y[1]; x[0] += s[3]; }
extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 1; }
static __global__ void hidden(float* x) { x[threadIdx.x] = 2; }
__global__ void twice(float* x) { x[0] = 1; }
__global__ void twice(int* x) { x[0] = 1; }
namespace mine { __global__ void add(float* x) { x[0] = 3; } }
"""


@pytest.fixture(autouse=True)
def own_cache(folder: Path) -> Path:
    return folder


def kernel(entry: str, **facts: Any) -> Program:
    return replace(program(SOURCE, entry, path="kernels.cu", **facts), kernel=entry)


@pytest.mark.in_turns(20)
def test_a_file_is_compiled_once_for_all_its_kernels(made: list[str], folder: Path) -> None:
    first = build(kernel("add"))
    second = build(kernel("fill", resources={"workspace_bytes": 7}, exports=("also",)))
    assert made == ["add"]
    assert (first.entry, second.entry) == ("_Z3addPfPKf", "fill")
    asked = kernel("fill", resources={"workspace_bytes": 7}, exports=("also",))
    alone = compilation.compile_cubin(asked)
    assert replace(second, texts={}) == replace(alone, texts={})
    virtual = {name: text.replace("/gemmlab/kernels.cu", "kernels.cu") for name, text in alone.texts.items()}
    assert second.texts == virtual
    assert first.resources["static_smem_bytes"] > second.resources["static_smem_bytes"] == 0
    assert build(kernel("add")) == first
    assert len(list(folder.glob("*.bin"))) == 1


def test_instances_and_kernels_of_namespaces_are_compiled_by_themselves(made: list[str]) -> None:
    entries = ["add", "scale<3>", "scale<9>", "mine::add", "scale<3>", "fill"]
    found = {entry: build(kernel(entry)).entry for entry in entries}
    assert made == ["add", "scale<3>", "scale<9>", "mine::add"]
    assert len({*found.values()}) == len(found)
    assert found["fill"] == "fill"


def test_code_made_for_an_instance_serves_no_other(made: list[str]) -> None:
    assert "scaleILi3E" in build(kernel("scale<3>")).texts["log"]
    assert "scaleILi3E" not in build(kernel("fill")).texts["log"]
    assert made == ["scale<3>", "fill"]


def test_a_static_kernel_has_no_warning_that_nothing_names_it(made: list[str]) -> None:
    file = build(kernel("add"))
    hidden = build(kernel("hidden"))
    assert "hidden" in file.texts["log"].partition("ptxas")[0]
    assert "hidden" not in hidden.texts["log"].partition("ptxas")[0]
    assert hidden.code == file.code
    assert build(kernel("add")).code == build(kernel("hidden")).code == file.code
    assert made == ["add", "hidden"]


@pytest.mark.parametrize("entry", ["twice", "absent", "scale"])
def test_a_name_of_no_one_kernel_is_the_compilers_error(made: list[str], entry: str) -> None:
    build(kernel("add"))
    with pytest.raises(CompileError, match=entry):
        build(kernel(entry))
    assert made == ["add", entry]


@pytest.mark.parametrize(
    "other", [{"target": "sm_80"}, {"options": ("-use_fast_math",)}, {"headers": {"x.cuh": "#define X 1\n"}}], ids=str
)
def test_another_compilation_shares_nothing(made: list[str], other: dict[str, Any]) -> None:
    build(kernel("add"))
    build(replace(kernel("fill"), **other))
    assert made == ["add", "fill"]


def test_a_file_with_an_edited_header_is_compiled_again(made: list[str], tmp_path: Path) -> None:
    (tmp_path / "value.cuh").write_text("#define VALUE 3\n")
    file = tmp_path / "mine.cu"
    file.write_text('#include "value.cuh"\n__global__ void f(int* x) { *x = VALUE; }\n__global__ void g(int*) {}\n')
    f, g = (replace(program(file.read_text(), name, path=str(file)), kernel=name) for name in "fg")
    build(f)
    build(g)
    (tmp_path / "value.cuh").write_text("#define VALUE 4\n")
    build(g)
    build(f)
    assert made == ["f", "g"]


def test_without_a_compiler_the_file_serves_all_kernels(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    build(kernel("add"))
    with monkeypatch.context() as patch:
        patch.setattr(nvrtc, "compiler", lambda: "NVRTC 13.9.1")
        assert build(kernel("fill")).compiler != "NVRTC 13.9.1"
        assert compile_here(kernel("fill"))[1] is False
        assert compile_here(kernel("add"))[1] is True

    def missing() -> str:
        raise NoCompilerError("no CUDA compiler: install one")

    monkeypatch.setattr(nvrtc, "compiler", missing)
    assert build(kernel("add")).compiler == "NVRTC 13.9.1"
    with pytest.raises(NoCompilerError, match="scale<3>"):
        build(kernel("scale<3>"))
    assert made == ["add", "fill"]
