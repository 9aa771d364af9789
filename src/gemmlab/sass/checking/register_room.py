"""Check that a function uses no more registers than its cubin allows, and that descriptors are pairs of registers.

A cubin states a number of registers a thread, and the hardware reserves two of them: for sm_80 and later, ptxas states
the highest index plus three. If a cubin states fewer, a GPU ends the kernel with "Warp Out-of-range Address" or
"illegal instruction", and does not name the register.

A descriptor of memory is two uniform registers, the first of them even. A GPU ends code with an odd one with "illegal
instruction", too. ptxas 13.0.88 writes such an LDGSTS where many copies have a cache policy; 13.5.37 does not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gemmlab.core.errors import UsageError
from gemmlab.sass.cells import UNIFORM
from gemmlab.sass.instruction import Instruction, SassFunction
from gemmlab.sass.register_accesses import ASYNCHRONOUS, accesses_of

RESERVE = 2
"""Registers of the stated number that the hardware reserves."""
_FIRST_ARCH = 80
_ODD_DESCRIPTOR = re.compile(r"\bdesc\[UR[0-9]*[13579]\]")


@dataclass(frozen=True, slots=True)
class Excess:
    """A function whose code uses more registers than its cubin allows."""

    instruction: Instruction
    """The first instruction that uses the highest register."""
    register: int
    """The highest register that the code uses."""
    stated: int
    """Number of registers a thread that the cubin states."""

    @property
    def reason(self) -> str:
        """One sentence with the stated number of registers and the number that the code needs."""
        return (
            f"the cubin states {self.stated} registers a thread, and code that uses R{self.register} needs "
            f"{self.register + 1 + RESERVE}: the hardware keeps {RESERVE}"
        )


def excess(function: SassFunction, arch: str, stated: int, *, partly: bool = False) -> Excess | None:
    """Return the excess of a function that needs more than `stated` registers a thread, else `None`.

    `stated` is the cubin's number, of which the hardware keeps `RESERVE`. Architectures before sm_80 are not checked.
    Raises `UnknownAccessError` if the registers of an instruction are not known. With `partly`, those of asynchronous
    ones do not count.
    """
    if int(arch.removeprefix("sm_").rstrip("af")) < _FIRST_ARCH:
        return None
    highest, first = -1, None
    for instruction in function.instructions:
        if partly and instruction.opcode in ASYNCHRONOUS:
            continue
        accesses = accesses_of(instruction)
        for access in (*accesses.reads, *accesses.writes):
            for cell in access.cells:
                if highest < cell < UNIFORM:
                    highest, first = cell, instruction
    if first is None or highest < stated - RESERVE:
        return None
    return Excess(first, highest, stated)


def odd_descriptors(function: SassFunction) -> list[Instruction]:
    """Return the instructions whose descriptor begins at an odd uniform register: no GPU runs them."""
    return [one for one in function.instructions if _ODD_DESCRIPTOR.search(one.text)]


def require_room(function: SassFunction, arch: str, stated: int, name: str) -> None:
    """Raise `UsageError` if a function uses more registers than its cubin states. `name` begins the message."""
    found = excess(function, arch, stated)
    if found is not None:
        raise UsageError(f"{name}: {found.instruction.address:#06x} {found.instruction.text}: {found.reason}")
