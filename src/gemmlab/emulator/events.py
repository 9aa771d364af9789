"""Events: records of hazards that compiled handlers write, of fixed size and at most `EVENT_LIMIT` per instruction."""

from __future__ import annotations

from gemmlab.emulator.instruction_layout import Event, Insn, Kind
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import Launch
from gemmlab.emulator.layout import Block, Status, Warp
from gemmlab.emulator.raw import Raw
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64, pointer
from gemmlab.ir.values import Value

NOTE = (
    ("warp", pointer(I8)),
    ("insn", pointer(I8)),
    ("kind", I64),
    ("lane", I64),
    ("address", I64),
    ("extra", I64),
    ("other", I64),
)


def emit_note(fn: Function) -> None:
    """Emit the body of `note(warp, insn, kind, lane, address, extra, other)`: count an event, and record it if the
    instruction has had fewer than `EVENT_LIMIT` and the launch's array of events has room.

    For an access to memory, `extra` is space * 65536 + (256 for a store) + width in bytes; from bit 32 on it has the
    other thread of a race. For other kinds `address` and `extra` have other meanings (`Kind`).
    `other` is the index of the instruction that this one conflicts with, or -1.
    """
    warp, insn = Raw(fn, fn.args[0]), Raw(fn, fn.args[1])
    kind, lane, address, extra, other = fn.args[2:]
    launch = Raw(fn, fn.cast(warp.load(Warp.LAUNCH, I64), I8))
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    events = insn.load(Insn.EVENTS, I64)
    insn.store(Insn.EVENTS, events + 1, I64)
    count = launch.load(Launch.EVENT_COUNT, I64)
    with fn.when(events < Insn.EVENT_LIMIT), fn.when(count < launch.load(Launch.EVENT_CAPACITY, I64)):
        event = Raw(fn, fn.cast(launch.load(Launch.EVENTS, I64), I8) + count * Event.SIZE)
        event.store(Event.KIND, kind, I64)
        event.store(Event.INSTRUCTION, insn.load(Insn.INDEX, I64), I64)
        event.store(Event.OTHER, other, I64)
        event.store(Event.BLOCK, block.load(Block.LINEAR, I64), I64)
        event.store(Event.THREAD, warp.load(Warp.INDEX, I64) * 32 + lane, I64)
        event.store(Event.ADDRESS, address, I64)
        event.store(Event.EXTRA, extra, I64)
        launch.store(Launch.EVENT_COUNT, count + 1, I64)
    fn.finish()


def note_more(fn: Function, module: Module, warp: Raw, note: tuple[Value | int, ...], more: Value) -> None:
    """Emit a call of the compiled function `note`; if it records an event, store `more` in the event's `EXTRA2`.

    The tuple `note` has the arguments of the call after `warp`.
    """
    launch = Raw(fn, fn.cast(warp.load(Warp.LAUNCH, I64), I8))
    before = launch.load(Launch.EVENT_COUNT, I64)
    fn.call(module["note"], warp.base, *note)
    with fn.when(launch.load(Launch.EVENT_COUNT, I64).differs(before)):
        event = Raw(fn, fn.cast(launch.load(Launch.EVENTS, I64), I8) + before * Event.SIZE)
        event.store(Event.EXTRA2, more, I64)


def emit_lost(fn: Function, module: Module) -> None:
    """Emit the body of `lost(warp, insn, execute)`, the handler of the extra record after the last instruction.

    It records an event that the kernel ran past its end, and returns `FAULT`.
    """
    warp, insn, execute = fn.args
    first = fn.zero_extend(Lanes(execute).call_flag("cttz", flag=True).value)
    fn.call(module["note"], warp, insn, Kind.CALL, first, 0, Kind.RAN_ON, -1)
    fn.finish(Status.FAULT)


__all__ = ["I32", "NOTE", "emit_lost", "emit_note", "note_more"]
