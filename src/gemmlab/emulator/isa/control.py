"""Branches and exits, which split a warp into groups of lanes; traps, fences, and instructions without effect here."""

from __future__ import annotations

from gemmlab.emulator.cluster_races import remember_fence
from gemmlab.emulator.events import NOTE
from gemmlab.emulator.form import Form
from gemmlab.emulator.global_races import fence
from gemmlab.emulator.instruction_layout import Insn, Kind
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES, Block, Status, Wait, Warp
from gemmlab.emulator.loop import PUSH
from gemmlab.emulator.warp_syncs import ENDED
from gemmlab.ir.types import I8, I32, I64, VOID, pointer
from gemmlab.ir.values import Value


@opcode("NOP")
def nop(x: Form) -> None:
    """Do nothing, but count as a warp-level synchronisation: `__syncwarp` compiles to NOP if the warp has converged."""
    x.warp.add(Warp.SYNCS, 1)


@opcode("YIELD", "NANOSLEEP", "ERRBAR", "CGAERRBAR", "CCTLL", "MEMBAR", "ACQBULK", "PREEXIT", "PMTRIG")
def hint(x: Form) -> None:
    """Ignore a memory-ordering or timing instruction: the emulator executes all accesses in order, and one grid after
    another (ACQBULK and PREEXIT are `griddepcontrol`). PMTRIG marks a point for profilers.

    A fence beyond the block is recorded for the detection of races.
    """
    if x.instruction.opcode == "MEMBAR" and not x.has("CTA"):
        fence(x.launch, x.block)
        remember_fence(x.fn, x.warp, x.block)
    while x.left:
        x.skip()


@opcode("BRA", "JMP")
def bra(x: Form) -> None:
    """Branch, in the lanes for which the predicate operands are true as well as the guard.

    `.DIV`: only if the group lacks a lane of the mask operand; `.CONV`: only if it lacks none; `.ANY`: all lanes of the
    group if any of them branches.
    """
    taken = narrowed(x)
    kept = Lanes(x.exec_bits) & ~taken
    x.insn.add(Insn.NOT_TAKEN, kept.call("ctpop").zext("i64").value)
    if x.has("ANY"):
        taken = taken.ne(0).select(Lanes(x.warp.load(Warp.ACTIVE)), 0)
    if x.has("DIV", "CONV"):
        operand = x.peek()
        # On sm_75 the mask operand may be missing; it is all lanes that have not ended.
        named = operand is not None and operand.kind != "label"
        mask = x.source().lane(0) if named else ~Lanes(x.warp.load(Warp.EXITED))
        whole = Lanes(x.warp.load(Warp.ACTIVE)).eq(mask)
        goes = whole if x.has("CONV") else ~whole
        taken = goes.select(taken, 0)
    x.take("label")
    branch(x, taken, x.insn.load(Insn.TARGET, I64))


def narrowed(x: Form) -> Lanes:
    """Take the predicates that follow; return the mask of the lanes that execute and for which all are true."""
    lanes = Lanes(x.exec_bits)
    while (operand := x.peek()) is not None and operand.kind in {"pred", "upred"}:
        lanes = lanes & x.predicate().splat(LANES).mask_bits()
    return lanes


def branch(x: Form, taken: Lanes, target: Value) -> None:
    """Emit a branch to `target` of the lanes `taken`; the others go on. The group at the lower address runs first."""
    fn = x.fn
    stay = Lanes(x.warp.load(Warp.ACTIVE)) & ~taken
    here = x.warp.load(Warp.PC, I64)
    with fn.when(taken.ne(0).value), fn.choose(stay.eq(0).value) as choice:
        with choice.yes():
            x.warp.store(Warp.PC, target, I64)
        with choice.no():
            back = Lanes(target).lt(Lanes(here))
            runs, waits = back.select(taken, stay), back.select(stay, taken)
            later = back.select(Lanes(here), Lanes(target))
            push(x, later.value, waits, Wait.READY, 0)
            x.warp.store(Warp.ACTIVE, runs.value)
            x.warp.store(Warp.PC, back.select(Lanes(target), Lanes(here)).value, I64)


def push(x: Form, pc: Value, lanes: Lanes, wait: int, argument: Value | int) -> None:
    """Emit the addition of a waiting group with these lanes; none is added if the mask is 0."""
    types = [type_ for _label, type_ in PUSH]
    x.fn.call_external("push", VOID, types, x.warp.base, pc, lanes.value, wait, argument)


def hold(x: Form, lanes: Lanes, wait: int, argument: Value | int) -> None:
    """Emit code that makes these lanes of the running group wait, to continue after this instruction.

    The rest of the group goes on.
    """
    push(x, x.warp.load(Warp.PC, I64), lanes, wait, argument)
    leave(x, lanes)


def leave(x: Form, lanes: Lanes) -> None:
    """Emit code that removes these lanes from the running group; another group runs if none is left."""
    rest = Lanes(x.warp.load(Warp.ACTIVE)) & ~lanes
    x.warp.store(Warp.ACTIVE, rest.value)
    x.status(rest.eq(0).select(Lanes(x.fn.constant(Status.SWITCH, I32)), Status.GO).value)


@opcode("EXIT")
def exit_(x: Form) -> None:
    lanes = narrowed(x)
    x.warp.store(Warp.EXITED, (Lanes(x.warp.load(Warp.EXITED)) | lanes).value)
    count = lanes.call("ctpop").zext("i64")
    x.block.store(Block.LIVE, (Lanes(x.block.load(Block.LIVE, I64)) - count).value, I64)
    x.block.add(Block.EPOCH, 1)
    x.fn.call_external("release_all", VOID, (pointer(I8), pointer(I8)), x.warp.base, x.insn.base)
    x.service("ended", VOID, ENDED, lanes.value)
    leave(x, lanes)


@opcode("BPT")
def bpt(x: Form) -> None:
    """End the launch (`__trap()`). Breakpoints (`.INT`) do nothing without a debugger."""
    while x.left:
        x.skip()
    if x.has("TRAP"):
        note_trap(x, 0)
        x.status(Status.FAULT)


def note_trap(x: Form, called: Value | int) -> None:
    """Emit code that records an event for a trap; `called` is the outside address that the first lane called, or 0."""
    first = Lanes(x.exec_bits).call_flag("cttz", flag=False).zext("i64")
    x.service("note", VOID, NOTE, Kind.TRAP, first.value, called, 0, -1)
