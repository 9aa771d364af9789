"""Eviction of memory from every cache, for timing a call whose operands are in none."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from gemmlab.ir.build import load_functions
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I64, pointer
from gemmlab.ir.values import Value

LINE = 64
"""Bytes from one flushed address to the next; a longer cache line is flushed more than once."""


def flush(address: int, nbytes: int) -> None:
    """Write the cache lines of `nbytes` bytes at `address` back to memory, and evict them from the caches of all cores.

    The call returns when no cache has the lines. Address translations stay in the TLB.
    """
    _entry()(address, nbytes)


def emit_flush(module: Module) -> Function:
    """Emit the exported `flush(first, nbytes)`: evict `nbytes` bytes at `first`, and wait until no cache has them."""
    optimised = "+clflushopt" in module.target.features.split(",")
    with module.function("flush", [("first", pointer(I8)), ("nbytes", I64)], exported=True) as fn:
        first, nbytes = fn.args
        with fn.range(0, nbytes, LINE) as offset:
            _drop(fn, first + offset, optimised=optimised)
        with fn.when(nbytes > 0):
            # The steps may miss the line of the last byte.
            _drop(fn, first + (nbytes - 1), optimised=optimised)
        _wait(fn)
        fn.finish()
    return fn


def _drop(fn: Function, address: Value, *, optimised: bool) -> None:
    if fn.arm:
        fn.line(f'call void asm sideeffect "dc civac, $0", "r,~{{memory}}"(ptr {address.name})')
        return
    name = "llvm.x86.clflushopt" if optimised else "llvm.x86.sse2.clflush"
    fn.declare(name, f"declare void @{name}(ptr)")
    fn.line(f"call void @{name}(ptr {address.name})")


def _wait(fn: Function) -> None:
    if fn.arm:
        fn.line('call void asm sideeffect "dsb ish", "~{memory}"()')
        return
    fn.declare("llvm.x86.sse2.mfence", "declare void @llvm.x86.sse2.mfence()")
    fn.line("call void @llvm.x86.sse2.mfence()")


@cache
def _entry() -> Any:
    code = load_functions("flush", ["flush"], emit_flush)
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.addresses["flush"])
