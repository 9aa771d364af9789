"""Convergence barriers and warp-level synchronisation."""

from __future__ import annotations

from gemmlab.emulator.events import NOTE
from gemmlab.emulator.form import Form
from gemmlab.emulator.instruction_layout import Insn, Kind
from gemmlab.emulator.isa.control import branch, hold, leave, narrowed, push
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES, Status, Wait, Warp
from gemmlab.emulator.warp_syncs import NOT_NAMED
from gemmlab.ir.types import I32, I64, VOID


@opcode("BSSY")
def bssy(x: Form) -> None:
    d = x.dest_barrier()
    x.take("label")
    d.set(Lanes(x.exec_bits).splat(LANES))


@opcode("BREAK")
def break_(x: Form) -> None:
    """Remove lanes from a convergence barrier, in the masks of all lanes that entered it together with them.

    Other lanes may have entered another barrier of the same number, in a function further up the call stack.
    """
    fn, lanes = x.fn, narrowed(x)
    _operand, record = x.take("barrier")
    row = x.warp.at(x.field(record), I32)
    entered = Lanes(fn.load(row, LANES))
    left = fn.var(I32, lanes.value)
    with fn.loop() as done:
        rest = Lanes(left.read())
        fn.leave_if(done, rest.eq(0).value)
        first = x.pick(entered, rest.call_flag("cttz", flag=False))
        together = entered.eq(first.splat(LANES))
        leaving = rest & together.mask_bits()
        known = Lanes(fn.load(row, LANES))
        fn.store(row, together.select(known & (~leaving).splat(LANES), known).value)
        left.set((rest & ~leaving).value)


@opcode("BSYNC")
def bsync(x: Form) -> None:
    """Wait for all lanes that entered the convergence barrier together with those of the running group.

    The group may have lanes that entered at different times. Those that did not enter with the first lane execute the
    instruction again.
    """
    lanes = narrowed(x)
    _operand, record = x.take("barrier")
    row = x.field(record)
    entered_with = Lanes(x.fn.load(x.warp.at(row, I32), LANES))
    needed = x.first_active(entered_with)
    together = lanes & entered_with.eq(needed.splat(LANES)).mask_bits()
    others = lanes & ~together
    with x.fn.when(others.ne(0).value):
        push(x, x.warp.load(Warp.PC, I64) + -1, others, Wait.READY, 0)
        leave(x, others)
    missing = needed & ~together & ~Lanes(x.warp.load(Warp.EXITED))
    status = x.fn.var(I32, Status.GO)
    with x.fn.when(missing.ne(0).value):
        # The barrier's number comes from the record: instructions of the same form share this handler.
        hold(x, together, Wait.CONVERGE, ((Lanes(row) - Warp.CONVERGENCE) >> 7).value)
        status.set(Status.SWITCH)
    x.status(status.read())


@opcode("WARPSYNC")
def warpsync(x: Form) -> None:
    """Wait for all lanes of a mask, with `.ALL` for all lanes that have not ended.

    With `.COLLECTIVE`, the lanes execute the code up to ENDCOLLECTIVE together. It records an event for lanes that
    arrive and are not in the mask.
    """
    named = x.left and not x.has("ALL")
    mask = x.first_active(x.source()) if named else Lanes(x.fn.constant(-1, I32))
    if x.has("COLLECTIVE"):
        x.take("label")
    x.warp.add(Warp.SYNCS, 1)
    lanes = Lanes(x.exec_bits)
    strangers = lanes & ~mask
    with x.fn.when(strangers.ne(0).value):
        first = strangers.call_flag("cttz", flag=True).zext("i64").value
        x.service("note", VOID, NOTE, Kind.WARP_SYNC, first, strangers.zext("i64").value, NOT_NAMED, -1)
    missing = mask & ~lanes & ~Lanes(x.warp.load(Warp.EXITED))
    status = x.fn.var(I32, Status.GO)
    with x.fn.when(missing.ne(0).value):
        hold(x, lanes, Wait.WARPSYNC, mask.zext("i64").value)
        status.set(Status.SWITCH)
    x.status(status.read())


@opcode("ENDCOLLECTIVE")
def endcollective(x: Form) -> None:
    """Go on at the label of the preceding WARPSYNC.COLLECTIVE; the decoder has found its index."""
    branch(x, Lanes(x.exec_bits), x.insn.load(Insn.TARGET, I64))


@opcode("BMOV")
def bmov(x: Form) -> None:
    """Copy a convergence barrier to a register or another barrier, or a register to a barrier; `.CLEAR` empties the
    barrier that is read.
    """
    if _is_barrier(x):
        d = x.dest_barrier()
        if not _is_barrier(x):
            d.set(x.source())
            return
    else:
        d = x.dest()
    _operand, record = x.take("barrier")
    row = x.warp.at(x.field(record), I32)
    value = Lanes(x.fn.load(row, LANES))
    d.set(value)
    if x.has("CLEAR"):
        x.fn.store(row, x.execute.select(value.like(0), value).value)


def _is_barrier(x: Form) -> bool:
    operand = x.peek()
    return operand is not None and operand.kind == "barrier"
