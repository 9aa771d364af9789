"""Wrong reuse flags: the register is written between the flagged instruction and the next that reads it.

A flag keeps a source register in the operand cache, by operand place (a, b or c). The next instruction of the warp with
the same register in the same place reads the cache. If the register is written in between, the cache still has the old
value.
"""

from __future__ import annotations

from collections.abc import Iterator

from gemmlab.sass.blocks import FlowGraph
from gemmlab.sass.instruction import Instruction, Operand
from gemmlab.sass.register_accesses import UnknownAccessError, accesses_of, result_count

_PLACES = frozenset({"reg", "ureg", "imm", "const"})
_SECOND = frozenset({"MOV", "IABS"})
"""Opcodes whose only source is in place 1."""


def broken_reuse(graph: FlowGraph) -> Iterator[tuple[Instruction, Instruction, int]]:
    """Yield (flagged instruction, instruction that reads the old value, register) within each block.

    The cache is empty at the start of a block, and when an instruction has waited for a dependency barrier, before it
    reads its operands. An instruction whose registers are not known counts as one that writes none.
    """
    for block in graph.blocks:
        cached: dict[int, tuple[int, Instruction]] = {}
        stale: set[int] = set()
        for instruction in graph.function.instructions[block.start : block.stop]:
            if instruction.control.wait_mask:
                cached.clear()
            for place, operand in sources(instruction):
                entry = cached.pop(place, None)
                if entry is not None and entry[0] == operand.index and place in stale:
                    yield entry[1], instruction, operand.index
                if operand.reuse:
                    cached[place] = operand.index, instruction
                    stale.discard(place)
            written = _written(instruction)
            stale |= {place for place, (register, _) in cached.items() if register in written}


def sources(instruction: Instruction) -> Iterator[tuple[int, Operand]]:
    """Yield (operand place, operand) for each vector register among the sources in places 0, 1 and 2."""
    read = instruction.operands[result_count(instruction) :]
    operands = [operand for operand in read if operand.kind in _PLACES]
    for place, operand in enumerate(operands[:3], int(instruction.opcode in _SECOND)):
        if operand.kind == "reg":
            yield place, operand


def _written(instruction: Instruction) -> set[int]:
    try:
        return {cell for access in accesses_of(instruction).writes for cell in access.cells}
    except UnknownAccessError:
        return set()
