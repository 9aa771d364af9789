"""Range checks of the numbers in instructions (registers, barriers, ...), so that handlers need not check them.

Intact machine code has only valid numbers. Damaged code may have any number, and a handler would read or write memory
at the offset that follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gemmlab.core.errors import CompileError
from gemmlab.emulator.launch_layout import Launch
from gemmlab.sass.instruction import PT, RZ, UNRESOLVED, URZ, Instruction, Operand
from gemmlab.sass.vector_registers import gmma_registers

BARRIERS = 16
_MOST = {"reg": RZ, "ureg": URZ, "pred": PT, "upred": PT, "barrier": BARRIERS - 1}


def require_named(function: str, instructions: Iterable[Instruction]) -> None:
    """Raise `CompileError` for the first instruction with a register, predicate, convergence barrier or constant out of
    range, or with a guard that is no predicate.
    """
    for instruction in instructions:
        guard = instruction.predicate
        if guard is not None and guard.kind not in {"pred", "upred"}:
            raise CompileError(f"{function}: damaged: the guard of {instruction.text!r} is no predicate")
        for operand in (*(() if guard is None else (guard,)), *instruction.operands):
            if why := _missing(operand):
                raise CompileError(f"{function}: damaged: {instruction.text!r} names {why}, which there is not")


def _missing(operand: Operand) -> str:
    """Return words for the part of an operand that is out of range; empty if none is."""
    most = _MOST.get(operand.kind)
    if most is not None and not 0 <= operand.index <= most:
        return f"{operand.kind} {operand.index}"
    if operand.kind in {"mem", "const"}:
        for index, limit in ((operand.base, RZ), (operand.ubase, URZ), (operand.desc, URZ)):
            if not 0 <= index <= limit:
                return f"register {index}"
    if operand.kind == "const" and operand.bank != UNRESOLVED:
        if not 0 <= operand.bank < Launch.BANKS:
            return f"constant bank {operand.bank}"
        # An offset added to a register is checked at run time.
        if (operand.base, operand.ubase) == (RZ, URZ) and not 0 <= operand.value < Launch.BANK_BYTES:
            return f"a constant at {operand.value:#x}"
    return ""


def highest_register(instructions: Sequence[Instruction]) -> int:
    """Return the highest number of a vector register that the instructions name, except RZ; -1 if they name none.

    A wide operand counts with its first register only, but one of a warpgroup multiplication with all of them.
    """
    return max((index for instruction in instructions for index in _registers(instruction)), default=-1)


def most_registers(instructions: Sequence[Instruction], at_start: int) -> int:
    """Return the largest number of registers that a thread may have, from 1 to 255.

    It is `at_start`, or a larger number in a setmaxnreg.
    """
    requests = (
        operand.value
        for instruction in instructions
        if instruction.opcode == "USETMAXREG"
        for operand in instruction.operands
        if operand.kind == "imm"
    )
    return min(max(at_start, 1, *requests), RZ)


def _registers(instruction: Instruction) -> Iterator[int]:
    spans = gmma_registers(instruction)
    if spans is not None:
        yield from (span[-1] for span in spans if span)
        return
    for operand in instruction.operands:
        index = operand.index if operand.kind == "reg" else operand.base if operand.kind in {"mem", "const"} else RZ
        if index != RZ:
            yield index
