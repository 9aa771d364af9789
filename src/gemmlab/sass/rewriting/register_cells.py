"""Cells that an instruction reads and writes, as sets."""

from __future__ import annotations

from functools import lru_cache

from gemmlab.sass.cells import UNIFORM
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.register_accesses import accesses_of


@lru_cache(maxsize=1 << 14)
def cells(instruction: Instruction, *, writes: bool) -> frozenset[int]:
    """Return the cells that an instruction writes, or those that it reads if `writes` is false."""
    accesses = accesses_of(instruction)
    return frozenset(cell for access in (accesses.writes if writes else accesses.reads) for cell in access.cells)


def registers(instruction: Instruction, *, writes: bool) -> frozenset[int]:
    """Return the vector registers that an instruction writes, or those that it reads if `writes` is false."""
    return frozenset(cell for cell in cells(instruction, writes=writes) if cell < UNIFORM)
