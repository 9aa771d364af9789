"""Check that a function uses no register that the hardware does not give it.

A cubin states a number of registers a thread, and two of them are the hardware's own: ptxas states three more than the
highest index, for sm_80 and later. With fewer a GPU ends the kernel with "Warp Out-of-range Address" or "illegal
instruction"; neither names the register.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.core.errors import UsageError
from gemmlab.sass.cells import UNIFORM
from gemmlab.sass.instruction import Instruction, SassFunction
from gemmlab.sass.register_accesses import accesses_of

RESERVE = 2
"""Registers of those stated that code may not use."""
_FIRST_ARCH = 80


@dataclass(frozen=True, slots=True)
class Excess:
    """A function whose code uses a register beyond its room."""

    instruction: Instruction
    """The first that uses the highest register."""
    register: int
    """The highest register that the code uses."""
    stated: int
    """Number of registers a thread that the cubin states."""

    @property
    def reason(self) -> str:
        """One sentence with both numbers."""
        return (
            f"the cubin states {self.stated} registers a thread, and code that uses R{self.register} needs "
            f"{self.register + 1 + RESERVE}: the hardware keeps {RESERVE}"
        )


def excess(function: SassFunction, arch: str, stated: int) -> Excess | None:
    """Return what is beyond the registers that a cubin states for a function; `None` if nothing is.

    Raises `UnknownAccessError` if the registers of an instruction are not known.
    """
    if int(arch.removeprefix("sm_").rstrip("af")) < _FIRST_ARCH:
        return None
    highest, first = -1, None
    for instruction in function.instructions:
        accesses = accesses_of(instruction)
        for access in (*accesses.reads, *accesses.writes):
            for cell in access.cells:
                if highest < cell < UNIFORM:
                    highest, first = cell, instruction
    if first is None or highest < stated - RESERVE:
        return None
    return Excess(first, highest, stated)


def require_room(function: SassFunction, arch: str, stated: int, name: str) -> None:
    """Raise `UsageError` if a function uses more registers than its cubin, called `name`, states."""
    found = excess(function, arch, stated)
    if found is not None:
        raise UsageError(f"{name}: {found.instruction.address:#06x} {found.instruction.text}: {found.reason}")
