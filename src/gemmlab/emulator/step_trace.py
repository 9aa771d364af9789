"""Recording of a launch: each step of chosen warps, the addresses of their accesses, and the bounds of each block's
writes.

If a block is chosen, a recording handler replaces the handler of every instruction and calls it. So without a
recording, a launch takes only one more comparison an access. The Python side is `emulator.trace_buffers`.
"""

from __future__ import annotations

from gemmlab.emulator.instruction_layout import Insn, Space
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import Launch, Trace
from gemmlab.emulator.layout import LANES, Block, Warp
from gemmlab.emulator.raw import Raw
from gemmlab.ir.function import Function
from gemmlab.ir.types import I8, I32, I64, pointer
from gemmlab.ir.values import Value

TRACE_ACCESS = (
    ("warp", pointer(I8)),
    ("execute", I32),
    ("addresses", pointer(I64)),
    ("key", I32),
    ("space", I32),
)
TRACE_STEP = (("warp", pointer(I8)), ("insn", pointer(I8)), ("execute", I32))
WRITES = 256


def emit_trace_step(fn: Function) -> None:
    """Emit the body of the handler `trace_step(warp, insn, execute)`: record the step if its warp is chosen, or only
    count it if the buffer is full; then call the instruction's own handler.
    """
    warp_ptr, insn_ptr, execute = fn.args
    warp, insn = Raw(fn, warp_ptr), Raw(fn, insn_ptr)
    trace = _trace(fn, warp)
    with fn.when(_chosen(fn, trace, warp)):
        count = trace.load(Trace.STEP_COUNT, I64)
        with fn.when(count < trace.load(Trace.STEP_CAPACITY, I64)):
            step = Raw(fn, fn.cast(trace.load(Trace.STEPS, I64), I8) + count * Trace.STEP_SIZE)
            step.store(Trace.STEP_BLOCK, _block(fn, warp).load(Block.LINEAR, I64), I64)
            step.store(Trace.STEP_WARP, fn.convert(warp.load(Warp.INDEX, I64), I32))
            step.store(Trace.STEP_INSTRUCTION, fn.convert(insn.load(Insn.INDEX, I64), I32))
            step.store(Trace.STEP_ACTIVE, warp.load(Warp.ACTIVE))
            step.store(Trace.STEP_EXECUTE, execute)
        trace.store(Trace.STEP_COUNT, count + 1, I64)
    handlers = fn.cast(trace.load(Trace.HANDLERS, I64), I64)
    handler = fn.cast(handlers[insn.load(Insn.INDEX, I64)], I8)
    signature = [type_ for _name, type_ in TRACE_STEP]
    fn.finish(fn.call_pointer(handler, I32, signature, warp_ptr, insn_ptr, execute))


def emit_trace_access(fn: Function) -> None:
    """Emit the body of `trace_access(warp, execute, addresses, key, space)`, called only if the launch is recorded.

    It records the access if its warp is chosen and its step is recorded, or only counts it if the buffer is full, and
    updates the bounds of the block's writes.
    """
    warp_ptr, execute, addresses, key, space = fn.args
    warp = Raw(fn, warp_ptr)
    trace = _trace(fn, warp)
    with fn.when((Lanes(space).eq(Space.GLOBAL) & Lanes(key).uge(WRITES)).value):
        _note_bounds(fn, trace, warp)
    steps = trace.load(Trace.STEP_COUNT, I64)
    fits = Lanes(steps).le(Lanes(trace.load(Trace.STEP_CAPACITY, I64)))
    with fn.when((Lanes(_chosen(fn, trace, warp)) & fits).value):
        count = trace.load(Trace.ACCESS_COUNT, I64)
        with fn.when(count < trace.load(Trace.ACCESS_CAPACITY, I64)):
            access = Raw(fn, fn.cast(trace.load(Trace.ACCESSES, I64), I8) + count * Trace.ACCESS_SIZE)
            access.store(Trace.ACCESS_STEP, steps - 1, I64)
            access.store(Trace.ACCESS_KEY, key)
            access.store(Trace.ACCESS_SPACE, space)
            access.store(Trace.ACCESS_EXECUTE, execute)
            fn.store(access.at(Trace.ACCESS_ADDRESSES, I64), fn.load(addresses, LANES))
        trace.store(Trace.ACCESS_COUNT, count + 1, I64)
    fn.finish()


def _trace(fn: Function, warp: Raw) -> Raw:
    launch = Raw(fn, fn.cast(warp.load(Warp.LAUNCH, I64), I8))
    return Raw(fn, fn.cast(launch.load(Launch.TRACE, I64), I8))


def _block(fn: Function, warp: Raw) -> Raw:
    return Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))


def _entry(fn: Function, trace: Raw, warp: Raw) -> tuple[Value, Raw]:
    """Return (true if the trace has an entry for the warp's block, that entry); without one, the first entry."""
    number = Lanes(_block(fn, warp).load(Block.LINEAR, I64))
    known = number.lt(Lanes(trace.load(Trace.BLOCK_COUNT, I64)))
    entries = fn.cast(trace.load(Trace.BLOCKS, I64), I8)
    return known.value, Raw(fn, entries + known.select(number, 0).value * Trace.BLOCK_SIZE)


def _chosen(fn: Function, trace: Raw, warp: Raw) -> Value:
    known, entry = _entry(fn, trace, warp)
    mine = Lanes(trace.load(Trace.WARPS, I64)) >> Lanes(warp.load(Warp.INDEX, I64))
    return (Lanes(known) & Lanes(entry.load(Trace.BLOCK_CHOSEN, I64)).ne(0) & (mine & 1).ne(0)).value


def _note_bounds(fn: Function, trace: Raw, warp: Raw) -> None:
    _warp, execute, addresses = fn.args[:3]
    known, entry = _entry(fn, trace, warp)
    first, last = (Lanes(trace.load(at, I64)) for at in (Trace.FROM, Trace.UNTIL))
    with fn.range(LANES) as lane:
        address = Lanes(addresses[lane])
        on = ((Lanes(execute) >> Lanes(fn.convert(lane, I32))) & 1).ne(0)
        with fn.when((Lanes(known) & on & address.ge(first) & address.lt(last)).value):
            low, high = (Lanes(entry.load(at, I64)) for at in (Trace.BLOCK_LOW, Trace.BLOCK_HIGH))
            entry.store(Trace.BLOCK_LOW, address.smin(low).value, I64)
            entry.store(Trace.BLOCK_HIGH, address.smax(high).value, I64)
