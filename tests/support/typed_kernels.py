"""Naive matrix products of other types than float32, as text, and errors to plant in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

TEXT = """/* gemmlab
grid = "ceil_div(N, 16), ceil_div(M, 16)"
threads = "16, 16"
LINES*/
INCLUDE
__global__ void NAME(int M, int N, int K, SCALAR alpha, const IN* A, int lda, const IN* B, int ldb, SCALAR beta,
                     OUT* C, int ldc) {
    const long long row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || col >= N) return;
    SUM sum = SUM(0);
    if (alpha != SCALAR(0)) for (long long k = 0; k < K; ++k) sum += SUM(A[row * lda + k]) * SUM(B[k * ldb + col]);
    SCALAR scaled = alpha != SCALAR(0) ? alpha * SCALAR(sum) : SCALAR(0);
    C[row * ldc + col] = OUT(beta != SCALAR(0) ? scaled + beta * SCALAR(C[row * ldc + col]) : scaled);
}
"""
HALF, BRAIN, EIGHT = "#include <cuda_fp16.h>", "#include <cuda_bf16.h>", "#include <cuda_fp8.h>"
KINDS: Mapping[str, tuple[str, ...]] = {
    "half_in_half": (HALF, "half", "half", "half", "half"),
    "half_in_float": (HALF, "half", "half", "float", "float"),
    "mixed": (HALF, "half", "float", "float", "float"),
    "brain": (BRAIN, "__nv_bfloat16", "__nv_bfloat16", "float", "float"),
    "eight_bits": (EIGHT, "__nv_fp8_e4m3", "float", "float", "float"),
    "eight_in_eight": (EIGHT, "__nv_fp8_e5m2", "__nv_fp8_e5m2", "float", "float"),
    "double_product": ("", "double", "double", "double", "double"),
    "whole": ("", "int8_t", "int32_t", "int", "int"),
    "whole_scaled": ("", "int8_t", "float", "int", "float"),
}
"""Name -> include, types of the inputs, of the result, of the sum and of the factors."""
OPS: Mapping[str, str] = {
    "half_in_half": "gemm:float16", "half_in_float": "gemm:float16", "mixed": "gemm:float16,float16,float32",
    "brain": "gemm:bfloat16", "eight_bits": "gemm:float8_e4m3fn,float8_e4m3fn,float32",
    "eight_in_eight": "gemm:float8_e5m2", "double_product": "gemm:float64", "whole": "gemm:int8,int8,int32",
    "whole_scaled": "gemm:int8,int8,float32",
}  # fmt: skip
ERRORS: Mapping[str, tuple[str, str]] = {
    "one step too few": ("k < K;", "k < K - (K > 20);"),
    "one step too many": ("k < K;", "k < K + (row + 1 < M && K > 20);"),
    "leading dimension of B": ("k * ldb", "k * N"),
    "leading dimension of C": ("[row * ldc + col] = ", "[row * N + col] = "),
    "a factor forgotten": ("beta * SCALAR(C", "SCALAR(C"),
    "C read for beta 0": ("beta != SCALAR(0) ?", "true ?"),
    "the last row left out": ("row >= M ", "row >= M - (M > 5) "),
}
"""Error -> the text that it replaces, and what by."""


def kernel_file(folder: Path, kind: str, error: str = "", lines: str = "") -> Path:
    """Write the kernel of a kind, with an error of `ERRORS` in it if one is named, and return its file."""
    include, given, result, total, scalar = KINDS[kind]
    text = TEXT
    if error:
        before, after = ERRORS[error]
        assert before in text, error
        text = text.replace(before, after)
    for name, value in {
        "LINES": lines and f"{lines}\n", "INCLUDE": include or "#include <cstdint>", "NAME": kind, "SCALAR": scalar,
        "OUT": result, "SUM": total, "IN": given,
    }.items():  # fmt: skip
        text = text.replace(name, value)
    path = folder / f"{kind}.cu"
    path.write_text(text, encoding="utf-8")
    return path
