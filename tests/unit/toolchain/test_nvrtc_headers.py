"""Headers of CUDA C++ without a toolkit: CUDA's own, stand-ins for the host's, those beside the source."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab.core.errors import CompileError
from gemmlab.toolchain.compilation import compile_cubin
from gemmlab.toolchain.cubin import read_cubin
from support.cuda_source import compiled, needs_compiler, program
from support.nvrtc_code import SOURCE, headers


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    "includes",
    ["cuda_fp16.h", "cuda_bf16.h", "mma.h", "cooperative_groups.h", "cuda_pipeline.h", "cuda/barrier",
     "cooperative_groups/reduce.h"],
)  # fmt: skip
def test_cudas_own_headers_are_found(includes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(headers(tmp_path)))
    source = f"#include <{includes}>\n" + SOURCE
    made, plain = compile_cubin(program(source, "tile<4>")), compiled(SOURCE, "tile<4>")
    codes = [read_cubin(artifact.code, "tile").functions[plain.entry].code for artifact in (made, plain)]
    assert codes[0] == codes[1]


@pytest.mark.in_turns(20)
@needs_compiler
def test_half_and_matrix_types_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(headers(tmp_path)))
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


@pytest.mark.in_turns(20)
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
    searched = compile_cubin(asked).searched
    assert searched is not None
    assert {place for place, mark in searched.items() if mark} == {
        "0/beside.cuh", "0/deep/inner.cuh", "0/deep/../beside.cuh", "0/deep/twin.cuh",
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
