"""CUDA C++ to cubin: what comes out, and whose lines errors name."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab.core.errors import CompileError
from gemmlab.core.program import Artifact
from gemmlab.toolchain import nvrtc
from gemmlab.toolchain.compilation import compile_cubin, options_of
from gemmlab.toolchain.cubin import read_cubin
from support.cuda_source import ARCHITECTURES, compiled, needs_compiler, program
from support.nvrtc_code import SOURCE, headers

SPILLS = """extern "C" __global__ void __launch_bounds__(1024) many(float* x) {
  float a[64];
  #pragma unroll
  for (int i = 0; i < 64; ++i) a[i] = x[i * 1024];
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < 64; ++i) x[i * 1024 + 7] = a[63 - i] * a[i] + a[(i * 7) & 63];
}
"""


@pytest.mark.in_turns(20)
@pytest.mark.sampled(3)
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


@pytest.mark.in_turns(20)
@needs_compiler
def test_instructions_carry_the_sources_lines() -> None:
    made = compiled(SOURCE, "tile<16>")
    lines = set(re.findall(r'//## File "([^"]+)", line (\d+)', made.texts["sass"]))
    assert {("/gemmlab/probe.cu", "3"), ("/gemmlab/probe.cu", "4"), ("/gemmlab/probe.cu", "5")} <= lines
    assert {name for name, _ in lines} == {"/gemmlab/probe.cu"}


@pytest.mark.in_turns(20)
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


@pytest.mark.in_turns(20)
@needs_compiler
def test_options_are_added_or_replace_those_of_their_name() -> None:
    told = options_of(program("", "f", options=("--std=c++20", "-DN=3", "-DM=4", "-Ihere", "-Xptxas=-O1")))
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


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_code_does_not_depend_on_where_the_source_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(headers(tmp_path)))
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


@pytest.mark.in_turns(20)
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
        ("__global__ void f(float* p) { *p = std::exp(std::pair<float, int>().first); }", "f",
         r"(.|\n)*have to be included: --option=-include=cmath --option=-include=utility does it without an edit\.$"),
        ("__global__ void f() {}\nint main() { f<<<1, 1>>>(); }\n", "f",
         r"^mine\.cu:2: error: device-side kernel launch(.|\n)*under #ifndef __CUDACC_RTC__$"),
    ],
    ids=["undefined name", "no template argument", "unknown argument", "unknown template", "half an expression",
         "no kernel", "static_assert", "ptx", "shared memory", "host header", "host library",
         "names of the standard library", "host code"],
)  # fmt: skip
def test_errors_show_the_sources_own_lines(
    source: str, entry: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(headers(tmp_path)))
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
