"""Source lines of warpgroup matrix multiplications, such as HGMMA, taken from the PTX.

The line tables are of no use for them: there ptxas gives each the line of the fence before it. The PTX is used if it
has as many multiplications as the machine code, of the same sizes and in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from gemmlab.sass.instruction import RZ, Instruction, SassFunction
from gemmlab.toolchain.ptxas_log import body_of, place_in_source

MULTIPLY = re.compile(r"wgmma\.mma_async\S*\s+\{([^}]*)\}\s*,\s*(?:\{([^}]*)\})?")
"""Pattern of a warpgroup multiplication in PTX.

Group 1 has its accumulators, group 2 the registers of A, `None` if A is in shared memory.
"""
_SIZE = re.compile(r"\.m64n(\d+)k(\d+)\.")


def gmma_lines(function: SassFunction, ptx: str) -> dict[int, int]:
    """Return the number of the PTX line of each warpgroup multiplication, by the instruction's address.

    The result is empty if the multiplications of PTX and machine code differ in number, sizes or order.
    """
    code = [instruction for instruction in function.instructions if _multiplies(instruction)]
    if not code:
        return {}
    stated = [(number, _SIZE.search(text)) for number, text in body_of(ptx, function.name) if MULTIPLY.search(text)]
    sizes = [f"64x{size[1]}x{size[2]}" if size else "" for _number, size in stated]
    if sizes != [instruction.modifiers[0] for instruction in code]:
        return {}
    return {instruction.address: number for instruction, (number, _size) in zip(code, stated, strict=True)}


def _multiplies(instruction: Instruction) -> bool:
    first = instruction.operands[0] if instruction.opcode in {"HGMMA", "QGMMA", "IGMMA"} else None
    # An instruction whose result is RZ multiplies nothing; it only ends a group.
    return first is not None and first.index != RZ


def relined(functions: Mapping[str, SassFunction], ptx: str) -> Mapping[str, SassFunction]:
    """Return the functions with the source lines of warpgroup multiplications replaced by those that the PTX names.

    A line stays if the PTX names none, or if `gmma_lines` finds no PTX line for the multiplication.
    """
    return {name: _relined(function, ptx) for name, function in functions.items()}


def _relined(function: SassFunction, ptx: str) -> SassFunction:
    lines = gmma_lines(function, ptx)
    if not lines:
        return function
    return replace(
        function,
        instructions=tuple(
            replace(each, line=place_in_source(ptx, lines[each.address]) or each.line)
            if each.address in lines
            else each
            for each in function.instructions
        ),
    )
