"""A tile of one warp's matrix multiplication: fragments are copied to matrices in memory, sums back to the lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemmlab.emulator.form import Form
from gemmlab.emulator.lanes import TYPES, Lanes
from gemmlab.emulator.layout import LANES
from gemmlab.emulator.raw import lane_numbers
from gemmlab.emulator.wgmma_arithmetic import SUM
from gemmlab.emulator.wgmma_layout import FORMATS, ROWS, SUMS
from gemmlab.emulator.wgmma_operands import DECODE
from gemmlab.ir.types import I8, I32, VOID
from gemmlab.ir.values import Value

COLUMNS = 8
STEP = 16
"""Bytes along k that one register of A or B covers over the four lanes of a row or column."""


@dataclass(frozen=True, slots=True)
class Tile:
    """The sums of one warp's matrix multiplication, in memory. `kinds` are the types of A and B (`FORMATS`)."""

    x: Form
    kinds: tuple[str, str]
    sums: Value
    """16 rows of 8 sums, i32 or f32."""

    def multiply(self, left: Sequence[Lanes], right: Sequence[Lanes], rows: int, kind: int) -> None:
        """Emit the addition of A times B to the sums; `rows` is 8 or 16, `kind` as in `wgmma_arithmetic.SUM`.

        `left` has A's registers, `right` B's, all of one step along k before those of the next.
        """
        fn, words = self.x.fn, STEP // 4 * len(right)
        depth = 32 * words // FORMATS[self.kinds[0]].bits
        a, b = fn.scratch(I32, ROWS * words), fn.scratch(I32, COLUMNS * words)
        with fn.range(ROWS * words) as index:
            a[index] = fn.constant(0, I32)
        g, t = lane_numbers(fn) >> 2, lane_numbers(fn) & 3
        for number, register in enumerate(left):
            step, half = divmod(number, rows // 8)
            scatter(self.x, a, (g + 8 * half) * words + t + 4 * step, register)
        for step, register in enumerate(right):
            scatter(self.x, b, g * words + t + 4 * step, register)
        factors_a, exponents_a = self._decoded(a, self.kinds[0], ROWS * depth)
        rows_of_b, powers_of_b = self._decoded(b, self.kinds[1], COLUMNS * depth)
        factors_b, exponents_b = fn.scratch(I32, COLUMNS * depth), fn.scratch(I32, COLUMNS * depth)
        with fn.range(depth) as k, fn.range(COLUMNS) as column:
            factors_b[k * COLUMNS + column] = rows_of_b[column * depth + k]
            exponents_b[k * COLUMNS + column] = powers_of_b[column * depth + k]
        name = "sum_integers" if kind & 15 == SUMS["S32"] else "sum_floats"
        types = [type_ for _name, type_ in SUM]
        fn.call_external(
            name, VOID, types, factors_a, exponents_a, factors_b, exponents_b, self.sums, depth, COLUMNS, kind
        )

    def _decoded(self, words: Value, kind: str, count: int) -> tuple[Value, Value]:
        fn = self.x.fn
        factors, exponents = fn.scratch(I32, count), fn.scratch(I32, count)
        types = [type_ for _name, type_ in DECODE]
        fn.call_external("decode", VOID, types, fn.cast(words, I8), FORMATS[kind].code, count, factors, exponents)
        return factors, exponents


def scatter(x: Form, matrix: Value, place: Lanes, value: Lanes) -> None:
    """Emit writes of each lane's value to a matrix in memory, at the lane's index in `place`."""
    places, values = x.fn.scratch(I32, LANES), x.fn.scratch(value.value.type.scalar, LANES)
    x.fn.store(places, place.value)
    x.fn.store(values, value.value)
    with x.fn.range(LANES) as lane:
        x.fn.store(matrix + x.fn.zero_extend(places[lane]), values[lane])


def collect(x: Form, matrix: Value, place: Lanes, kind: str = "f32") -> Lanes:
    """Return for each lane the value in a matrix in memory at the lane's index in `place`, as one of type `kind`."""
    places, values = x.fn.scratch(I32, LANES), x.fn.scratch(TYPES[kind], LANES)
    x.fn.store(places, place.value)
    with x.fn.range(LANES) as lane:
        x.fn.store(values + lane, matrix[x.fn.zero_extend(places[lane])])
    return Lanes(x.fn.load(values, LANES))


def places(x: Form, count: int) -> list[Lanes]:
    """Return, for each accumulator register, the index of each lane's element in the sums."""
    g, t = lane_numbers(x.fn) >> 2, lane_numbers(x.fn) & 3
    return [(g + 8 * (number >> 1)) * COLUMNS + t * 2 + (number & 1) for number in range(count)]
