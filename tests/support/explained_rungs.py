"""Explanations of rungs on the emulator, each made once for all tests."""

from __future__ import annotations

from functools import cache

from gemmlab.analysis.explanation import Explanation, explain
from gemmlab.analysis.subject import machine
from gemmlab.kernels.catalog import find_kernel, ladder

RUNGS = [kernel.id for op in ("gemm", "reduce") for kernel in ladder(op, "cuda")]


@cache
def explained(name: str, arch: str = "sm_90", sizes: str = "") -> Explanation:
    chosen, gpu = machine(arch)
    return explain(find_kernel(name), chosen, gpu, {}, sizes)
