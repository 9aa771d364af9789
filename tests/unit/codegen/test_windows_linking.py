"""Windows' code linked into this process by the linker that llvmlite has there, and called as Windows calls.

Everything the code calls is a wrapper here: it takes what Windows' convention passes, and hands it on. The linker ends
the process if the memory that it gets for sections is not in their order, as in a process that has run for an hour. So
this is a process of its own.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from llvmlite import binding

from gemmlab.codegen import runtime
from gemmlab.ir.compile import compile_object
from gemmlab.ir.target import host_target
from support.foreign_code import TARGETS, compile_foreign, product, wanted, workspace_bytes

OUTSIDE = ("memset", "memcpy")
"""What one thread calls. Whatever else the code names must only be there."""
WRAPPERS = """
declare ptr @memset(ptr, i32, i64)
declare ptr @memcpy(ptr, ptr, i64)
define win64cc ptr @windows_memset(ptr %to, i32 %byte, i64 %count) {
  %done = call ptr @memset(ptr %to, i32 %byte, i64 %count)
  ret ptr %done
}
define win64cc ptr @windows_memcpy(ptr %to, ptr %from, i64 %count) {
  %done = call ptr @memcpy(ptr %to, ptr %from, i64 %count)
  ret ptr %done
}
define i64 @call_entry(ptr %entry, i64 %m, i64 %n, i64 %k, ptr %a, ptr %b, ptr %c) {
  %done = call win64cc i64 %entry(i64 %m, i64 %n, i64 %k, float 1.5, ptr %a, i64 %k, i64 1, ptr %b, i64 %n, i64 1,
                                  float -0.5, ptr %c, i64 %n, i64 1)
  ret i64 %done
}
"""


@pytest.mark.in_turns(20)
@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="calls x86-64 code between Linux and Windows"
)
def test_the_older_linker_takes_it_and_it_computes() -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        assert processes.submit(largest_error).result() < 1e-4


def largest_error() -> float:
    """Return the largest difference of a product by the linked code from float64, over a few shapes."""
    target, wrapping = TARGETS["Windows, SSE"], compile_object(WRAPPERS, host_target())
    linker = binding.create_lljit_compiler(use_jit_link=False)
    here = binding.JITLibraryBuilder().add_object_img(wrapping).add_current_process()
    for name in ("call_entry", *(f"windows_{word}" for word in OUTSIDE)):
        here.export_symbol(name)
    wrappers = here.link(linker, "wrappers")
    block = np.zeros(runtime._BYTES // 8 + 8, np.int64)
    base = block.ctypes.data + -block.ctypes.data % 64
    code = compile_foreign(product(target), target)
    builder = binding.JITLibraryBuilder().add_object_img(code).export_symbol("c_entry")
    for name in wanted(code):
        builder.import_symbol(name, wrappers[f"windows_{name}"] if name in OUTSIDE else base)
    linked = builder.link(linker, "product")

    space = np.zeros(workspace_bytes(target) // 4 + 16, np.float32)
    slot = (ctypes.c_int64 * (2 * runtime.SLOTS)).from_address(base + runtime.SLOTS_AT)
    for index in range(1, runtime.SLOTS):
        slot[2 * index] = 1
    slot[1] = space.ctypes.data + -space.ctypes.data % 64
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 7)(wrappers["call_entry"])
    rng, error = np.random.default_rng(0), 0.0
    for m, n, k in ((1, 1, 1), (37, 29, 53), (60, 61, 100)):
        a, b, c = (rng.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, n), (m, n)))
        expected = 1.5 * (a.astype(float) @ b) - 0.5 * c
        assert call(linked["c_entry"], m, n, k, a.ctypes.data, b.ctypes.data, c.ctypes.data) == 0
        error = max(error, float(np.abs(c - expected).max()))
    return error
