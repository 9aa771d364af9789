"""The lines of warpgroup multiplications: ptxas gives them that of the fence before them.

Where the PTX has as many multiplications of the same sizes in the same order, theirs are right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gemmlab.sass.instruction import RZ, Instruction, SassFunction
from gemmlab.toolchain.ptxas_log import place_in_source

MULTIPLY = re.compile(r"wgmma\.mma_async\S*\s+\{([^}]*)\}\s*,\s*(?:\{([^}]*)\})?")
"""A multiplication: its accumulators, and perhaps its registers of A."""
_SIZE = re.compile(r"\.m64n(\d+)k(\d+)\.")
_ENTRY = re.compile(r"\.entry\s+(\w+)\s*\(")


def body_of(ptx: str, function: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a function with their numbers from 1."""
    inside = False
    for number, line in enumerate(ptx.splitlines(), 1):
        if entry := _ENTRY.search(line):
            inside = entry[1] == function
        elif inside:
            yield number, line


def gmma_lines(function: SassFunction, ptx: str) -> dict[int, int]:
    """Return the line of PTX of each multiplication by its address; empty if they do not agree."""
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
    # Without a result it only closes a group.
    return first is not None and first.index != RZ


def relined(functions: Mapping[str, SassFunction], ptx: str) -> Mapping[str, SassFunction]:
    """Return the functions with the lines of their multiplications taken from the PTX."""
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
