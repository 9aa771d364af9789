"""Deadlocks at setmaxnreg: warps that wait for registers that no other warp releases any more."""

from __future__ import annotations

from collections.abc import Iterator

from gemmlab.core.hazard import Hazard
from gemmlab.emulator import warpgroup_words
from gemmlab.emulator.asynchronous.warp_words import warps_in_words
from gemmlab.emulator.geometry import Geometry
from gemmlab.emulator.hazard_order import Rank, Ranked
from gemmlab.emulator.hazard_words import file_of, instruction_at, line_of, position
from gemmlab.emulator.image import Image, plain_name
from gemmlab.emulator.instruction_layout import Event, Kind
from gemmlab.emulator.layout import LANES
from gemmlab.emulator.machine import Outcome

_LOOP = 6
"""Largest number of instructions from a request for registers to the branch that repeats it."""


def register_waits(image: Image, geometry: Geometry, outcome: Outcome) -> Iterator[Ranked]:
    """Yield a hazard for each instruction that requests registers and at which warps wait in a deadlock.

    It names the warps of the first block that waits there. After any event of setmaxnreg (`Kind.REGISTERS`) the result
    is empty, because the event is reported instead.
    """
    if outcome.stopped != "deadlock" or any(event[Event.KIND // 8] == Kind.REGISTERS for event in outcome.events):
        return
    waits: dict[tuple[int, int], list[int]] = {}
    for block, warp, place in outcome.blocked:
        before = [site for site in range(max(place - _LOOP, 0), place + 1) if _requests(image, site)]
        if before:
            waits.setdefault((block, before[-1]), []).append(warp)
    first = {site: (block, warps) for (block, site), warps in reversed(waits.items())}
    for site, (block, warps) in first.items():
        wanted = next((each.value for each in instruction_at(image, site).operands if each.kind == "imm"), 0)
        hazard = Hazard(
            kind=warpgroup_words.NAMES[Kind.REGISTERS], kernel=plain_name(image.function.name),
            block=position(block, geometry.grid), thread=position(warps[0] * LANES, geometry.threads), address=None,
            file=file_of(image, site), line=line_of(image, site), instruction=instruction_at(image, site).address,
            message=f"setmaxnreg.inc to {wanted} registers: {warps_in_words(warps)} of the block wait for more than its"
            " pool has, and no other warp releases any",
        )  # fmt: skip
        yield Ranked(hazard, Rank.END, site, subject="registers")


def _requests(image: Image, site: int) -> bool:
    instruction = instruction_at(image, site)
    return instruction.opcode == "USETMAXREG" and "TRY_ALLOC" in instruction.modifiers
