"""Tensor cores: HMMA on fragments, and loads, stores and transposition of their 8 x 8 matrices.

Fragments are distributed over a warp as for PTX's mma.sync. With g = lane / 4 and t = lane % 4, TF32 registers are
A(g, t), A(g + 8, t), A(g, t + 4), A(g + 8, t + 4) and B(t, g), B(t + 4, g). 16-bit registers have two neighbours in k:
A(g, 2t..), A(g + 8, 2t..), A(g, 2t + 8..), A(g + 8, 2t + 8..) and B(2t.., g), B(2t + 8.., g). Accumulators are
C(g, 2t), C(g, 2t + 1), C(g + 8, 2t), C(g + 8, 2t + 1).
"""

from __future__ import annotations

from gemmlab.emulator.address_space import STORE
from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.access import addresses, call_access
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.isa.tile import COLUMNS, STEP, Tile, collect, places, scatter
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.launch_layout import Launch
from gemmlab.emulator.layout import LANES
from gemmlab.emulator.raw import lane_numbers
from gemmlab.emulator.small_floats import half_of, pack_halves
from gemmlab.emulator.wgmma_arithmetic import OLD
from gemmlab.emulator.wgmma_layout import FORMATS, ROWS, SUMS
from gemmlab.ir.types import I32, I64

DEPTHS = {"16816": 16, "1688": 8, "1684": 4}


@opcode("HMMA")
def hmma(x: Form) -> None:
    """Multiply 16 x depth by depth x 8 and add 16 x 8. Inputs are FP16, BF16 or TF32, sums float32 or FP16 (`F16`).

    The products of 32 bytes of k (16 bytes before sm_90) are added to the accumulator together.
    """
    shape = x.needed(*DEPTHS)
    if set(x.modifiers) - {shape, "F32", "F16", "BF16", "TF32"}:
        raise x.refuse()
    kind, half_sums = x.one_of("TF32", "BF16", default="F16"), not x.has("F32")
    steps = DEPTHS[shape] * FORMATS[kind].bits // 8 // STEP
    d = x.dest()
    a, b, c = x.words(2 * steps), x.words(steps), x.words(2 if half_sums else 4)
    fn = x.fn
    sums, where = fn.scratch(I32, ROWS * COLUMNS), places(x, 4)
    for number, place in enumerate(where):
        word = half_of(c[number >> 1], number & 1).bits("i32") if half_sums else c[number]
        scatter(x, sums, place, word.splat(LANES))
    tile, total = Tile(x, (kind, kind), sums), SUMS["F16" if half_sums else "F32"]
    with fn.choose(x.launch.load(Launch.OLD_TENSOR_CORE, I64).differs(0)) as choice:
        with choice.yes():
            for step in range(steps):
                tile.multiply(a[2 * step : 2 * step + 2], b[step : step + 1], ROWS, total + OLD)
        with choice.no():
            tile.multiply(a, b, ROWS, total)
    results = [collect(x, sums, place, "f32" if half_sums else "i32") for place in where]
    if half_sums:
        d.set([pack_halves(results[0], results[1]), pack_halves(results[2], results[3])])
    else:
        d.set(results)


@opcode("LDSM")
def ldsm(x: Form) -> None:
    """Load 1, 2 or 4 matrices of 8 x 8 16-bit elements; lanes 8 i .. 8 i + 7 have the row addresses of matrix i.

    Lane l gets elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4, with `MT88` of the transposed matrix.
    """
    count = 4 if x.has("4") else 2 if x.has("2") else 1
    d = x.dest()
    where = addresses(x, "shared")
    rows = x.fn.scratch(I32, LANES * 4)
    used = Lanes(x.exec_bits) & ((1 << 8 * count) - 1 if count < 4 else -1)
    call_access(x, "load_shared", used.value, where, rows, 16)
    words = [Lanes(x.fn.load(rows + LANES * part, LANES)) for part in range(4)]
    d.set([_fragment(words, number, transposed=x.has("MT88")) for number in range(count)])


def _fragment(words: list[Lanes], matrix: int, *, transposed: bool) -> Lanes:
    lanes = range(LANES)
    if not transposed:
        return _choose(words, [lane % 4 for lane in lanes], [8 * matrix + lane // 4 for lane in lanes])
    parts = []
    for step in range(2):
        column = [lane // 4 for lane in lanes]
        word = _choose(words, [c // 2 for c in column], [8 * matrix + 2 * (lane % 4) + step for lane in lanes])
        odd = lane_numbers(word.fn) & 4
        parts.append(odd.ne(0).select(word >> 16, word & 0xFFFF))
    return parts[0] | (parts[1] << 16)


def _choose(words: list[Lanes], which: list[int], lane: list[int]) -> Lanes:
    """Return a row whose lane i is lane `lane[i]` of `words[which[i]]`."""
    low = _either(words[0], words[1], which, lane)
    high = _either(words[2], words[3], [number - 2 for number in which], lane)
    upper = [number >= 2 for number in which]
    return Lanes(low.fn.shuffle(low.value, high.value, [i + LANES * upper[i] for i in range(LANES)]))


def _either(first: Lanes, second: Lanes, which: list[int], lane: list[int]) -> Lanes:
    pattern = [lane[i] + LANES * (which[i] == 1) for i in range(LANES)]
    return Lanes(first.fn.shuffle(first.value, second.value, pattern))


@opcode("STSM")
def stsm(x: Form) -> None:
    """Store 1, 2 or 4 matrices, with operands as for LDSM."""
    count = 4 if x.has("4") else 2 if x.has("2") else 1
    where = addresses(x, "shared")
    source = x.words(count)
    rows = x.fn.scratch(I32, LANES * 4)
    for part in range(4):
        x.fn.store(rows + LANES * part, _row_words(source, part, transposed=x.has("MT88")).value)
    used = Lanes(x.exec_bits) & ((1 << 8 * count) - 1 if count < 4 else -1)
    call_access(x, "store_shared", used.value, where, rows, 16 + STORE)


def _row_words(source: list[Lanes], part: int, *, transposed: bool) -> Lanes:
    """Return, for each lane, word `part` of the matrix row whose address the lane has."""
    matrices = [source[min(number, len(source) - 1)] for number in range(4)]
    which = [lane // 8 for lane in range(LANES)]
    if not transposed:
        return _choose(matrices, which, [lane % 8 * 4 + part for lane in range(LANES)])
    parts = []
    for step in range(2):
        # Element (row r, column c) is in lane 4 c + r / 2, in half r % 2 of its register.
        word = _choose(matrices, which, [(2 * part + step) * 4 + lane % 8 // 2 for lane in range(LANES)])
        odd = lane_numbers(word.fn) & 1
        parts.append(odd.ne(0).select(word >> 16, word & 0xFFFF))
    return parts[0] | (parts[1] << 16)


@opcode("MOVM")
def movm(x: Form) -> None:
    """Transpose an 8 x 8 matrix of 16-bit elements, distributed over the lanes as by LDSM."""
    if not x.has("MT88"):
        raise x.refuse()
    d, a = x.dest(), x.source()
    parts = []
    for step in range(2):
        word = a.shuffle([4 * (2 * (lane % 4) + step) + lane // 8 for lane in range(LANES)])
        odd = lane_numbers(x.fn) & 4
        parts.append(odd.ne(0).select(word >> 16, word & 0xFFFF))
    d.set(parts[0] | (parts[1] << 16))
