"""Copies of A and B in the order in which the register tile reads them.

B goes into strips of NR columns, k-major, and A into panels of MR rows, k-major. Data that are contiguous in the order
of the copy are copied by vectors; columns of B that are contiguous are transposed in registers; everything else is
copied element by element. (Contiguous rows of A that crowd L1 are copied by a loosening tile, not here.)
"""

from __future__ import annotations

from gemmlab.codegen.microkernel import FLOATS, LINE, Tile
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I64
from gemmlab.ir.values import Operand, Value


def transpose(fn: Function, rows: list[Value]) -> list[Value]:
    """Emit the transposition of a square of vectors, in log2(lanes) rounds of two-source shuffles; return its rows.

    Round `half` swaps the off-diagonal quarters of every 2*half square:

        a0 a1 | b0 b1        a0 a1 | c0 c1
        ------+------   ->   ------+------      (then the same inside each quarter)
        c0 c1 | d0 d1        b0 b1 | d0 d1
    """
    lanes = len(rows)
    half = lanes // 2
    rows = list(rows)
    while half:
        upper = [lane if lane & half == 0 else lanes + (lane - half) for lane in range(lanes)]
        lower = [lane + half if lane & half == 0 else lanes + lane for lane in range(lanes)]
        for first in range(lanes):
            if first & half == 0:
                top, bottom = rows[first], rows[first + half]
                rows[first] = fn.shuffle(top, bottom, upper)
                rows[first + half] = fn.shuffle(top, bottom, lower)
        half //= 2
    return rows


def emit_pack_strip(module: Module, tile: Tile) -> Function:
    """Emit `pack_strip(k, cols, b, row_stride, col_stride, out)`: copy one strip of B, `k` rows of `cols` <= NR.

    Row p of the copy starts at `out[p * width]`, where width is cols rounded up to whole vectors; columns from `cols`
    on are zeros.
    """
    lanes = module.lanes
    params = [("k", I64), ("cols", I64), ("b", FLOATS), ("row_stride", I64), ("col_stride", I64), ("out", FLOATS)]
    with module.function("pack_strip", params, noalias=("b", "out")) as fn:
        k, cols, b, row_stride, col_stride, out = fn.args
        width = fn.ceil_div(cols, lanes) * lanes
        with fn.choose(col_stride.equals(1)) as rows_contiguous:
            with rows_contiguous.yes():
                _copy_rows(fn, tile, k, cols, b, row_stride, out)
            with rows_contiguous.no(), fn.choose(row_stride.equals(1)) as cols_contiguous:
                with cols_contiguous.yes():
                    whole_k, whole_cols = k - k % lanes, cols - cols % lanes
                    with fn.range(0, whole_cols, lanes) as col, fn.range(0, whole_k, lanes) as p:
                        block = [fn.load(b + col_stride * (col + c) + p, lanes) for c in range(lanes)]
                        for step, row in enumerate(transpose(fn, block)):
                            fn.store(out + width * (p + step) + col, row)
                    _gather(fn, whole_k, k, 0, whole_cols, whole_cols, b, row_stride, col_stride, out, width)
                    _gather(fn, 0, k, whole_cols, cols, width, b, row_stride, col_stride, out, width)
                with cols_contiguous.no():
                    _gather(fn, 0, k, 0, cols, width, b, row_stride, col_stride, out, width)
        fn.finish()
    return fn


def _copy_rows(fn: Function, tile: Tile, k: Value, cols: Value, b: Value, row_stride: Value, out: Value) -> None:
    lanes = tile.lanes
    with fn.choose(cols.equals(tile.cols)) as full:
        with full.yes(), fn.range(k) as p:
            for v in range(tile.vectors):
                fn.store(out + p * tile.cols + v * lanes, fn.load(b + row_stride * p + v * lanes, lanes))
        with full.no():
            whole = cols - cols % lanes
            mask = fn.first_lanes(cols - whole, lanes)
            width = fn.ceil_div(cols, lanes) * lanes
            with fn.range(k) as p:
                with fn.range(0, whole, lanes) as col:
                    fn.store(out + width * p + col, fn.load(b + row_stride * p + col, lanes))
                with fn.when(whole < cols):
                    fn.store(out + width * p + whole, fn.load(b + row_stride * p + whole, lanes, mask))


def _gather(
    fn: Function,
    first_row: Operand,
    last_row: Operand,
    first_col: Operand,
    last_col: Operand,
    zero_to: Operand,
    b: Value,
    row_stride: Value,
    col_stride: Value,
    out: Value,
    width: Operand,
) -> None:
    """Emit the copy, element by element, of rows `first_row` to `last_row` - 1 and columns `first_col` to
    `last_col` - 1; in these rows, columns `last_col` to `zero_to` - 1 become zeros.
    """
    with fn.range(first_row, last_row) as p:
        with fn.range(first_col, last_col) as col:
            fn.store(out + p * width + col, fn.load(b + row_stride * p + col_stride * col))
        with fn.range(last_col, zero_to) as col:
            fn.store(out + p * width + col, 0.0)


def panel_stride(tile: Tile) -> int:
    """Return the floats from one step of k to the next in a packed panel of A: MR rounded up to whole vectors."""
    return -(-tile.rows // tile.lanes) * tile.lanes


def emit_pack_panel(module: Module, tile: Tile) -> Function:
    """Emit `pack_panel(rows, k, a, row_stride, k_stride, out)`: copy one panel of A, `rows` <= MR rows of `k` elements.

    Element (r, p) of the copy is `out[p * panel_stride + r]`; the places of further rows are undefined.
    """
    lanes, stride = module.lanes, panel_stride(tile)
    params = [("rows", I64), ("k", I64), ("a", FLOATS), ("row_stride", I64), ("k_stride", I64), ("out", FLOATS)]
    with module.function("pack_panel", params, noalias=("a", "out")) as fn:
        rows, k, a, row_stride, k_stride, out = fn.args
        with fn.choose(row_stride.equals(1)) as contiguous:
            with contiguous.yes():
                masks = [fn.first_lanes(rows - first, lanes) for first in range(0, stride, lanes)]
                with fn.range(k) as p:
                    for index, mask in enumerate(masks):
                        part = fn.load(a + k_stride * p + index * lanes, lanes, mask)
                        fn.store(out + p * stride + index * lanes, part)
            with contiguous.no(), fn.range(rows) as row, fn.range(k) as p:
                fn.store(out + p * stride + row, fn.load(a + row_stride * row + k_stride * p))
        fn.finish()
    return fn


def loose_stride(fn: Function, k: Value) -> Value:
    """Return the distance in floats at which rows of `k` floats do not crowd L1: an odd number of cache lines, so that
    the rows are spread over all sets.
    """
    return (fn.ceil_div(k, LINE) | 1) * LINE
