"""Branches, convergence, barriers, exits."""

from __future__ import annotations

from gemmlab.emulator.barriers import ARRIVE
from gemmlab.emulator.events import NOTE
from gemmlab.emulator.form import Form
from gemmlab.emulator.global_races import fence
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes, lane_mask
from gemmlab.emulator.layout import DRIVER_CODE, LANES, Block, Insn, Kind, Launch, Status, Wait, Warp
from gemmlab.emulator.loop import PUSH
from gemmlab.emulator.raw import Raw
from gemmlab.emulator.warp_syncs import ENDED, NOT_NAMED
from gemmlab.ir.types import I8, I32, I64, VOID, pointer
from gemmlab.ir.values import Value


@opcode("NOP")
def nop(x: Form) -> None:
    """Do nothing but order memory: `__syncwarp` compiles to it where the compiler knows that the warp has converged."""
    x.warp.add(Warp.SYNCS, 1)


@opcode("YIELD", "NANOSLEEP", "ERRBAR", "CGAERRBAR", "CCTL", "CCTLL", "MEMBAR")
def hint(x: Form) -> None:
    """Ignore a memory-ordering or timing instruction: the emulator executes all accesses in order.

    A fence beyond the block is recorded for the detection of races.
    """
    if x.instruction.opcode == "MEMBAR" and not x.has("CTA"):
        fence(x.launch, x.block)
    while x.left:
        x.skip()


@opcode("BRA", "JMP")
def bra(x: Form) -> None:
    """Branch. `.DIV`: if the group is not all of a mask's lanes; `.CONV`: if it is; `.ANY`:
    all lanes if any branches.
    """
    taken = narrowed(x)
    kept = Lanes(x.exec_bits) & ~taken
    x.insn.add(Insn.KEPT, kept.call("ctpop").zext("i64").value)
    if x.has("ANY"):
        taken = taken.ne(0).select(Lanes(x.warp.load(Warp.ACTIVE)), 0)
    if x.has("DIV", "CONV"):
        whole = Lanes(x.warp.load(Warp.ACTIVE)).eq(x.source().lane(0))
        goes = whole if x.has("CONV") else ~whole
        taken = goes.select(taken, 0)
    x.take("label")
    branch(x, taken, x.insn.load(Insn.TARGET, I64))


def narrowed(x: Form) -> Lanes:
    """The mask of the lanes that execute and for which the predicates that follow hold."""
    lanes = Lanes(x.exec_bits)
    while (operand := x.peek()) is not None and operand.kind in {"pred", "upred"}:
        lanes = lanes & x.predicate().splat(LANES).mask_bits()
    return lanes


def branch(x: Form, taken: Lanes, target: Value) -> None:
    """Send the lanes of `taken` to `target` and the others on; the group at the lower address runs first."""
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
    """Add a waiting group with these lanes."""
    types = [type_ for _label, type_ in PUSH]
    x.fn.call_external("push", VOID, types, x.warp.base, pc, lanes.value, wait, argument)


def hold(x: Form, lanes: Lanes, wait: int, argument: Value | int) -> None:
    """Make these lanes of the running group wait after this instruction; the rest of the group goes on."""
    push(x, x.warp.load(Warp.PC, I64), lanes, wait, argument)
    leave(x, lanes)


def leave(x: Form, lanes: Lanes) -> None:
    """Remove these lanes from the running group; another group runs if none is left."""
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
        _note_trap(x, 0)
        x.status(Status.FAULT)


@opcode("LEPC")
def lepc(x: Form) -> None:
    """Load the return address of a call out of the module as 0; no such call ever returns."""
    d = x.dest()
    while x.left:
        x.skip()
    zero = x.constant(0)
    d.set([zero, zero])


