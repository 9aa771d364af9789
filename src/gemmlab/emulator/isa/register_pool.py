"""setmaxnreg: warps release registers to their block's pool and take registers from it."""

from __future__ import annotations

from gemmlab.emulator.events import NOTE
from gemmlab.emulator.form import Form
from gemmlab.emulator.instruction_layout import Kind
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import Block, Status, Warp
from gemmlab.emulator.raw import Raw
from gemmlab.ir.types import I8, I64, VOID

LEAST = 24
"""Least number of registers for each thread that setmaxnreg can set."""
GROWS, SHRINKS, NEVER = range(3)
"""`extra` of a `Kind.REGISTERS` event: a release to a higher number, a request for a lower number, or a request that
the pool can never meet.
"""


@opcode("USETMAXREG")
def usetmaxreg(x: Form) -> None:
    """Release registers (`DEALLOC`), or take registers if the pool has enough (`TRY_ALLOC`).

    A predicate is true if they were taken; otherwise the compiled code tries again.
    """
    x.allow("DEALLOC", "TRY_ALLOC", "CTAPOOL")
    done = x.dest_predicates(1)
    wanted = x.source().zext("i64")
    fn, block = x.fn, x.block
    present, pool = Lanes(x.warp.load(Warp.MAXIMUM, I64)), Lanes(block.load(Block.POOL, I64))
    if x.has("DEALLOC"):
        with fn.when(wanted.gt(present).value):
            _note(x, wanted, GROWS)
        _move(x, present, wanted, pool)
        return
    with fn.when(wanted.lt(present).value):
        _note(x, wanted, SHRINKS)
    enough = (wanted - present).le(pool)
    for predicate in done:
        predicate.set(enough)
    status = fn.var(x.constant(0).value.type, Status.GO)
    with fn.choose(enough.value) as choice:
        with choice.yes():
            _move(x, present, wanted, pool)
        with choice.no():
            with fn.when((wanted - present).gt(pool + _releasable(x)).value):
                _note(x, wanted, NEVER)
            status.set(Status.SPENT)
    x.status(status.read())


def _move(x: Form, present: Lanes, wanted: Lanes, pool: Lanes) -> None:
    x.block.store(Block.POOL, (pool + present - wanted).value, I64)
    x.warp.store(Warp.MAXIMUM, wanted.value, I64)
    x.block.add(Block.EPOCH, 1)


def _releasable(x: Form) -> Lanes:
    """Return the sum, over the block's other warps that have not ended, of the registers that each of a warp's threads
    can still release.
    """
    fn, block = x.fn, x.block
    first, size = fn.cast(block.load(Block.WARPS, I64), I8), block.load(Block.WARP_SIZE, I64)
    total = fn.var(I64, 0)
    with fn.range(block.load(Block.WARP_COUNT, I64)) as index:
        warp = Raw(fn, first + index * size)
        other = Lanes(index).ne(Lanes(x.warp.load(Warp.INDEX, I64)))
        lives = Lanes(warp.load(Warp.STATE)).ne(Status.DONE)
        with fn.when((other & lives).value):
            total += (Lanes(warp.load(Warp.MAXIMUM, I64)) - LEAST).smax(0).value
    return Lanes(total.read())


def _note(x: Form, wanted: Lanes, why: int) -> None:
    x.service("note", VOID, NOTE, Kind.REGISTERS, 0, wanted.value, why, -1)
