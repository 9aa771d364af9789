"""AMX: eight tile registers of 16 rows by 64 bytes, and functions that emit the instructions on them.

    C tile  16 x 16 float32       A tile  16 x 32 bfloat16          B tile  16 pairs of k x 16 columns
       C[i][j]                       A[i][0 .. 31]                     B[p][j] = b(2p, j), b(2p + 1, j)

`tdpbf16ps` adds 32 products to each element of C: chains of 16 multiply-adds over even and over odd k, which begin at
0, their sum, and that sum added to C. Each step rounds to nearest; subnormal numbers count as 0, as operands and as
results (Intel SDM, TDPBF16PS).
"""

from __future__ import annotations

from collections.abc import Sequence

from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.values import Value

ROWS = 16
ROW_BYTES = 64
TILE_BYTES = ROWS * ROW_BYTES
DEPTH = 32
"""Steps of k in one instruction."""
REGISTERS = 8
_CONFIG = "tile_config"


def define_shape(module: Module) -> None:
    """Define the constant that `configure` loads: all eight registers in full size."""
    bytes_ = [1, *[0] * 15, *[ROW_BYTES, 0] * REGISTERS, *[0] * 16, *[ROWS] * REGISTERS, *[0] * 8]
    listing = ", ".join(f"i8 {byte}" for byte in bytes_)
    module.variable(_CONFIG, f"internal constant [{len(bytes_)} x i8] [{listing}], align 64")


def configure(fn: Function) -> None:
    """Emit `ldtilecfg`: all registers get full size and become zeros. The thread has tile state until `release`."""
    _call(fn, "ldtilecfg", ("ptr",), (f"@{_CONFIG}",))


def release(fn: Function) -> None:
    """Emit `tilerelease`: the thread that runs it has no tile state afterwards."""
    _call(fn, "tilerelease", (), ())


def zero(fn: Function, register: int) -> None:
    """Emit the instruction that sets a register to zeros."""
    _call(fn, "tilezero", ("i8",), (str(register),))


def load(fn: Function, register: int, address: Value) -> None:
    """Emit the load of a tile of 1024 contiguous bytes at `address` into register number `register`."""
    _call(fn, "tileloadd64", ("i8", "ptr", "i64"), (str(register), address.name, str(ROW_BYTES)))


def store(fn: Function, register: int, address: Value, row_bytes: Value) -> None:
    """Emit the store of register number `register` to `address`, as a tile with rows `row_bytes` apart."""
    _call(fn, "tilestored64", ("i8", "ptr", "i64"), (str(register), address.name, row_bytes.name))


def multiply(fn: Function, into: int, left: int, right: int) -> None:
    """Emit the instruction that adds the product of an A tile and a B tile of bfloat16 to the C tile `into`."""
    _call(fn, "tdpbf16ps", ("i8", "i8", "i8"), (str(into), str(left), str(right)))


def _call(fn: Function, name: str, types: Sequence[str], arguments: Sequence[str]) -> None:
    whole = f"llvm.x86.{name}"
    fn.declare(whole, f"declare void @{whole}({', '.join(types)})")
    fn.line(f"call void @{whole}({', '.join(f'{t} {a}' for t, a in zip(types, arguments, strict=True))})")