def _note_trap(x: Form, called: Value | int) -> None:
    """Record why the launch ends; `called` is the address outside the module that the first lane called, or 0."""
    first = Lanes(x.exec_bits).call_flag("cttz", flag=False).zext("i64")
    x.service("note", VOID, NOTE, Kind.TRAP, first.value, called, 0, -1)


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
    """Wait for the lanes that entered the same convergence barrier together with these.

    A group may contain lanes that entered at different times; those that did not enter with the first lane execute this
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
    """Wait for all lanes of a mask (`.ALL`: all that have not ended). `.COLLECTIVE` runs up
    to ENDCOLLECTIVE together.
    """
    mask = x.first_active(x.source()) if x.left else Lanes(x.fn.constant(-1, I32))
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
    """Go on at the label of the preceding WARPSYNC.COLLECTIVE, which decoding has looked up."""
    branch(x, Lanes(x.exec_bits), x.insn.load(Insn.TARGET, I64))


@opcode("BMOV")
def bmov(x: Form) -> None:
    """Copy a convergence barrier to a register or back; `.CLEAR` empties it."""
    if (operand := x.peek()) is not None and operand.kind == "barrier":
        barrier = x.dest_barrier()
        barrier.set(x.source())
        return
    d = x.dest()
    _operand, record = x.take("barrier")
    row = x.warp.at(x.field(record), I32)
    value = Lanes(x.fn.load(row, LANES))
    d.set(value)
    if x.has("CLEAR"):
        x.fn.store(row, x.execute.select(value.like(0), value).value)


def jump(x: Form, targets: Lanes, address: Lanes, how: int, lanes: Lanes | None = None) -> None:
    """Send each of `lanes` (default: all that execute) to the instruction whose index it holds in `targets`.

    `address` holds the addresses for reports. Lanes whose target differs from the first lane's execute this instruction
    again. The launch ends if the first lane's target is no instruction, or (`Kind.CALLED`) not the first one of a
    function.
    """
    x.status(_go(x, targets, address, how, Lanes(x.exec_bits) if lanes is None else lanes))


def _go(x: Form, targets: Lanes, address: Lanes, how: int, lanes: Lanes) -> Value:
    """As `jump`, but return the status instead of setting it."""
    fn = x.fn
    status = fn.var(I32, Status.GO)
    with fn.when(lanes.ne(0).value):
        first = lanes.call_flag("cttz", flag=False)
        target = x.pick(targets, first)
        number, named = target.zext("i64"), x.pick(address, first)
        known = number.ult(Lanes(x.launch.load(Launch.CODE_COUNT, I64))) & (named & 15).eq(0)
        if how == Kind.CALLED:
            code = fn.cast(x.launch.load(Launch.CODE, I64), I8)
            there = Raw(fn, code + known.select(number, 0).value * Insn.SIZE)
            known = known & Lanes(there.load(Insn.ENTRY, I64)).ne(0)
        with fn.choose(known.value) as choice:
            with choice.yes():
                _jump(x, targets, target, number, lanes)
            with choice.no():
                where = (first.zext("i64").value, named.zext("i64").value)
                x.service("note", VOID, NOTE, Kind.CALL, *where, how, -1)
                status.set(Status.FAULT)
    return status.read()


def _jump(x: Form, targets: Lanes, target: Lanes, number: Lanes, lanes: Lanes) -> None:
    """Jump to an instruction that exists."""
    fn = x.fn
    same = targets.eq(target.splat(LANES)).mask_bits() & lanes
    rest = lanes & ~same
    with fn.when(rest.ne(0).value):
        again = x.warp.load(Warp.PC, I64) + -1
        push(x, again, rest, Wait.READY, 0)
        x.warp.store(Warp.ACTIVE, (Lanes(x.warp.load(Warp.ACTIVE)) & ~rest).value)
    branch(x, same, number.value)


@opcode("CALL")
def call(x: Form) -> None:
    """Call a label (`.REL.NOINC`), or the address in a register pair, relative to the section that the label names.

    With `.ABS` the address is absolute. A failed `assert` and the driver's functions (printf) are outside the module:
    calling one ends the launch.
    """
    operand = x.peek()
    direct = operand is not None and operand.kind == "label"
    if not x.has("ABS"):
        if direct:
            x.take("label")
            branch(x, Lanes(x.exec_bits), x.insn.load(Insn.TARGET, I64))
        else:
            _indirect(x, Kind.CALLED)
        return
    if direct:
        _operand, record = x.take("label")
        where, targets = Lanes(x.field(record)), None
    else:
        targets = x.source_pair()
        where = x.first_active(targets)
    status = x.fn.var(I32, Status.GO)
    with x.fn.choose(where.uge(DRIVER_CODE).value) as choice:
        with choice.yes():
            _note_trap(x, where.value)
            status.set(Status.FAULT)
        with choice.no():
            if targets is None:
                branch(x, Lanes(x.exec_bits), x.insn.load(Insn.TARGET, I64))
            else:
                status.set(_go(x, targets.lshr(4), targets, Kind.CALLED, Lanes(x.exec_bits)))
    x.status(status.read())


@opcode("RET")
def ret(x: Form) -> None:
    """Return to the address in a register pair, within the section of the label, or (`.ABS`) plus a constant.

    A predicate before the address counts too, as for a branch.
    """
    _indirect(x, Kind.RETURNED, narrowed(x))


def _indirect(x: Form, how: int, lanes: Lanes | None = None) -> None:
    address = x.source_pair()
    start = x.constant(0, "i64")
    operand = x.peek()
    if x.has("ABS") and operand is not None:
        start = x.source().zext("i64").lshr(4)
    elif operand is not None:
        _operand, record = x.take("label")
        start = Lanes(x.field(record)).lshr(4).splat(LANES)
    jump(x, address.lshr(4) + start, address, how, lanes)


@opcode("BRX")
def brx(x: Form) -> None:
    """Branch to register plus constant, relative to the next instruction."""
    address = x.source_pair().trunc("i32") + x.source()
    here = Lanes(x.warp.load(Warp.PC, I64)).trunc("i32").splat(LANES)
    jump(x, address.arithmetic_shift(4) + here, address, Kind.JUMPED)


@opcode("B2R")
def b2r(x: Form) -> None:
    """Read the result of the block's last BAR.RED (`.RESULT`): the count into the register,
    and/or into the predicate.
    """
    if not x.has("RESULT"):
        raise x.refuse()
    d = x.dest()
    barrier = x.block.at(Block.BARRIER + Block.BARRIER_RESULT, I64)
    d.set(Lanes(x.fn.load(barrier)).trunc("i32").splat(LANES))
    for result in x.dest_predicates(1):
        word = Lanes(x.fn.load(barrier + 2)).trunc("i32")
        result.set(word.ne(0).splat(LANES))


REDUCTIONS = {"AND": 1, "OR": 2, "POPC": 3}


@opcode("BAR")
def bar(x: Form) -> None:
    """Arrive at a block barrier: `BAR.SYNC b[, threads]`, `.ARV` without a wait, `.RED` with a predicate to reduce."""
    number = x.first_active(x.source())
    threads = Lanes(x.fn.constant(0, I32))
    truth = x.execute
    while x.left:
        operand = x.peek()
        if operand is not None and operand.kind in {"pred", "upred"}:
            truth = x.predicate()
        else:
            threads = x.first_active(x.source())
    said = (truth & lane_mask(x.exec_bits)).mask_bits()
    mode = next((code for name, code in REDUCTIONS.items() if x.has(name)), 0)
    args = (number.zext("i64").value, threads.zext("i64").value, said.value, int(x.has("ARV")) + (mode << 8))
    x.status(x.service("arrive", I32, ARRIVE, x.exec_bits, *args))
