"""The `.cu` files of `tests/data/user_kernels`, each with what has to be said of it."""

from __future__ import annotations

from typing import Any

from gemmlab.core.program import Launch
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from support.paths import DATA

OP = GemmOp()
FOLDER = DATA / "user_kernels"
FLAGS: dict[str, dict[str, Any]] = {
    "sgemm_with_main": {"grid": "ceil_div(M, 16), ceil_div(N, 16)", "threads": "16, 16"},
    "square_only": {},
    "always_reads": {},
    "adds_to_c": {},
    "as_published": {
        "kernel": "mine::sgemm", "grid": "ceil_div(N, 16), ceil_div(M, 16)", "threads": "16, 16",
    },
    "declares_host": {},
    "includes_kernels": {
        "kernel": "tiled<16>", "grid": "ceil_div(N, 16), ceil_div(M, 16)", "threads": "16, 16",
    },
    "waits_for_all": {},
    "extern_c": {"grid": "min(ceil_div(M * N, 256), 64)", "threads": 256},
    "thread_tile": {},
    "column_major": {
        "kernel": "sgemm_nn", "args": "N,M,K,alpha,B,ldb,A,lda,beta,C,ldc", "params": {"BLOCK_SIZE": 8},
        "grid": "ceil_div(N, BLOCK_SIZE), ceil_div(M, BLOCK_SIZE)", "threads": "BLOCK_SIZE, BLOCK_SIZE",
    },
    "typed_template": {
        "kernel": "matmul<float>", "grid": "ceil_div(N, 16), ceil_div(M, 16)", "threads": "16, 16",
    },
}  # fmt: skip


def kernel_of(name: str) -> Kernel:
    return user_kernel(FOLDER / f"{name}.cu", **FLAGS[name])


def launch_of(kernel: Kernel, problem: GemmProblem) -> Launch:
    scalars = OP.scalars(problem)
    bound: dict[str, Any] = {**scalars, "a": "a", "b": "b", "c": "c"}
    (launch,) = kernel.launches(kernel.instantiate(kernel.configure(), scalars), bound)
    return launch
