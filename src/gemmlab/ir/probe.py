"""The interface for probes of running kernels: code that a module runs in addition to its own.

A program's target names a probe after the vector width and the processor: `x86_64:16:sapphirerapids:packing-clock`.
Code for a target without a probe is the same as without this file.
"""

from __future__ import annotations

from gemmlab.ir.function import Function
from gemmlab.ir.types import I64, Type
from gemmlab.ir.values import Operand, Value

STATE = "gemmlab_probe"
"""Symbol of the probe's memory, supplied when the code is loaded."""
_PACKING = "pack_"


def packs(callee: Function) -> bool:
    """Return whether a function packs operands into the order in which they are read."""
    return callee.name.startswith(_PACKING)


def accessed_bytes(fn: Function, type_: Type, mask: Value | None) -> Operand:
    """Return the number of bytes that an access moves. The active lanes of a mask are assumed to be its first ones."""
    each = type_.bits // 8
    if mask is None:
        return type_.lanes * each
    lanes = mask.type.lanes
    bits = Type(f"i{lanes}")
    fn.declare("llvm.ctpop.i64", "declare i64 @llvm.ctpop.i64(i64)")
    word = fn.zero_extend(fn.emit(bits, f"bitcast {mask.type} {mask.name} to {bits}"))
    return fn.emit(I64, f"call i64 @llvm.ctpop.i64(i64 {word.name})") * each
