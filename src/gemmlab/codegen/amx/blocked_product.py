"""The blocked product of one job by tiles, and by multiply-adds where tiles cannot represent the operands exactly.

    for each block of NC columns (jc)
      for each k-block (pc)                    C is read and written once per k-block
        for each block of MC rows (ic)         panels of A, 32 rows each, split: stay in L2
          for each strip of 32 columns (jr)    strip of B, split while tiles multiply by the one before
            for each panel (ir)                tiles, or multiply-adds: `fits(panel, strip)` decides

Jobs begin at multiples of 32 rows and columns, k-blocks depend on k alone. So the same panels are multiplied by the
same strips for any number of threads, and the result has the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.codegen.amx import ahead, tile_registers
from gemmlab.codegen.amx.block import emit_block, part_count
from gemmlab.codegen.amx.split import LINES, emit_extremes, emit_split, step_bytes
from gemmlab.codegen.macrokernel import JOB, even_block
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I1, I8, I32, I64, pointer
from gemmlab.ir.values import Value

KC = 1024
"""Nominal length of a k-block. C is read and written once for each, which takes 2 % of the time."""
_KC_MOST = KC * 4 // 3 + tile_registers.DEPTH
_NC = 2048
_RANGE_WORDS = 2
_MANTISSA_BITS = 23
_LEAST_EXPONENT = 24
"""Least biased exponent of an element whose last bit is a normal number: the element is at least 2^-103."""
_LEAST_SUM = 174
"""Least sum of two elements' biased exponents for which the product of their last bits is a normal number: the product
of the elements is at least 2^-80.
"""
_MOST_EXPONENT = 253
"""Largest biased exponent of an element that rounds to a finite high part."""
_MOST_SUM = 366
"""Largest sum of two biased exponents for which `_KC_MOST` products stay below 2^127."""


@dataclass(frozen=True, slots=True)
class TileBlocks:
    """Cache blocks of the product by tiles: a block of A is MC x KC, a block of B KC x NC elements.

    Both are split into as many parts as `products`, the number of products of parts, needs (`block.part_count`).
    """

    mc: int
    products: int

    @property
    def step_bytes(self) -> int:
        return step_bytes(part_count(self.products))

    @property
    def panel_bytes(self) -> int:
        """Bytes of the longest packed panel or strip."""
        return -(-_KC_MOST // tile_registers.DEPTH) * self.step_bytes

    @property
    def panels(self) -> int:
        """The most panels that a block of A has."""
        return (self.mc * 4 // 3 + LINES) // LINES

    @property
    def strips(self) -> int:
        """The most strips that a block of B has."""
        return (_NC * 4 // 3 + LINES) // LINES

    @property
    def workspace_bytes(self) -> int:
        """Bytes that a thread needs for packed panels and strips, and the range of magnitudes of each."""
        return (self.panels + self.strips) * (self.panel_bytes + 8 * _RANGE_WORDS) + 64


def tile_blocks(l2_bytes: int, products: int) -> TileBlocks:
    """Return the cache blocks: a block of A takes 3/8 of L2, beside the strip and the tiles of C."""
    mc = max(1, l2_bytes * 3 // 8 // (KC // tile_registers.DEPTH * step_bytes(part_count(products)))) * LINES
    return TileBlocks(mc, products)


def emit_tiled_engine(module: Module, multiply_adds: Function, blocks: TileBlocks, offset: int) -> Function:
    """Emit `tiled_job(*JOB)`, which computes one rectangle of C on one thread.

    `multiply_adds` is the `job` of the float32 engine, which uses the first `offset` bytes of the workspace.
    """
    tile_registers.define_shape(module)
    parts = part_count(blocks.products)
    split_rows = emit_split(module, "split_rows", parts, lines_are_rows=True)
    split_cols = emit_split(module, "split_cols", parts, lines_are_rows=False)
    clear, find_range = emit_extremes(module)
    block, fits = emit_block(module, blocks.products), _emit_fits(module)
    with module.function("tiled_job", JOB) as fn:
        m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, ldc, workspace = fn.args
        a_pack = fn.cast(workspace, I8) + offset
        b_pack = a_pack + blocks.panels * blocks.panel_bytes
        a_ranges = fn.cast(b_pack + blocks.strips * blocks.panel_bytes, I64)
        b_ranges = a_ranges + blocks.panels * _RANGE_WORDS
        kc, nc = even_block(fn, k, KC, tile_registers.DEPTH), even_block(fn, n, _NC, LINES)
        mc = even_block(fn, m, blocks.mc, LINES)
        extremes, state = fn.scratch(I32, 2 * tile_registers.ROWS), fn.scratch(I64, ahead.WORDS)
        strip_extremes = ahead.extremes_of(fn, state)
        tile_registers.configure(fn)
        with fn.range(0, n, nc) as jc, fn.range(0, k, kc) as pc:
            nb, depth = fn.minimum(n - jc, nc), fn.minimum(k - pc, kc)
            steps = fn.ceil_div(depth, tile_registers.DEPTH)
            packed_bytes = steps * blocks.step_bytes
            keep = fn.select(pc.equals(0), beta, 1.0, F32)
            begun = fn.var(I64, -1)
            with fn.range(0, m, mc) as ic:
                mb = fn.minimum(m - ic, mc)
                a_block = a + a_row * ic + a_col * pc
                with fn.range(0, mb, LINES) as ir:
                    panel = a_pack + packed_bytes * (ir // LINES)
                    fn.call(clear, extremes)
                    fn.call(split_rows, mb - ir, 0, depth, a_block + a_row * ir, a_row, a_col, panel, extremes)
                    fn.call(find_range, extremes, a_ranges + ir // LINES * _RANGE_WORDS)
                ahead.fetch(fn, state, b_pack)
                with fn.range(0, nb, LINES) as jr:
                    cols, of_strip = fn.minimum(nb - jr, LINES), b + b_col * (jc + jr) + b_row * pc
                    strip, strip_range = b_pack + packed_bytes * (jr // LINES), b_ranges + jr // LINES * _RANGE_WORDS
                    with fn.when(ic.equals(0)):
                        first = fn.select(begun.read().equals(jr), ahead.finished(state, depth), 0)
                        with fn.when(begun.read().differs(jr)):
                            fn.call(clear, strip_extremes)
                        fn.call(split_cols, cols, first, depth, of_strip, b_col, b_row, strip, strip_extremes)
                        fn.call(find_range, strip_extremes, strip_range)
                        ahead.fetch(fn, state, strip + packed_bytes)
                        with fn.when(b_col.equals(1) & (jr + 2 * LINES <= nb)):
                            fn.call(clear, strip_extremes)
                            ahead.start(fn, state, depth, of_strip + LINES, b_row, strip + packed_bytes)
                            begun.set(jr + LINES)

                    with fn.when(ic > 0):
                        ahead.fetch(fn, state, strip + packed_bytes)

                    def fit(ir: Value) -> Value:
                        return fn.call(fits, a_ranges + ir // LINES * _RANGE_WORDS, strip_range).differs(0)

                    at = fn.var(I64, 0)
                    with fn.loop() as done:
                        ir = at.read()
                        fn.leave_if(done, ir >= mb)
                        c_at = c + ldc * (ic + ir) + (jc + jr)
                        end = fn.var(I64, fn.minimum(ir + LINES, mb))
                        with fn.choose(fit(ir)) as how:
                            with how.yes():
                                panel = a_pack + packed_bytes * (ir // LINES)
                                into = (c_at, ldc, alpha, keep, end - ir, cols)
                                fn.call(block, steps, panel, strip, *into, state)
                            with how.no():
                                # Panels one below the other that do not fit are one call.
                                with fn.loop() as last:
                                    fn.leave_if(last, end >= mb)
                                    fn.leave_if(last, fit(end.read()))
                                    end.set(fn.minimum(end + LINES, mb))
                                fn.call(
                                    multiply_adds, end - ir, cols, depth, alpha, a_block + a_row * ir, a_row, a_col,
                                    of_strip, b_row, b_col, keep, c_at, ldc, workspace,
                                )  # fmt: skip
                        at.set(end)
        tile_registers.release(fn)
        fn.finish()
    return fn


def _emit_fits(module: Module) -> Function:
    """Emit `fits(a_range, b_range)`: 1 if no part, product or sum of a panel and a strip is subnormal or overflows.

    Ranges are those of `find_range`. Every part is a multiple of the last bit of its operand's least element, and every
    product and sum a multiple of the product of both last bits. So none is subnormal if these are normal numbers.
    Infinities and NaN do not fit.
    """
    ranges = pointer(I64)
    with module.function("fits", [("a_range", ranges), ("b_range", ranges)], I64) as fn:
        largest, least = (
            [exponents >> _MANTISSA_BITS for exponents in words]
            for words in ([each[0] for each in fn.args], [each[1] + 1 for each in fn.args])
        )
        exact = fn.constant(1, I1)
        for most, low in zip(largest, least, strict=True):
            exact = exact & (most <= _MOST_EXPONENT) & (low >= _LEAST_EXPONENT)
        exact = exact & (largest[0] + largest[1] <= _MOST_SUM) & (least[0] + least[1] >= _LEAST_SUM)
        fn.finish(fn.zero_extend(exact))
    return fn
