"""The interface for probes of running kernels: code that a module runs in addition to its own.

If a program has a probe, the name of its target ends with the probe's: `x86_64:16:sapphirerapids:packing-clock`. A
program without a probe contains no code for one.
"""

from __future__ import annotations

from gemmlab.ir.function import Function
from gemmlab.ir.types import I64, Type
from gemmlab.ir.values import Operand, Value

STATE = "gemmlab_probe"
"""Symbol of the probe's memory, supplied when the code is loaded."""
_PACKING = "pack_"


def packs(callee: Function) -> bool:
    """Return whether a function is one of those that pack operands for the register tile: their names begin with
    `pack_`.
    """
    return callee.name.startswith(_PACKING)


def accessed_bytes(fn: Function, type_: Type, mask: Value | None) -> Operand:
    """Emit the number of bytes that an access moves, and return it; lanes that the mask excludes do not count.

    Callers take them as the first bytes from the address on, so the lanes must be the first ones.
    """
    each = type_.bits // 8
    if mask is None:
        return type_.lanes * each
    lanes = mask.type.lanes
    bits = Type(f"i{lanes}")
    fn.declare("llvm.ctpop.i64", "declare i64 @llvm.ctpop.i64(i64)")
    word = fn.zero_extend(fn.emit(bits, f"bitcast {mask.type} {mask.name} to {bits}"))
    return fn.emit(I64, f"call i64 @llvm.ctpop.i64(i64 {word.name})") * each
