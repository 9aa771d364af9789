"""Out-of-line code behind the end of a kernel, where ptxas puts the waits of warp-level functions in divergent warps.

Its line information is that of unrelated neighbours; the instruction that branches there has the line of the call.
"""

from __future__ import annotations

from collections.abc import Sequence

from gemmlab.sass.instruction import Instruction

_NEAR = 8
"""The most instructions between the start of code that stands out of line and its wait."""


def call_site(code: Sequence[Instruction], site: int) -> int:
    """Return the index of the instruction whose source line is that of the wait at index `site`.

    It is `site` itself if the wait is in line, else the instruction that leads to the out-of-line piece: a call
    (sm_80), or a branch that only divergent lanes take (`BRA.DIV`).
    """
    for place, instruction in enumerate(code[:site]):
        leads = instruction.opcode == "CALL" or (instruction.opcode == "BRA" and "DIV" in instruction.modifiers)
        target = next((operand.value // 16 for operand in instruction.operands if operand.kind == "label"), -1)
        if leads and site - _NEAR <= target <= site and target > place:
            return place
    return site
