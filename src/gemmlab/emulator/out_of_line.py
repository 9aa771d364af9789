"""Out-of-line code after the end of a kernel: ptxas puts the waits of warp-level functions for divergent warps there.

Its line information is that of unrelated code before it. The instruction that branches there has the line of the call.
"""

from __future__ import annotations

from collections.abc import Sequence

from gemmlab.sass.instruction import Instruction

_NEAR = 8
"""Largest number of instructions between the start of out-of-line code and its wait."""


def call_site(code: Sequence[Instruction], site: int) -> int:
    """Return the index of the instruction with the right source line for the wait at index `site`.

    It is `site` if the wait is in line, else the instruction that goes to the out-of-line code: a call (sm_80), or a
    branch that only divergent lanes take (`BRA.DIV`).
    """
    for place, instruction in enumerate(code[:site]):
        leads = instruction.opcode == "CALL" or (instruction.opcode == "BRA" and "DIV" in instruction.modifiers)
        target = next((operand.value // 16 for operand in instruction.operands if operand.kind == "label"), -1)
        if leads and site - _NEAR <= target <= site and target > place:
            return place
    return site
