"""Counters of a warp's access: wavefronts or sectors of its pattern, and sectors new to a wave of blocks.

Often a warp's addresses relative to its first lane are the same as in the previous execution of the instruction. Then
extent, alignment and counts are those of the stored analysis (`memo`).
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.emulator.address_space import SPACES, bit_of
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.lanes import Lanes, lane_mask
from gemmlab.emulator.launch_layout import RANK_BITS, Launch
from gemmlab.emulator.layout import LANES, Block, Warp
from gemmlab.emulator.memo import Memo
from gemmlab.emulator.raw import Raw
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64
from gemmlab.ir.values import Value


@dataclass(frozen=True, slots=True)
class Pattern:
    """A warp's addresses relative to `base`, the address of the first lane that executes.

    `relative` is an i32 in each lane, 0 in lanes that do not execute; `far` is true if a difference does
    not fit into 32 bits.
    """

    base: Value
    relative: Lanes
    far: Lanes


def counted(fn: Function, module: Module, space: str) -> Pattern:
    """Emit code that counts an access by its pattern, which it analyses if it is new; return the pattern.

    `fn` has the arguments of `ACCESS`, or those without `words`. If the launch is recorded, the code also records the
    access.
    """
    insn_ptr, execute, addresses, key = fn.args[1], fn.args[2], fn.args[3], fn.args[-1]
    insn = Raw(fn, insn_ptr)
    first = fn.zero_extend(Lanes(execute).call_flag("cttz", flag=True).value)
    base = addresses[first]
    distance = lane_mask(execute).select(Lanes(fn.load(addresses, LANES)) - Lanes(base).splat(LANES), 0)
    relative = distance.trunc("i32")
    phase = Lanes(base).trunc("i32") & 31
    remembered = (
        Lanes(insn.load(Memo.EXEC)).eq(Lanes(execute))
        & Lanes(insn.load(Memo.PHASE)).eq(phase)
        & Lanes(insn.load(Memo.KEY)).eq(Lanes(key))
        & relative.ne(Lanes(insn.load(Insn.PATTERN, I32, LANES))).mask_bits().eq(0)
    )
    with fn.when((~remembered).value):
        row = fn.scratch(I32, LANES)
        fn.store(row, relative.value)
        fn.call(module["analyse"], insn_ptr, row, execute, phase.value, key)
    if space == "shared":
        # Nsight Compute counts no wavefronts for the shared memory of another block.
        with fn.when(_own(fn, base).value):
            insn.add(Insn.WAVEFRONTS, fn.zero_extend(insn.load(Memo.WAVEFRONTS)))
            insn.add(Insn.IDEAL, fn.zero_extend(insn.load(Memo.IDEAL)))
            insn.add(Insn.CONFLICTS, fn.zero_extend(insn.load(Memo.CONFLICTS)))
    else:
        insn.add(Insn.SECTORS, fn.zero_extend(insn.load(Memo.SECTORS)))
        if space == "global":
            fn.call(module["touch"], fn.args[0], insn_ptr, execute, addresses)
    launch = Raw(fn, fn.cast(Raw(fn, fn.args[0]).load(Warp.LAUNCH, I64), I8))
    with fn.when(launch.load(Launch.TRACE, I64).differs(0)):
        fn.call(module["trace_access"], fn.args[0], execute, addresses, key, SPACES[space])
    return Pattern(base, relative, relative.sext("i64").ne(distance).mask_bits().ne(0))


def _own(fn: Function, address: Value) -> Lanes:
    """Emit code that tests whether a shared address is in the memory of the warp's own block; return the result."""
    warp = Raw(fn, fn.args[0])
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    return (Lanes(address) >> RANK_BITS).eq(Lanes(block.load(Block.RANK, I64)))


def emit_touch(fn: Function) -> None:
    """Emit the body of `touch(warp, insn, execute, addresses)`: count sectors that this wave did not access before."""
    warp, insn, execute, addresses = Raw(fn, fn.args[0]), Raw(fn, fn.args[1]), fn.args[2], fn.args[3]
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    launch = Raw(fn, fn.cast(warp.load(Warp.LAUNCH, I64), I8))
    wave = fn.convert(block.load(Block.WAVE, I64), I8)
    slots = fn.cast(launch.load(Launch.SLOTS, I64), I8)
    fresh = fn.var(I64, 0)
    with fn.range(LANES) as lane, fn.when(bit_of(fn, execute, lane)):
        address = Lanes(addresses[lane])
        number = address >> Launch.SLOT_BITS
        known = number.ult(Launch.SLOT_COUNT)
        slot = Raw(fn, slots + known.select(number, 0).value * Launch.SLOT_SIZE)
        offset = address & ((1 << Launch.SLOT_BITS) - 1)
        with fn.when((known & offset.ult(Lanes(slot.load(0, I64)))).value):
            sector = fn.cast(slot.load(24, I64), I8) + (offset >> 5).value
            with fn.when(fn.load(sector).differs(wave)):
                fn.store(sector, wave)
                fresh += 1
    insn.add(Insn.FRESH, fresh.read())
    fn.finish()


def emit_count(fn: Function, module: Module, space: str) -> None:
    """Emit the body of `count_SPACE(warp, insn, execute, addresses, key)`: count an access without making it."""
    execute = fn.args[2]
    with fn.when(execute.differs(0)):
        counted(fn, module, space)
    fn.finish()
