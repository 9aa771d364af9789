"""Checks at the end of lanes: warp-level synchronisations that still wait for them, and multiplications in flight.

It is no error if a lane named in a mask ended before others began to wait: CUDA requires only lanes that have not
ended to arrive.
"""

from __future__ import annotations

from gemmlab.emulator.instruction_layout import Insn, Kind
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import Launch
from gemmlab.emulator.layout import Wait, Warp
from gemmlab.emulator.loop import GROUP_ARGUMENT, GROUP_LANES, GROUP_PC, GROUP_WAIT, group_at
from gemmlab.emulator.raw import Raw
from gemmlab.emulator.wgmma_flight import UNFINISHED
from gemmlab.emulator.wgmma_layout import Flight
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64, pointer

ENDED = (("warp", pointer(I8)), ("insn", pointer(I8)), ("lanes", I32))
NAMED_BUT_ENDED, NOT_NAMED = 0, 1
"""`extra` of an event of a synchronisation: lanes in its mask have ended, or lanes arrived that are not in its mask.
`address` is the mask of these lanes."""


def emit_ended(fn: Function, module: Module) -> None:
    """Emit the body of `ended(warp, insn, lanes)`, called when `lanes` end at `insn`.

    It reports each group that still waits for them, and multiplications in flight when the last lane of a warp ends.
    """
    warp_ptr, insn_ptr, lanes = fn.args
    warp, insn = Raw(fn, warp_ptr), Raw(fn, insn_ptr)
    launch = Raw(fn, fn.cast(warp.load(Warp.LAUNCH, I64), I8))
    code = fn.cast(launch.load(Launch.CODE, I64), I8)
    with fn.range(warp.load(Warp.GROUPS, I64)) as index:
        group = group_at(fn, warp, index)
        named = Lanes(group.load(GROUP_ARGUMENT, I64)).trunc("i32") & Lanes(lanes)
        waits = Lanes(group.load(GROUP_WAIT)).eq(Wait.WARPSYNC)
        with fn.when((waits & named.ne(0)).value):
            # A waiting group's position is the instruction after its wait.
            site = code + (group.load(GROUP_PC, I64) - 1) * Insn.SIZE
            first = fn.zero_extend(Lanes(group.load(GROUP_LANES)).call_flag("cttz", flag=False).value)
            who, end = fn.zero_extend(named.value), insn.load(Insn.INDEX, I64)
            fn.call(module["note"], warp_ptr, site, Kind.WARP_SYNC, first, who, NAMED_BUT_ENDED, end)
    with fn.when(((Lanes(warp.load(Warp.EXITED)).eq(-1)) & Lanes(warp.load(Warp.FLIGHT, I64)).ne(0)).value):
        flying = Raw(fn, fn.cast(warp.load(Warp.FLIGHT, I64), I8)).load(Flight.COUNT, I64)
        with fn.when(flying.differs(0)):
            fn.call(module["note"], warp_ptr, insn_ptr, Kind.WARPGROUP, 0, flying, UNFINISHED, -1)
    fn.finish()
