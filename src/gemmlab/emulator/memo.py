"""Analysis of an access pattern: extent, alignment, wavefronts, sectors; the result is stored with the instruction.

The analysis depends only on the kind and width of the access, the lanes that access memory, their addresses relative to
the first of them, and the position of the first in its 32-byte sector. So a loop that advances through memory with one
pattern is analysed once.

Wavefronts of a shared access, measured on an H200 (Nsight Compute's instrumented source metrics, 187 patterns): a
4-byte access takes as many as its fullest bank has distinct words. An 8-byte access is counted for each half-warp, a
16-byte access for each quarter-warp, and the numbers are summed. In loads of 8 and 16 bytes, two such groups share a
wavefront if all their lanes i and i^1, or all i and i^2, have the same address and no conflict remains. The ideal is
the number of groups, or of 128-byte rows if that is less. The hardware's own counter of bank conflicts merges groups
only if all lanes of the warp are paired in one of these ways, but then also where a conflict remains. An atomic
operation takes as many wavefronts as its fullest bank has lanes: those that update the same word are served one after
the other, except by ATOMS.POPC.INC.
"""

from __future__ import annotations

from gemmlab.emulator.address_space import EACH_LANE, STORE
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.lanes import Lanes, lane_mask
from gemmlab.emulator.layout import FULL, LANES
from gemmlab.emulator.raw import Raw, lane_numbers
from gemmlab.ir.function import Function
from gemmlab.ir.types import I8, I32, I64, pointer, vector
from gemmlab.ir.values import Value

GENERIC, BROADCAST, CONTIGUOUS = range(3)


class Memo:
    """Byte offsets of the stored analysis in an instruction's record."""

    EXEC = Insn.MEMO
    PHASE = Insn.MEMO + 4
    CLASS = Insn.MEMO + 8
    WAVEFRONTS = Insn.MEMO + 12
    IDEAL = Insn.MEMO + 16
    SECTORS = Insn.MEMO + 20
    MISALIGNED = Insn.MEMO + 24
    """i32: mask of lanes whose address is not a multiple of the access width."""
    KEY = Insn.MEMO + 28
    """i32: width in bytes, plus `STORE` and `EACH_LANE`; 0 while the memo is empty."""
    LOWEST = Insn.MEMO + 32
    """i64: smallest address, relative to the first lane's, of a lane that takes part; at most 0."""
    HIGHEST = Insn.MEMO + 40
    CONFLICTS = Insn.MEMO + 48
    """i32: wavefronts that the hardware adds for bank conflicts."""


def emit_analyse(fn: Function) -> None:
    """Emit the body of `analyse(insn, relative, execute, phase, key)`: analyse a pattern and store the result.

    `relative` points to 32 i32, 0 in lanes that do not access memory; `phase` is the first lane's position in its
    sector; `key` is as in `Memo.KEY`.
    """
    insn_ptr, relative_ptr, execute, phase, key = fn.args
    insn = Raw(fn, insn_ptr)
    relative = Lanes(fn.load(relative_ptr, LANES))
    on = lane_mask(execute)
    width = Lanes(key) & 255
    fn.store(insn.at(Insn.PATTERN, I32), relative.value)
    for offset, value in ((Memo.EXEC, execute), (Memo.PHASE, phase), (Memo.KEY, key)):
        insn.store(offset, value)
    insn.store(Memo.LOWEST, _extreme(relative, on, "smin").value, I64)
    insn.store(Memo.HIGHEST, _extreme(relative, on, "smax").value, I64)
    position = relative + Lanes(phase).splat(LANES)
    astray = (position & (width - 1).splat(LANES)).ne(0) & on
    insn.store(Memo.MISALIGNED, astray.mask_bits().value)
    insn.store(Memo.CLASS, _classify(fn, relative, on, execute, width).value)
    insn.store(Memo.SECTORS, _distinct(fn, position.arithmetic_shift(5), on, FULL).value)
    _wavefronts(fn, insn, position, on, Lanes(key))


def _extreme(relative: Lanes, on: Lanes, word: str) -> Lanes:
    masked = on.select(relative, 0)
    symbol = f"llvm.vector.reduce.{word}.v32i32"
    fn = relative.fn
    fn.declare(symbol, f"declare i32 @{symbol}(<32 x i32>)")
    return Lanes(fn.emit(I32, f"call i32 @{symbol}(<32 x i32> {masked.value.name})")).sext("i64")


def _classify(fn: Function, relative: Lanes, on: Lanes, execute: Value, width: Lanes) -> Lanes:
    everyone = Lanes(execute).eq(-1)
    same = (relative.ne(0) & on).mask_bits().eq(0)
    ramp = (relative.ne(lane_numbers(fn) * width.splat(LANES))).mask_bits().eq(0) & everyone
    return ramp.select(
        same.select(Lanes(fn.constant(BROADCAST, I32)), CONTIGUOUS),
        same.select(Lanes(fn.constant(BROADCAST, I32)), GENERIC),
    )


