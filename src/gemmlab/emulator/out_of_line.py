"""Code that ptxas puts behind the end of a kernel: how a warp-level function waits where lanes have parted.

Its line information is that of whatever stands nearby; the instruction that leads there has the line of the call.
"""

from __future__ import annotations

from collections.abc import Sequence

from gemmlab.sass.instruction import Instruction

_NEAR = 8
"""Instructions between the start of such a piece and its wait, at most."""


def call_site(code: Sequence[Instruction], site: int) -> int:
    """The instruction whose line is that of the call which waits at `site`: `site` itself where it is in line.

    Such a piece is called (sm_80), or a branch that only parted lanes take (`BRA.DIV`) leads to it.
    """
    for place, instruction in enumerate(code[:site]):
        leads = instruction.opcode == "CALL" or (instruction.opcode == "BRA" and "DIV" in instruction.modifiers)
        target = next((operand.value // 16 for operand in instruction.operands if operand.kind == "label"), -1)
        if leads and site - _NEAR <= target <= site and target > place:
            return place
    return site
