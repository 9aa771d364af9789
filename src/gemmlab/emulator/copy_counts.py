"""Counters of asynchronous copies as on Nsight Compute's source page: a rule inferred from measurements on an H200.

The rule reproduces the page's figures for 54 probes (`tests/emulated/counters/copies.cu`) and for whole kernels.

- 16 bytes past L1 (`LDGSTS.BYPASS`): sectors are the 32-byte sectors of the source; one whose halves are written to
  two sectors counts twice. A wavefront writes data of one 128-byte source line to one 128-byte destination line. If
  the second half of a sector is written to another line than the first, it takes another wavefront. For a copy under
  the guard `@P0` the page counts none of this, but under `@!P0`, `@P1` and other guards it does (see `counted_here`).
- Through L1, guarded or not: sectors of the source. A whole, half or quarter warp (4, 8, 16 bytes a lane) takes one
  wavefront, plus one for each bank conflict of its reads and one for each of its writes.
- The ideal is 128 bytes a wavefront.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES
from gemmlab.emulator.raw import Raw, lane_numbers
from gemmlab.ir.function import Function
from gemmlab.ir.types import I8, I32, I64, pointer, vector
from gemmlab.ir.values import Value
from gemmlab.sass.instruction import Instruction

COUNT_COPY = (
    ("insn", pointer(I8)),
    ("copying", I32),
    ("to", pointer(I64)),
    ("source", pointer(I64)),
    ("width", I32),
)
"""Arguments of `count_past_l1` and `count_through_l1`. `copying`: mask of the lanes that copy data; `to` and `source`:
one address for each lane; `width`: bytes that each lane copies."""
PAST_L1 = "BYPASS"
_SECTOR, _LINE = 5, 7
"""Log2 of the bytes of a sector (32), and of a line (128)."""


def counted_here(instruction: Instruction) -> bool:
    """Return whether Nsight Compute's source page counts wavefronts and sectors of this copy at all."""
    guard = instruction.predicate
    first = guard is not None and guard.kind == "pred" and guard.index == 0 and not guard.invert
    return not (first and PAST_L1 in instruction.modifiers)


def emit_count_past_l1(fn: Function) -> None:
    """Emit the body of `count_past_l1(insn, copying, to, source, width)`: count a copy that bypasses L1."""
    _insn, copying, to, source, _width = fn.args
    from_sector, to_sector = _shifted(fn, source, _SECTOR), _shifted(fn, to, _SECTOR)
    from_line, to_line = _shifted(fn, source, _LINE), _shifted(fn, to, _LINE)
    parts = fn.scratch(I32, LANES)  # for each lane: number of other places to which earlier lanes write its sector
    fn.store(parts, fn.constant(0, vector(I32, LANES)))
    # `fresh`: the lanes that are the first to write their sector to their place.
    fresh, sectors, wavefronts = (fn.var(I32, 0) for _ in range(3))
    with _each(fn, copying) as lane:
        sharing = _same(fn, from_sector, lane) & Lanes(copying)
        first = _first(sharing & _same(fn, to_sector, lane))
        before = _bit(first) - 1
        parts[lane] = (sharing & Lanes(fresh.read()) & before).call("ctpop").value
        new = first.eq(_number(fn, lane))
        fresh.set((Lanes(fresh.read()) | new.select(_bit(_number(fn, lane)), 0)).value)
        sectors += new.zext("i32").value
        one_way = _same(fn, from_line, lane) & _same(fn, to_line, lane) & _same(fn, parts, lane)
        upto = (_bit(_number(fn, lane)) - 1) | _bit(_number(fn, lane))
        alone = _first(one_way & Lanes(copying) & upto).eq(_number(fn, lane))
        wavefronts += alone.zext("i32").value
    _add(fn, wavefronts.read(), sectors.read())