def _first_of_its_kind(fn: Function, unit: Lanes, on: Lanes) -> Lanes:
    """Return the mask of the lanes in `on` whose unit no lower lane in `on` has."""
    firsts = Lanes(fn.constant(0, I32))
    for lane in range(LANES):
        others = (unit.eq(unit.lane(lane).splat(LANES)) & on).mask_bits() & ((1 << lane) - 1)
        fresh = others.eq(0) & on.lane(lane)
        firsts = firsts | fresh.select(Lanes(fn.constant(_bit(lane), I32)), 0)
    return firsts


def _bit(lane: int) -> int:
    return 1 << lane if lane < 31 else -(1 << 31)


def _distinct(fn: Function, unit: Lanes, on: Lanes, _everyone: int) -> Lanes:
    return _first_of_its_kind(fn, unit, on).call("ctpop")


def _wavefronts(fn: Function, insn: Raw, position: Lanes, on: Lanes, key: Lanes) -> None:
    """Emit code that stores the wavefronts, ideal wavefronts and bank conflicts of a shared access in the memo.

    It compares units of 4, 8 or 16 bytes: the width of the access, but at least 4.
    """
    width, load, each = key & 255, (key & STORE).eq(0), (key & EACH_LANE).ne(0)
    shift = width.umax(4).call_flag("cttz", flag=True)
    unit = position.arithmetic_shift(shift.splat(LANES))
    # 32, 16 or 8 lanes share a wavefront; twice as many if pairs merge.
    single = Lanes(fn.constant(128, I32)).lshr(shift).umin(LANES).umax(8)
    apart = [_strangers(position, on, distance) for distance in (1, 2)]
    wide = load & width.ugt(4)
    merge = wide & (apart[0].eq(0) | apart[1].eq(0))
    plain = _fullest(fn, unit, on, shift, single, each)
    double = _fullest(fn, unit, on, shift, single + single, each)
    fronts, groups = Lanes(fn.constant(0, I32)), Lanes(fn.constant(0, I32))
    conflicts = fronts
    reach = (single + single).umin(LANES).zext("i64")
    for pair in range(2):
        two = [Lanes(plain[2 * pair + half]) for half in range(2)]
        one = Lanes(double[pair])
        mine = (((reach.like(1) << reach) - 1) << (reach * pair)).trunc("i32")
        paired = (apart[0] & mine).eq(0) | (apart[1] & mine).eq(0)
        free = wide & paired & one.eq(1)
        used = [top.ne(0).zext("i32") for top in two]
        fronts = fronts + free.select(one, two[0] + two[1])
        groups = groups + free.select(one, used[0] + used[1])
        lost = merge.select(one - one.ne(0).zext("i32"), two[0] + two[1] - used[0] - used[1])
        conflicts = conflicts + lost
    rows = (on.mask_bits().call("ctpop") * width + 127) >> 7
    insn.store(Memo.WAVEFRONTS, fronts.value)
    insn.store(Memo.IDEAL, groups.umin(rows).value)
    insn.store(Memo.CONFLICTS, conflicts.value)


def _fullest(fn: Function, unit: Lanes, on: Lanes, shift: Lanes, group: Lanes, each: Lanes) -> Value:
    """Return a row with the number of distinct units in the fullest bank of each group of `group` lanes.

    With `each`, the lanes of the bank are counted, whatever their units.
    """
    number = lane_numbers(fn).lshr(group.call_flag("cttz", flag=True).splat(LANES))
    # Units are compared within a group: the group's number goes into bits above the unit.
    fresh = each.select(on.mask_bits(), _first_of_its_kind(fn, (unit & 0x03FFFFFF) | (number << 26), on))
    banks = Lanes(fn.constant(128, I32)).lshr(shift)
    rows, slots = fn.scratch(I32, 4 * LANES), fn.scratch(I32, LANES)
    groups, tops = fn.scratch(I32, LANES), fn.scratch(I32, LANES)
    fn.store(slots, ((unit & (banks - 1).splat(LANES)) | (number << 5)).value)
    fn.store(groups, number.value)
    zero = fn.constant(0, vector(I32, LANES))
    for row in (tops, *(rows + LANES * part for part in range(4))):
        fn.store(row, zero)
    with fn.range(LANES) as lane:
        where = fn.zero_extend(slots[lane])
        count = Lanes(rows[where]) + (Lanes(fresh.value).lshr(Lanes(fn.convert(lane, I32))) & 1)
        rows[where] = count.value
        which = fn.zero_extend(groups[lane])
        tops[which] = Lanes(tops[which]).umax(count).value
    return tops


def _strangers(position: Lanes, on: Lanes, distance: int) -> Lanes:
    """Return the mask of lanes in `on` whose partner (lane ^ distance) is in `on` too and has another address."""
    partner = position.shuffle([lane ^ distance for lane in range(LANES)])
    both = on & on.shuffle([lane ^ distance for lane in range(LANES)])
    return (position.ne(partner) & both).mask_bits()


ANALYSE = (("insn", pointer(I8)), ("relative", pointer(I32)), ("execute", I32), ("phase", I32), ("key", I32))
