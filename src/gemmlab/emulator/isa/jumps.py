"""Calls, returns, and branches to computed addresses."""

from __future__ import annotations

from gemmlab.emulator.async_calls import Operation, request
from gemmlab.emulator.events import NOTE
from gemmlab.emulator.form import Form, join
from gemmlab.emulator.instruction_layout import Insn, Kind
from gemmlab.emulator.isa.control import branch, narrowed, note_trap, push
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import DRIVER_CODE, VPRINTF, Launch
from gemmlab.emulator.layout import LANES, Status, Wait, Warp
from gemmlab.emulator.raw import Raw
from gemmlab.ir.types import I8, I32, I64, VOID
from gemmlab.ir.values import Value

FIRST_ARGUMENT = 4
"""Number of the vector register (R4) with a called function's first argument, and later its result."""


@opcode("LEPC")
def lepc(x: Form) -> None:
    """Load 0 as the return address of a call to a function outside the module: no such call uses the address."""
    d = x.dest()
    while x.left:
        x.skip()
    zero = x.constant(0)
    d.set([zero, zero])


def jump(x: Form, targets: Lanes, address: Lanes, how: int, lanes: Lanes | None = None) -> None:
    """Emit a jump of `lanes` (default: all that execute) to the instruction index that each has in `targets`.

    `address` has the addresses, for reports. Lanes whose target differs from the first lane's execute this instruction
    again. The launch ends if the first lane's target is not an instruction, or for a call (`how` is `CALLED`) not the
    first one of a function that may be called by address (`Insn.ENTRY`).
    """
    x.status(_go(x, targets, address, how, Lanes(x.exec_bits) if lanes is None else lanes))


def _go(x: Form, targets: Lanes, address: Lanes, how: int, lanes: Lanes) -> Value:
    """Emit the code of `jump`; return the handler's status."""
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
    """Emit a jump to an instruction that exists."""
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

    With `.ABS` the address is absolute. The driver's functions, such as the one that a failed `assert` calls, are
    outside the module: a call of one ends the launch, except for `printf`.
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
        with choice.yes(), x.fn.choose(where.eq(VPRINTF).value) as prints:
            with prints.yes():
                status.set(_print(x))
            with prints.no():
                note_trap(x, where.value)
                status.set(Status.FAULT)
        with choice.no():
            if targets is None:
                branch(x, Lanes(x.exec_bits), x.insn.load(Insn.TARGET, I64))
            else:
                status.set(_go(x, targets.lshr(4), targets, Kind.CALLED, Lanes(x.exec_bits)))
    x.status(status.read())


def _print(x: Form) -> Value:
    """Emit a call of `vprintf(format, arguments)`, which returns to the next instruction."""
    pairs = (
        join(*(Lanes(x.warp.load(Warp.register(index + part), I32, LANES)) for part in (0, 1)))
        for index in (FIRST_ARGUMENT, FIRST_ARGUMENT + 2)
    )
    status, rows = request(x, Operation.PRINT, *pairs)
    result = x.warp.at(Warp.register(FIRST_ARGUMENT), I32)
    count = Lanes(x.fn.load(rows, LANES)).trunc("i32")
    x.fn.store(result, x.execute.select(count, Lanes(x.fn.load(result, LANES))).value)
    return status


@opcode("RET")
def ret(x: Form) -> None:
    """Return to the address in a register pair, relative to the label's section, or with `.ABS` plus a constant.

    Only lanes for which a predicate before the address is true return, as in a branch.
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


@opcode("BRX", "BRXU")
def brx(x: Form) -> None:
    """Branch to the sum of a register and a constant, relative to the next instruction."""
    address = x.source_pair().trunc("i32") + x.source()
    here = Lanes(x.warp.load(Warp.PC, I64)).trunc("i32").splat(LANES)
    jump(x, address.arithmetic_shift(4) + here, address, Kind.JUMPED)
