"""Matrix multiplications of one warp with integers, 8-bit floats and doubles: IMMA, QMMA, DMMA.

Fragments are distributed over lanes as for PTX's mma.sync, with g = lane / 4 and t = lane % 4. For bytes, a register
has four elements along k. Those of A begin at A(g, 4t), A(g + 8, 4t), A(g, 4t + 16), A(g + 8, 4t + 16), those of B at
B(4t, g), B(4t + 16, g). A shape with 8 rows has no row g + 8. Accumulators are C(g, 2t), C(g, 2t + 1), C(g + 8, 2t),
C(g + 8, 2t + 1). For doubles, register pairs are A(g, t), A(g + 8, t), A(g, t + 4), ... and B(t, g), ...
"""

from __future__ import annotations

import re

from gemmlab.emulator.form import Form, join, split
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.isa.tile import COLUMNS, STEP, Tile, collect, places, scatter
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES
from gemmlab.emulator.raw import lane_numbers
from gemmlab.emulator.small_floats import half_of, pack_halves
from gemmlab.emulator.wgmma_arithmetic import NARROW, SATURATE
from gemmlab.emulator.wgmma_layout import ROWS, SUMS
from gemmlab.ir.types import F64, I32

_INTEGERS = {"16832": (16, 32), "16816": (16, 16), "8816": (8, 16)}
"""Shape in nvdisasm's text -> rows m and depth k."""
_DOUBLES = {"884": (8, 4), "8x8x4": (8, 4), "16x8x4": (16, 4), "16x8x8": (16, 8), "16x8x16": (16, 16)}
_KIND = re.compile(r"S8|U8|E4M3|E5M2")


def _kinds(x: Form, *others: str) -> tuple[str, str]:
    found = [name for name in x.modifiers if _KIND.fullmatch(name)]
    unknown = [name for name in x.modifiers if name not in {*found, *others}]
    if len(found) != 2 or unknown:
        raise x.refuse(f"{', '.join(unknown) or 'its types'} not understood")
    return found[0], found[1]


@opcode("IMMA")
def imma(x: Form) -> None:
    """Multiply 8-bit integers; int32 sums wrap, or saturate (`SAT`)."""
    kinds = _kinds(x, *_INTEGERS, "SAT")
    rows, depth = _INTEGERS[x.needed(*_INTEGERS)]
    x.allow(*x.modifiers, suffixes=("ROW", "COL"))
    d = x.dest()
    left, right = x.words(rows // 8 * depth // STEP), x.words(depth // STEP)
    accumulators = x.words(rows // 4)
    sums = x.fn.scratch(I32, ROWS * COLUMNS)
    where = places(x, len(accumulators))
    for place, word in zip(where, accumulators, strict=True):
        scatter(x, sums, place, word.splat(LANES))
    kind = SUMS["S32"] + (SATURATE if x.has("SAT") else 0)
    Tile(x, kinds, sums).multiply([word.splat(LANES) for word in left], right, rows, kind)
    d.set([collect(x, sums, place, "i32") for place in where])


@opcode("QMMA")
def qmma(x: Form) -> None:
    """Multiply 8-bit floats as on sm_89: 16 products at a time are added to the accumulator."""
    kinds = _kinds(x, "16832", "F32", "F16")
    halves = x.has("F16")
    d = x.dest()
    left, right, accumulators = x.words(4), x.words(2), x.words(2 if halves else 4)
    sums = x.fn.scratch(I32, ROWS * COLUMNS)
    where = places(x, 4)
    for number, place in enumerate(where):
        word = accumulators[number >> 1] if halves else accumulators[number]
        scatter(x, sums, place, half_of(word, number & 1).bits("i32") if halves else word)
    kind = SUMS["F16" if halves else "F32"] + NARROW
    for step in range(2):
        Tile(x, kinds, sums).multiply(left[2 * step : 2 * step + 2], right[step : step + 1], 16, kind)
    found = [collect(x, sums, place, "i32") for place in where]
    if halves:
        floats = [word.bits("f32") for word in found]
        d.set([pack_halves(floats[0], floats[1]), pack_halves(floats[2], floats[3])])
    else:
        d.set(found)


@opcode("DMMA")
def dmma(x: Form) -> None:
    """Multiply doubles: each sum is a chain of fused multiply-adds in the order of k."""
    shape = x.needed(*_DOUBLES)
    x.allow(*_DOUBLES)
    rows, depth = _DOUBLES[shape]
    fn = x.fn
    d = x.dest()
    steps, halves = depth // 4, rows // 8
    left, right, accumulators = (_doubles(x, count) for count in (steps * halves, steps, 2 * halves))
    a, b = fn.scratch(F64, ROWS * depth), fn.scratch(F64, depth * COLUMNS)
    g, t = lane_numbers(fn) >> 2, lane_numbers(fn) & 3
    for number, value in enumerate(left):
        step, half = divmod(number, halves)
        scatter(x, a, (g + 8 * half) * depth + t + 4 * step, value)
    for step, value in enumerate(right):
        scatter(x, b, (t + 4 * step) * COLUMNS + g, value)
    words: list[Lanes] = []
    for place, value in zip(places(x, len(accumulators)), accumulators, strict=True):
        row, column = place >> 3, place & 7
        total = value
        for k in range(depth):
            total = collect(x, a, row * depth + k, "f64").fma(collect(x, b, column + k * COLUMNS, "f64"), total)
        words += split(total)
    d.set(words)


def _doubles(x: Form, count: int) -> list[Lanes]:
    words = [word.splat(LANES) for word in x.words(2 * count)]
    return [join(low, high).bits("f64") for low, high in zip(words[::2], words[1::2], strict=True)]
