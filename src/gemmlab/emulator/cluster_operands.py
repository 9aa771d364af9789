"""Races of a warpgroup multiplication's reads of shared memory with stores there by other blocks of the cluster."""

from __future__ import annotations

from gemmlab.emulator.cluster_races import FAR, SHARED, WRITE_BY, WRITE_CLOCK, WRITE_SITE, note_race
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import ROW, Block, Warp
from gemmlab.emulator.raw import Raw
from gemmlab.emulator.wgmma_races import Elements
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64


def emit_operand_far(fn: Function, module: Module) -> None:
    """Emit the body of `operand_far(...)` (arguments: `OPERAND_RACE`), called when a multiplication is issued.

    It reports stores of other blocks to the operand's 16 bytes at `address` if nothing orders them before the issue.
    """
    warp, insn, address, operand = Raw(fn, fn.args[0]), Raw(fn, fn.args[1]), fn.args[3], fn.args[4]
    own = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    with fn.when((Lanes(own.load(Block.FOREIGN, I64)).eq(0) | Lanes(own.load(Block.VISITED, I64)).eq(0)).value):
        fn.ret()
    count, low = own.load(Block.CLUSTER, I64), own.load(Block.SHARED_LOW, I64)
    knows = own.load(Block.FOREIGN, I64) + warp.load(Warp.INDEX, I64) * count * ROW
    with Elements(fn, own, address).each() as (_element, at), fn.range(count) as rank:
        where = (Lanes(at - low) >> Lanes(own.load(Block.RACE_SHIFT, I64))).value
        entry = Raw(fn, fn.cast(own.load(Block.FAR, I64) + (where * count + rank) * FAR, I8))
        by = Lanes(entry.load(WRITE_BY))
        known = Lanes(fn.cast(knows + rank * ROW, I32)[(by >> 5).zext("i64").value])
        far = Lanes(rank).ne(Lanes(own.load(Block.RANK, I64)))
        with fn.when((far & Lanes(entry.load(WRITE_CLOCK)).gt(known)).value):
            block = Raw(fn, own.base + (rank - own.load(Block.RANK, I64)) * Block.SIZE).load(Block.LINEAR, I64)
            extra = (by.zext("i64") << 32).value + operand + (SHARED + 16)
            note_race(fn, module, warp, insn, (0, at, extra), (block, Lanes(entry.load(WRITE_SITE)).zext("i64").value))
    fn.finish()
