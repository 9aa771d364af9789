"""Read special registers (S2R, CS2R, S2UR): positions of thread, warp and block, masks of lanes, memory windows,
clocks.
"""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.emulator.form import Form, split
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import LOCAL_WINDOW, SHARED_WINDOW
from gemmlab.emulator.layout import LANES, ROW, Block, Warp
from gemmlab.ir.types import I32, I64

_ROWS = {"SR_TID.X": Warp.TID, "SR_TID.Y": Warp.TID + ROW, "SR_TID.Z": Warp.TID + 2 * ROW, "SR_LANEID": Warp.LANE}
_BLOCK = {"SR_CTAID.X": Block.CTAID, "SR_CTAID.Y": Block.CTAID + 4, "SR_CTAID.Z": Block.CTAID + 8,
          "SR_CgaCtaId": Block.RANK}  # fmt: skip
_CONSTANTS = {
    "SRZ": 0,
    # The emulator has only one multiprocessor.
    "SR_VIRTUALSMID": 0,
    "SR_SWINHI": SHARED_WINDOW,
    "SR_SWINLO": 0,
    "SR_LWINHI": LOCAL_WINDOW,
    "SR_LWINLO": 0,
    # Lower end of the stack; unoptimised code compares its stack pointer with it.
    "SR_LMEMHIOFF": 0,
}
_MASKS: dict[str, Callable[[Lanes], Lanes]] = {
    "SR_EQMASK": lambda own: own,
    "SR_LTMASK": lambda own: own - 1,
    "SR_LEMASK": lambda own: own | (own - 1),
    "SR_GTMASK": lambda own: ~(own | (own - 1)),
    "SR_GEMASK": lambda own: ~(own - 1),
}
"""Masks of the lanes in a relation to this one (less, equal, ...), computed from the lane's own bit."""
_CLOCKS = ("SR_CLOCK", "SR_GLOBALTIMER")
_WARP_NUMBER = 8
"""Lowest bit of the warp's number in SR_VIRTID."""


@opcode("S2R", "CS2R", "S2UR")
def s2r(x: Form) -> None:
    """Copy a special register to a register; CS2R without `.32` copies it and the next one to a pair."""
    x.allow("32")
    d = x.dest()
    operand = x.skip()
    name = operand.name or operand.text
    if x.instruction.opcode == "CS2R" and not x.has("32"):
        if name not in {"SRZ", *(clock + "LO" for clock in _CLOCKS)}:
            raise x.refuse(f"a pair of special registers from {name}")
        d.set(x.constant(0, "i64") if name == "SRZ" else _clock(x))
        return
    value = _special(x, name)
    d.set(x.first_active(value) if d.operand.kind == "ureg" and value.lanes > 1 else value)


def _special(x: Form, name: str) -> Lanes:
    """Return a special register's 32 bits, in every lane or as a scalar."""
    if name in _ROWS:
        return Lanes(x.warp.load(_ROWS[name], I32, LANES))
    if name in _BLOCK:
        return Lanes(x.block.load(_BLOCK[name], I32))
    if name in _CONSTANTS:
        return x.constant(_CONSTANTS[name])
    if name in _MASKS:
        return _MASKS[name](x.constant(1) << Lanes(x.warp.load(Warp.LANE, I32, LANES)))
    if name == "SR_VIRTID":
        return Lanes(x.warp.load(Warp.INDEX, I64)).trunc("i32") << _WARP_NUMBER
    if name[:-2] in _CLOCKS:
        return split(_clock(x))[name.endswith("HI")]
    raise x.refuse(f"special register {name}")


def _clock(x: Form) -> Lanes:
    """Return the warp's clock: instructions that it executed before this turn, plus the number of its readings.

    So a loop that waits for the clock finds it changed within a turn.
    """
    now = x.warp.load(Warp.CLOCK, I64) + 1
    x.warp.store(Warp.CLOCK, now, I64)
    return Lanes(now)
