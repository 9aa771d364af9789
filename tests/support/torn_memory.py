"""Link and run code where free addresses are in pieces that lie far apart: `python tests/support/torn_memory.py`.

A wall of addresses without memory is put below all that is mapped, what is free above it is filled, and a few pages at
its upper end are given back. What fits there is put there; everything larger comes below the wall:

        libraries, filled up | a few pages | 16 GiB of wall | all else
                               constants                      code       <- put there one by one
                                                              both       <- in one piece

So LLVM's linkers may find a process in which CUDA is at work. `windows` as an argument takes the code for Windows, and
the linker that there is on Windows, which puts sections one by one.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from dataclasses import replace

import numpy as np
from llvmlite import binding

import gemmlab
from gemmlab.ir import compile as compiling
from gemmlab.ir.target import host_target

WALL, REACH = 16 << 30, 4 << 30
"""Bytes. A reference of an instruction reaches 2 GiB (x86-64) or 4 GiB (Arm)."""
PIECE, LARGE = 32 << 10, 64 << 10
"""Bytes: the one piece that is free above the wall, and more than any other that is."""
NO_ACCESS, FAILED = 0, ctypes.c_void_p(-1).value

MODULE = f"""
@outside = external global i8
@constants = internal constant [4 x i64] [i64 100, i64 200, i64 300, i64 400]
@calls = internal global i64 0
@functions = internal constant [1 x ptr] [ptr @constant]

define internal i64 @constant(i64 %index) noinline nounwind prefix [{4 * LARGE} x i8] zeroinitializer {{
  %place = getelementptr [4 x i64], ptr @constants, i64 0, i64 %index
  %value = load i64, ptr %place
  ret i64 %value
}}

define i64 @under_test() nounwind {{
  %before = load volatile i64, ptr @calls
  %now = add i64 %before, 1
  store volatile i64 %now, ptr @calls
  %function = load volatile ptr, ptr @functions
  %constant = call i64 %function(i64 %now)
  %byte = load volatile i8, ptr @outside
  %imported = zext i8 %byte to i64
  %sum = add i64 %constant, %imported
  ret i64 %sum
}}
"""
"""Refers to constants, to a variable, to a table of functions and from it, and to what is imported."""


def tear() -> None:
    """Leave free what the picture above shows."""
    system = ctypes.CDLL(None)
    system.mmap.restype = ctypes.c_void_p
    system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    system.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    def take(nbytes: int) -> int:
        address = system.mmap(None, nbytes, NO_ACCESS, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        assert address != FAILED, "no addresses left"
        return int(address)

    wall, size = take(WALL), WALL
    while size >= LARGE:
        if take(size) < wall:
            size //= 2
    system.munmap(wall + WALL - PIECE, PIECE)
    small, large = take(PIECE), take(LARGE)
    assert small - large > REACH, f"small and large pieces lie {small - large} bytes apart"
    system.munmap(small, PIECE)


def main(*, windows: bool) -> None:
    target, outside = host_target(), ctypes.c_uint8(7)
    if windows:
        target = replace(target, triple=f"{target.triple.split('-')[0]}-pc-windows-msvc-elf")
        compiling._jit = binding.create_lljit_compiler
    code = compiling.compile_object(MODULE, target)
    a = np.full((200, 300), 2, np.float32)
    tear()
    linked = compiling.load_object(code, ["under_test"], {"outside": ctypes.addressof(outside)})
    under_test = ctypes.CFUNCTYPE(ctypes.c_int64)(linked.addresses["under_test"])
    assert [under_test(), under_test()] == [207, 307]
    if not windows:
        assert (gemmlab.gemm(a, a.T) == 1200).all()


if __name__ == "__main__":
    main(windows="windows" in sys.argv[1:])
