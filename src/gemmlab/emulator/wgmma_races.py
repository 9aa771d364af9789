"""Races of a warpgroup multiplication's operands in shared memory."""

from __future__ import annotations

from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I64, pointer

OPERAND_RACE = (("warp", pointer(I8)), ("insn", pointer(I8)), ("flight", pointer(I8)), ("address", I64))


def emit_operand_race(fn: Function, module: Module) -> None:
    """Body of `operand_race(warp, insn, entry, address)`: check 16 bytes that are read from shared memory."""
    fn.finish()
