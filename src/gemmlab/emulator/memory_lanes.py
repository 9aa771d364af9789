"""Loads and stores lane by lane and byte by byte, for all accesses that `memory_vectors` does not serve.

These are accesses to local memory, of less than 4 bytes, out of bounds, misaligned, with addresses far apart, or to the
shared memory of several blocks, and loads of which a byte is unwritten or pending.
"""

from __future__ import annotations

from gemmlab.emulator.address_space import PENDING, SPACES, bit_of, translate
from gemmlab.emulator.instruction_layout import Kind
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES
from gemmlab.emulator.raw import Raw
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64
from gemmlab.ir.values import Value, Var

POISON = 0x7FFFDEAD
"""Value of unwritten words in a wide load of shared or local memory if other words of it are written: a NaN."""
UNWRITTEN = -0x21212122
"""Value of unwritten bytes in a word if other bytes of it are written: 0xDE in each byte."""


def emit_lane_by_lane(fn: Function, module: Module, space: str, *, store: bool) -> None:
    """Emit the body of `slow_load_SPACE` or `slow_store_SPACE`, which returns the same mask as `load_SPACE` and
    `store_SPACE`.

    It records an event for each lane whose access is out of bounds or misaligned, or reads unwritten or pending bytes,
    but none for the partly written loads of shared and local memory that `_poison` names.
    """
    warp_ptr, insn, execute, addresses, words, key = fn.args
    warp = Raw(fn, warp_ptr)
    done = fn.var(I32, 0)
    width = fn.zero_extend((Lanes(key) & 255).value)
    extra = fn.zero_extend(key) + SPACES[space] * 65536
    with fn.range(LANES) as lane, fn.when(bit_of(fn, execute, lane)):
        if not store:
            with fn.range(fn.ceil_div(width, 4)) as word:
                fn.store(words + (word * LANES + lane), fn.constant(0, I32))
        address = addresses[lane]
        host = fn.call(module[f"locate_{space}"], warp_ptr, insn, lane, address, key)
        with fn.when(host.differs(0)):
            place = translate(fn, warp, space, address, fn.constant(0, I64), width, lane)
            source, valid = fn.cast(place.host, I8), place.valid
            worst = fn.var(I8, -1)
            with fn.range(width) as byte:
                mine = fn.cast(words, I8) + ((byte // 4 * LANES + lane) * 4 + byte % 4)
                if store:
                    fn.store(source + byte, fn.load(mine))
                else:
                    fn.store(mine, fn.load(source + byte))
                with fn.when(valid.differs(0)):
                    state = fn.cast(valid, I8) + byte
                    if store:
                        fn.store(state, fn.constant(-1, I8))
                    else:
                        seen = fn.load(state)
                        with fn.when((Lanes(seen).ne(-1) & Lanes(worst.read()).ne(PENDING)).value):
                            worst.set(seen)
            if not store:
                if space != "global":
                    _poison(fn, space, valid, width, words + lane, worst)
                with fn.when(worst.read().differs(-1)):
                    late = fn.select(worst.read().equals(PENDING), Kind.ASYNC, Kind.UNWRITTEN)
                    fn.call(module["note"], warp_ptr, insn, late, lane, address, extra, -1)
            done.set(Lanes(done.read()).__or__(Lanes(_bit_at(fn, lane))).value)
    fn.finish(execute if not store else done.read())


def _poison(fn: Function, space: str, valid: Value, width: Value, words: Value, worst: Var) -> None:
    """Emit code that replaces the unwritten bytes of a partly written load by `POISON` or `UNWRITTEN`.

    It also resets `worst`, so that no event is recorded.

    Compiled code makes such loads: it widens loads over padding, and reads back pairs of which it spilled one register,
    and words of which it spilled 16 bits. But no correct result may depend on these bytes. `worst` does not change if
    every byte is unwritten or one is pending, and for loads of less than 4 bytes. Nor does it for single words of
    shared memory, which no compiler widens: such a read is too early.
    """
    states = fn.cast(valid, I32)
    count = width // 4
    written = fn.var(I64, 0)
    with fn.range(count) as word:
        written += fn.zero_extend(fn.load(states + word).differs(0))
    enough = Lanes(written.read()).gt(0) & Lanes(worst.read()).ne(PENDING)
    if space == "shared":
        enough = enough & Lanes(count).gt(1)
    with fn.when(enough.value):
        with fn.range(count) as word:
            state, value = Lanes(fn.load(states + word)), Lanes(fn.load(words + word * LANES))
            unwritten = state.eq(0).select(POISON, value & state | ~state & UNWRITTEN)
            with fn.when(state.ne(-1).value):
                fn.store(words + word * LANES, unwritten.value)
        worst.set(-1)


def _bit_at(fn: Function, lane: Value) -> Value:
    return (Lanes(fn.constant(1, I32)) << Lanes(fn.convert(lane, I32))).value
