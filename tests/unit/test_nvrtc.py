"""CUDA C++ to cubin: what comes out, whose lines errors name, and what is said when the compiler is not there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cuda_source import ARCHITECTURES, compiled, needs_compiler, program

from gemmlab.core.errors import CompileError, NoCompilerError
from gemmlab.core.program import Artifact
from gemmlab.toolchain import nvdisasm, nvrtc
from gemmlab.toolchain.cubin import read_cubin
from gemmlab.toolchain.nvrtc import compile_cubin
from gemmlab.toolchain.virtual_files import place

SOURCE = """template <int T> __global__ void tile(float* x, int n) {
  __shared__ float s[T][T];
  s[threadIdx.y][threadIdx.x] = x[n];
  __syncthreads();
  x[n] = s[threadIdx.x][threadIdx.y];
}
"""
SPILLS = """extern "C" __global__ void __launch_bounds__(1024) many(float* x) {
  float a[64];
  #pragma unroll
  for (int i = 0; i < 64; ++i) a[i] = x[i * 1024];
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < 64; ++i) x[i * 1024 + 7] = a[63 - i] * a[i] + a[(i * 7) & 63];
}
"""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """Nothing remembered of which compiler is installed, before and after; an empty cache."""
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "cache"))
    remembered = (nvrtc.compiler, nvrtc.architectures, nvrtc._load, nvdisasm.tool)
    for function in remembered:
        function.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    for function in remembered:
        function.cache_clear()


def install(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """Pretend that these packages are installed, `_` for `-`, and no others; none can be loaded."""
    packages = {name.replace("_", "-"): version for name, version in versions.items()}
    monkeypatch.setattr(nvrtc, "_version", packages.get)
    monkeypatch.setattr(nvrtc, "_load", lambda: None)


@needs_compiler
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_template_instance_for_every_architecture(arch: str) -> None:
    made = compiled(SOURCE, "tile<16>", arch)
    assert (made.kind, made.target, made.entry) == ("cubin", arch, "_Z4tileILi16EEvPfi")
    assert re.search(rf"^\.target {arch}$", made.texts["ptx"], re.MULTILINE)
    assert ".entry _Z4tileILi16EEvPfi(" in made.texts["ptx"]
    assert f"\t.target\t{arch.rstrip('a')}" in made.texts["sass"]
    assert "BAR.SYNC" in made.texts["sass"]
    assert read_cubin(made.code, "tile").arch == arch
    assert made.resources["static_smem_bytes"] == 16 * 16 * 4
    assert made.resources["barriers"] == 1
    assert made.resources["code_bytes"] == len(read_cubin(made.code, "tile").functions[made.entry].code)
    assert made.compiler == nvrtc.compiler()


@needs_compiler
def test_instructions_carry_the_sources_lines() -> None:
    made = compiled(SOURCE, "tile<16>")
    lines = set(re.findall(r'//## File "([^"]+)", line (\d+)', made.texts["sass"]))
    assert {("/gemmlab/probe.cu", "3"), ("/gemmlab/probe.cu", "4"), ("/gemmlab/probe.cu", "5")} <= lines
    assert {name for name, _ in lines} == {"/gemmlab/probe.cu"}


@needs_compiler
def test_spills_stack_and_limits_are_reported() -> None:
    made = compiled(SPILLS, "many")
    assert made.entry == "many"
    assert made.resources["max_threads"] == 1024
    assert made.resources["registers"] == 64
    stores = sum(4 * int(width or 32) // 32 for width in re.findall(r"STL(?:\.(\d+))?\b", made.texts["sass"]))
    assert made.resources["spill_stores"] == stores > 0
    assert made.resources["spill_loads"] > 0
    assert made.resources["stack_bytes"] == made.resources["local_bytes"] > 0
    free = compiled(SPILLS.replace("__launch_bounds__(1024)", ""), "many")
    assert free.resources["spill_stores"] == free.resources["stack_bytes"] == 0
    assert "max_threads" not in free.resources


@needs_compiler
def test_facts_of_the_program_stay_beside_the_compilers() -> None:
    made = compile_cubin(program(SOURCE, "tile<8>", resources={"workspace_bytes": 12}))
    assert made.resources["workspace_bytes"] == 12
    assert made.resources["static_smem_bytes"] == 256


@needs_compiler
def test_options_are_added_or_replace_those_of_their_name() -> None:
    told = nvrtc.options_of(program("", "f", options=("--std=c++20", "-DN=3", "-DM=4", "-Ihere", "-Xptxas=-O1")))
    assert told == [
        "-arch=sm_90", "-lineinfo", "-default-device", "--ptxas-options=-v",
        "--std=c++20", "-DN=3", "-DM=4", "-Xptxas=-O1",
    ]  # fmt: skip
    source = "__global__ void f(float* x) { x[0] = N / x[1]; static_assert(__cplusplus > 201703L); }"
    exact = compile_cubin(program(source, "f", options=("-std=c++20", "-DN=3")))
    fast = compile_cubin(program(source, "f", options=("-std=c++20", "-DN=3", "-use_fast_math")))
    assert fast.resources["code_bytes"] < exact.resources["code_bytes"]
    assert "spill_loads" in compile_cubin(program(SOURCE, "tile<8>", options=("--ptxas-options=-O1",))).resources
    with pytest.raises(CompileError, match=r"probe \(f\) for sm_90 .*\n.*unrecognized option -bogus"):
        compile_cubin(program(source, "f", options=("-bogus",)))


@needs_compiler
@pytest.mark.parametrize(
    "includes",
    ["cuda_fp16.h", "cuda_bf16.h", "mma.h", "cooperative_groups.h", "cuda_pipeline.h", "cuda/barrier",
     "cooperative_groups/reduce.h"],
)  # fmt: skip
def test_cudas_own_headers_are_found(includes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(_headers(tmp_path)))
    source = f"#include <{includes}>\n" + SOURCE
    made, plain = compile_cubin(program(source, "tile<4>")), compiled(SOURCE, "tile<4>")
    codes = [read_cubin(artifact.code, "tile").functions[plain.entry].code for artifact in (made, plain)]
    assert codes[0] == codes[1]


def _headers(tmp_path: Path) -> Path:
    """A cache that the tests of one run share: unpacking takes a second."""
    return tmp_path.parent / "headers"


@needs_compiler
def test_half_and_matrix_types_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(_headers(tmp_path)))
    source = """#include <cuda_fp16.h>
    #include <mma.h>
    __global__ void f(const __half* a, const __half* b, float* c) {
      using namespace nvcuda::wmma;
      fragment<matrix_a, 16, 16, 16, __half, row_major> x;
      fragment<matrix_b, 16, 16, 16, __half, col_major> y;
      fragment<accumulator, 16, 16, 16, float> z;
      fill_fragment(z, 0.f);
      load_matrix_sync(x, a, 16);
      load_matrix_sync(y, b, 16);
      mma_sync(z, x, y, z);
      store_matrix_sync(c, z, 16, mem_row_major);
    }"""
    assert "HMMA.16816.F32" in compile_cubin(program(source, "f")).texts["sass"]


@needs_compiler
def test_headers_of_the_host_have_stand_ins() -> None:
    source = """#include <cuda_runtime.h>
    #include <cstdio>
    #include <stdint.h>
    #include <climits>
    #include <cfloat>
    #include <math.h>
    #include <assert.h>
    __global__ void f(float* x, uint64_t n) {
      assert(n < INT_MAX);
      x[n] = fminf(FLT_MAX, INFINITY) + M_PI;
    }"""
    assert compile_cubin(program(source, "f")).resources["registers"] > 0


@needs_compiler
def test_given_headers_and_those_beside_the_source_are_used(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "beside.cuh").write_text('#pragma once\n#include "deep/inner.cuh"\n')
    (tmp_path / "deep" / "inner.cuh").write_text('#pragma once\n#include "../beside.cuh"\n#include "twin.cuh"\n')
    (tmp_path / "deep" / "twin.cuh").write_text("__device__ inline float twice(float v) {\n  return v * SCALE;\n}\n")
    file = tmp_path / "mine.cu"
    source = '#include "given.cuh"\n#include "beside.cuh"\n__global__ void f(float* x) { x[0] = twice(x[1]); }\n'
    file.write_text(source)
    asked = program(source, "f", path=str(file), headers={"given.cuh": "#define SCALE 2.0f\n"})
    assert "FADD" in compile_cubin(asked).texts["sass"], "twice v is v + v"
    thrice = compile_cubin(replace(asked, headers={"given.cuh": "#define SCALE 3.0f\n"}))
    assert "FMUL" in thrice.texts["sass"]
    assert set(place(asked).real.values()) == {
        str(file), "given.cuh", str(tmp_path / "beside.cuh"), str(tmp_path / "deep" / "inner.cuh"),
        str(tmp_path / "deep" / ".." / "beside.cuh"), str(tmp_path / "deep" / "twin.cuh"),
    }  # fmt: skip
    with pytest.raises(CompileError, match=re.escape(f'{tmp_path / "deep" / "twin.cuh"}:2: error: identifier "SCALE"')):
        compile_cubin(replace(asked, headers={"given.cuh": ""}))


@needs_compiler
def test_a_folder_named_by_an_option_is_searched(tmp_path: Path) -> None:
    (tmp_path / "far.cuh").write_text("#define VALUE 7\n")
    source = '#include "far.cuh"\n__global__ void f(int* x) { x[0] = VALUE; }\n'
    made = compile_cubin(program(source, "f", options=(f"-I{tmp_path}",)))
    assert re.search(r"\b7;", made.texts["ptx"])
    assert str(tmp_path).encode() not in made.code
    with pytest.raises(CompileError, match=r'probe\.cu:1: .*cannot open source file "far\.cuh"'):
        compile_cubin(program(source, "f"))


def test_one_name_for_two_headers_is_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "all.cuh").write_text('#include "same.cuh"\n')
        (tmp_path / folder / "same.cuh").write_text(f"#define {folder} 1\n")
    file = tmp_path / "mine.cu"
    file.write_text('#include "a/all.cuh"\n#include "b/all.cuh"\n')
    with pytest.raises(CompileError, match=r"includes two files as same\.cuh: .*; rename one"):
        place(program(file.read_text(), "f", path=str(file)))


@needs_compiler
def test_the_code_does_not_depend_on_where_the_source_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(_headers(tmp_path)))
    made: list[Artifact] = []
    for folder in ("one", "another"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        (tmp_path / folder / "x.cuh").write_text("__device__ inline float g(float v) {\n  return v * v;\n}\n")
        file = tmp_path / folder / "mine.cu"
        file.write_text('#include "x.cuh"\n__global__ void f(float* x) { x[0] = g(x[1]); }\n')
        made.append(compile_cubin(program(file.read_text(), "f", path=str(file))))
    assert made[0] == made[1]
    assert made[0].code == made[1].code


@needs_compiler
def test_the_digest_is_of_the_code_and_not_of_its_comments() -> None:
    plain, moved = compiled(SOURCE, "tile<16>"), compiled("// a comment\n\n" + SOURCE, "tile<16>")
    assert plain.code != moved.code
    assert plain.digest == moved.digest
    digests = {
        compiled(text, entry, arch).digest
        for text, entry, arch in (
            (SOURCE, "tile<16>", "sm_90"), (SOURCE, "tile<8>", "sm_90"), (SOURCE, "tile<16>", "sm_80"),
            (SOURCE.replace("x[n] = s", "x[n] += s"), "tile<16>", "sm_90"),
            (SOURCE.replace("__global__ void", "__global__ void __launch_bounds__(256)"), "tile<16>", "sm_90"),
        )
    }  # fmt: skip
    assert len(digests) == 5


@needs_compiler
@pytest.mark.parametrize(
    ("source", "entry", "told"),
    [
        ("\n\n__global__ void f(int* p) { *p = q; }", "f", r'^mine\.cu:3: error: identifier "q" is undefined$'),
        (SOURCE, "tile", r"^instance tile: error: cannot determine which instance of function template"),
        (SOURCE, "tile<T>", r'^instance tile<T>: error: identifier "T" is undefined'),
        (SOURCE, "tiles<3>", r'^instance tiles<3>: error: identifier "tiles" is undefined'),
        (SOURCE, "tile<", r"^instance tile<: error: expected an expression"),
        ("void g() {}", "g", r"^instance g: error: .* non-__global__"),
        ('template <int T> __global__ void f() {\n static_assert(T < 4, "small T"); }', "f<5>",
         r'^mine\.cu:2: error: static assertion failed with "small T"'),
        ('\n__global__ void f() {\n  asm("wgmma.fence.sync.aligned;"); }', "f",
         r"^mine\.cu:3: error: Instruction 'wgmma\.fence' not supported on \.target 'sm_90'"),
        ("__global__ void f(float* p) { __shared__ float s[99999]; s[*(int*)p] = 1; p[0] = s[threadIdx.x]; }", "f",
         r"^ptxas error .*'_Z1fPf' uses too much shared data"),
        ("#include <map>\n__global__ void f() {}\n", "f",
         r'^mine\.cu:1: .*cannot open source file "map"(.|\n)*under #ifndef __CUDACC_RTC__$'),
        ('#include <iostream>\n__global__ void f() {}\nint main() { std::cout << "x"; }\n', "f",
         r'^mine\.cu:3: error: namespace "std" has no member "cout"(.|\n)*under #ifndef __CUDACC_RTC__$'),
        ("__global__ void f() {}\nint main() { f<<<1, 1>>>(); }\n", "f",
         r"^mine\.cu:2: error: device-side kernel launch(.|\n)*under #ifndef __CUDACC_RTC__$"),
    ],
    ids=["undefined name", "no template argument", "unknown argument", "unknown template", "half an expression",
         "no kernel", "static_assert", "ptx", "shared memory", "host header", "host library", "host code"],
)  # fmt: skip
def test_errors_show_the_sources_own_lines(
    source: str, entry: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(_headers(tmp_path)))
    with pytest.raises(CompileError) as caught:
        compile_cubin(program(source, entry, path="mine.cu"))
    head, _, rest = str(caught.value).partition("\n")
    assert head == f"probe ({entry}) for sm_90 does not compile:"
    assert re.search(told, rest, re.MULTILINE), rest
    assert "/gemmlab/" not in rest
    assert "nv_mangled_name" not in rest
    assert "ptxas info" not in rest


@needs_compiler
@pytest.mark.parametrize("arch", ["sm_91", "sm_80a", "sm_90f", "sm_9", "90", "x86_64:8:cpu", ""])
def test_an_unknown_architecture_lists_those_there_are(arch: str) -> None:
    with pytest.raises(CompileError, match=rf"probe: no code for '{arch}': NVRTC [\d.]+ knows sm_75, .*sm_90, .*in f"):
        compile_cubin(program(SOURCE, "tile<16>", arch))


@needs_compiler
def test_an_error_while_emitting_names_the_kernel() -> None:
    def broken() -> str:
        raise ValueError("no such block")

    with pytest.raises(CompileError, match="probe for sm_90: ValueError: no such block"):
        compile_cubin(replace(program("", "f"), emit=broken))


@pytest.mark.parametrize(
    ("packages", "told"),
    [
        ({}, r"^no CUDA compiler: pip install 'gemmlab\[cuda13\]'"),
        ({"nvidia_cuda_nvrtc": "13.5.37"}, r"^no CUDA compiler: pip install 'gemmlab\[cuda13\]'"),
        ({"cuda_bindings": "13.5.0"}, r"^cuda-bindings 13\.5\.0 is here without NVRTC: .*'gemmlab\[cuda13\]'"),
        ({"cuda_bindings": "12.9.1"}, r"^cuda-bindings 12\.9\.1 is here without NVRTC: .*'gemmlab\[cuda12\]'"),
        ({"cuda_bindings": "13.5.0", "nvidia_cuda_nvrtc_cu12": "12.9.86"},
         (r"^cuda-bindings 13\.5\.0 needs NVRTC of CUDA 13, and here is nvidia-cuda-nvrtc-cu12 12\.9\.86: "
          r"pip install 'gemmlab\[cuda13\]', or 'cuda-bindings==12\.\*'$")),
        ({"cuda_bindings": "12.9.1", "nvidia_cuda_nvrtc": "13.5.37"},
         (r"^cuda-bindings 12\.9\.1 needs NVRTC of CUDA 12, and here is nvidia-cuda-nvrtc 13\.5\.37: "
          r"pip install 'gemmlab\[cuda12\]', or 'cuda-bindings==13\.\*'$")),
    ],
    ids=["nothing", "no bindings", "no compiler", "no compiler for 12", "compiler for 12", "compiler for 13"],
)  # fmt: skip
def test_a_missing_compiler_says_what_to_install(
    fresh: pytest.MonkeyPatch, packages: dict[str, str], told: str
) -> None:
    install(fresh, **packages)
    with pytest.raises(NoCompilerError, match=told):
        nvrtc.compiler()
    with pytest.raises(NoCompilerError, match=told):
        compile_cubin(program(SOURCE, "tile<16>"))


def test_on_a_mac_another_machine_compiles(fresh: pytest.MonkeyPatch) -> None:
    install(fresh)
    fresh.setattr(sys, "platform", "darwin")
    with pytest.raises(NoCompilerError, match="NVIDIA has none for macOS; run `gemmlab compile` on Linux or Windows"):
        nvrtc.compiler()


def test_the_compiler_is_named_without_loading_it(fresh: pytest.MonkeyPatch) -> None:
    install(fresh, cuda_bindings="12.9.1", nvidia_cuda_nvrtc_cu12="12.9.86", nvidia_cuda_nvrtc="13.5.37")
    assert nvrtc.compiler() == "NVRTC 12.9.86"
    with pytest.raises(NoCompilerError, match=r"NVRTC 12\.9\.86 is installed but cannot be loaded"):
        compile_cubin(program(SOURCE, "tile<16>"))


def test_a_toolkits_compiler_serves_where_no_wheel_does(fresh: pytest.MonkeyPatch) -> None:
    install(fresh, cuda_bindings="13.5.0")
    library = SimpleNamespace(nvrtcVersion=lambda: (0, 13, 0))
    fresh.setattr(nvrtc, "_load", lambda: library)
    assert nvrtc.compiler() == "NVRTC 13.0"


@needs_compiler
def test_without_a_disassembler_there_is_code_but_no_text_of_it(fresh: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise NoCompilerError("no nvdisasm")

    fresh.setattr(nvdisasm, "tool", none)
    made = compile_cubin(program(SOURCE, "tile<16>"))
    assert set(made.texts) == {"ptx", "log"}
    assert made.digest == compiled(SOURCE, "tile<16>").digest


def test_a_disassembler_on_the_path_serves_where_no_wheel_does(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fresh.setattr(nvdisasm, "_PACKAGES", ())
    fresh.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompilerError, match=r"no nvdisasm .*'gemmlab\[cuda13\]'"):
        nvdisasm.tool()
    (tmp_path / "nvdisasm").write_text("#!/bin/sh\necho text of $4 >&1\n")
    (tmp_path / "nvdisasm").chmod(0o755)
    assert nvdisasm.tool() == tmp_path / "nvdisasm"
    assert nvdisasm.disassemble(b"code", "k").startswith("text of /")


@needs_compiler
def test_what_cannot_be_disassembled_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CompileError, match=r"^mine: nvdisasm cannot read the machine code: .*the cubin"):
        nvdisasm.disassemble(b"not a cubin", "mine")

    def late(command: list[str], **_options: Any) -> None:
        raise subprocess.TimeoutExpired(command, 1.0)

    monkeypatch.setattr(subprocess, "run", late)
    with pytest.raises(CompileError, match=r"^mine: nvdisasm did not run: .*timed out"):
        nvdisasm.disassemble(b"", "mine")