def emit_count_through_l1(fn: Function) -> None:
    """Emit the body of `count_through_l1(insn, copying, to, source, width)`: count a copy through L1."""
    _insn, copying, to, source, width = fn.args
    shift = Lanes(width).call_flag("cttz", flag=True)
    groups, banks = fn.scratch(I32, LANES), Lanes(fn.constant(128, I32)).lshr(shift)
    fn.store(groups, lane_numbers(fn).lshr((Lanes(fn.constant(7, I32)) - shift).splat(LANES)).value)
    sector, sectors, wavefronts = _shifted(fn, source, _SECTOR), fn.var(I32, 0), fn.var(I32, 0)
    sides = [_Banks(fn, address, shift, banks) for address in (source, to)]
    with _each(fn, copying) as lane:
        number = _number(fn, lane)
        sectors += _first(_same(fn, sector, lane) & Lanes(copying)).eq(number).zext("i32").value
        group = _same(fn, groups, lane) & Lanes(copying)
        for side in sides:
            wavefronts += side.more(lane, group, fn.zero_extend(groups[lane])).value
        # The read and the write of a group share one wavefront; only conflicts add more.
        wavefronts += _first(group).eq(number).sext("i32").value
    _add(fn, wavefronts.read(), sectors.read())


class _Banks:
    """Builder of code that counts the distinct units in each bank of the source or destination, lane by lane.

    A unit is as many bytes as one lane copies, aligned to their number.
    """

    def __init__(self, fn: Function, addresses: Value, shift: Lanes, banks: Lanes) -> None:
        self._fn = fn
        unit = Lanes(fn.load(addresses, LANES)).lshr(shift.zext("i64").splat(LANES))
        self._units, self._slots = fn.scratch(I64, LANES), fn.scratch(I64, LANES)
        fn.store(self._units, unit.value)
        fn.store(self._slots, (unit & (banks - 1).zext("i64").splat(LANES)).value)
        self._fullest = fn.scratch(I32, LANES)
        fn.store(self._fullest, fn.constant(0, vector(I32, LANES)))
        self._fresh = fn.var(I32, 0)

    def more(self, lane: Value, group: Lanes, place: Value) -> Lanes:
        """Emit code that counts a lane's unit; return by how many units the fullest bank of its group grows.

        The group's lanes are `group`, and its number is `place`.
        """
        fn, number = self._fn, _number(self._fn, lane)
        new = _first(_same(fn, self._units, lane) & group).eq(number)
        fresh = Lanes(self._fresh.read()) | new.select(_bit(number), 0)
        self._fresh.set(fresh.value)
        reached = (_same(fn, self._slots, lane) & group & fresh).call("ctpop")
        known = Lanes(self._fullest[place])
        self._fullest[place] = known.umax(reached).value
        return known.umax(reached) - known


def _add(fn: Function, wavefronts: Value, sectors: Value) -> None:
    insn, copying, width = Raw(fn, fn.args[0]), fn.args[1], fn.args[4]
    ideal = (Lanes(copying).call("ctpop") * Lanes(width) + 127) >> 7
    counts = {Insn.PAGE_WAVEFRONTS: wavefronts, Insn.PAGE_IDEAL: ideal.value, Insn.PAGE_SECTORS: sectors}
    for place, count in counts.items():
        insn.add(place, fn.zero_extend(count))
    fn.finish()


def _shifted(fn: Function, addresses: Value, bits: int) -> Value:
    row = fn.scratch(I64, LANES)
    fn.store(row, (Lanes(fn.load(addresses, LANES)) >> bits).value)
    return row


@contextmanager
def _each(fn: Function, bits: Value) -> Iterator[Value]:
    """Emit a loop over the lanes whose bit is set in the mask `bits`; its body is what the `with` block emits."""
    with fn.range(LANES) as lane, fn.when((Lanes(bits) & _bit(_number(fn, lane))).ne(0).value):
        yield lane


def _number(fn: Function, lane: Value) -> Lanes:
    return Lanes(fn.convert(lane, I32))


def _bit(number: Lanes) -> Lanes:
    return number.like(1) << number


def _same(fn: Function, row: Value, lane: Value) -> Lanes:
    """Return the mask of the lanes whose entry in `row` equals that of `lane`."""
    return Lanes(fn.load(row, LANES)).eq(Lanes(row[lane]).splat(LANES)).mask_bits()


def _first(bits: Lanes) -> Lanes:
    """Return the number of the lowest set bit."""
    return bits.call_flag("cttz", flag=True)
