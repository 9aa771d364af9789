"""The blocked product of one job: cache blocks around the register tile.

    for each block of NC columns (jc)
      for each k-block (pc)                    C is read and written once per k-block
        for each block of MC rows (ic)         A block MC x KC: stays in L2, copied if its rows crowd L1
          for each strip of NR columns (jr)    B strip KC x NR: packed, slice by slice, by the strip before it
            for each panel of MR rows (ir)     A panel MR x KC: comes through L1
              register tile

An element's result is the same in every job, block or tile: its k-blocks depend on k alone, and within one every tile
adds the same products in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.codegen.blocking import Blocks
from gemmlab.codegen.left_block import Left, LeftBlock, left_floats
from gemmlab.codegen.microkernel import COPY_LEAD, FLOATS, LINE, Tile
from gemmlab.codegen.packing import emit_pack_panel, emit_pack_strip
from gemmlab.codegen.tile_table import Kind, Tiles, each_panel
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I64
from gemmlab.ir.values import Value

JOB = (
    ("m", I64),
    ("n", I64),
    ("k", I64),
    ("alpha", F32),
    ("a", FLOATS),
    ("a_row", I64),
    ("a_col", I64),
    ("b", FLOATS),
    ("b_row", I64),
    ("b_col", I64),
    ("beta", F32),
    ("c", FLOATS),
    ("ldc", I64),
    ("workspace", FLOATS),
)
"""Arguments of a job. Strides are in elements, of any sign; C's rows are contiguous and `ldc` apart. alpha is not 0,
and k is positive.
"""

_PAGE = 1024
"""Floats in 4 KiB: rows of B at a multiple of that distance share few cache sets and evict each other."""
_FEW_STRIPS = 4
"""With at most this many strips of B, a tall A is multiplied panel by panel instead of by blocks of MC rows."""
_BARE_STRIPS = 10
"""With at most this many strips of B, the first strip may be read unpacked if A is a single block."""


def workspace_floats(tile: Tile, blocks: Blocks) -> int:
    """Return the number of floats of a job's workspace: a packed block of B, copies of a block of A, and some space
    between them.
    """
    return _b_floats(tile, blocks) + _a_floats(tile, blocks) + 64


def _b_floats(tile: Tile, blocks: Blocks) -> int:
    return -(-blocks.kc_max * (blocks.nc * 4 // 3 + 2 * tile.cols) // LINE) * LINE


def _single_floats(blocks: Blocks) -> int:
    """Return the most floats that all rows of A may have within a k-block so that they are kept as one block: 2/5 of
    L2.
    """
    return blocks.mc * blocks.kc * 8 // 5


def _a_floats(tile: Tile, blocks: Blocks) -> int:
    rows = blocks.mc * 4 // 3 + 2 * tile.rows
    return left_floats(tile, blocks, max(rows * blocks.kc_max, _single_floats(blocks)))


def even_block(fn: Function, total: Value, block: int, multiple: int) -> Value:
    """Emit the block length, a multiple of `multiple`, that cuts `total` into equal blocks but for the last; return it.

    Blocks are at most 4/3 as long as `block`, before the length is rounded up.
    """
    count = fn.maximum((total + block * 2 // 3) // block, 1)
    return fn.ceil_div(fn.ceil_div(total, count), multiple) * multiple


@dataclass(frozen=True, slots=True)
class Engine:
    """Functions that compute products on one thread: `job`, which computes a rectangle of C, and those it calls."""

    job: Function
    tiles: Tiles
    blocks: Blocks
    pack_strip: Function
    pack_panel: Function

    def left_at(self, workspace: Value) -> Value:
        """Return the address within a workspace of the memory for copies of A."""
        return workspace + (_b_floats(self.tiles.tile, self.blocks) + 32)


def is_narrow(tile: Tile, blocks: Blocks, m: Value, n: Value) -> Value:
    """Emit a test, and return its result: whether C is so narrow and so high that a block of A is a single panel.

    A panel, of MR rows, is then multiplied by so few strips that it need not stay in L2.
    """
    return (n <= min(_FEW_STRIPS * tile.cols, blocks.nc)) & (m > blocks.mc)


def emit_engine(module: Module, tile: Tile, blocks: Blocks) -> Engine:
    """Emit the tiles, the packing functions, and `job(*JOB)`, which computes one rectangle of C on one thread."""
    tiles = Tiles(module, tile, loosening=blocks.crowd_period > 0)
    pack_strip, pack_panel = emit_pack_strip(module, tile), emit_pack_panel(module, tile)
    mr, nr = tile.rows, tile.cols
    with module.function("job", JOB) as fn:
        engine = Engine(fn, tiles, blocks, pack_strip, pack_panel)
        m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, ldc, workspace = fn.args
        b_pack = workspace
        left = Left.of(fn, tile, blocks, a_row, a_col, n, engine.left_at(workspace))
        kc = even_block(fn, k, blocks.kc, 4)
        nc = even_block(fn, n, blocks.nc, nr)
        narrow = is_narrow(tile, blocks, m, n)
        # If A as one block nearly fits L2, not all strips of B need to be stored; else blocks are small.
        single = narrow.equals(0) & (m * kc <= _single_floats(blocks))
        mc = fn.select(narrow, mr, fn.select(single, m, even_block(fn, m, blocks.mc, mr)))
        rows_of_b = b_col.equals(1)
        direct = rows_of_b & (m <= mr)
        # A strip with adjacent rows (`gemmlab.pack`): the next k-block lies behind this one.
        follows = rows_of_b & n.equals(nr) & b_row.equals(nr)
        # No earlier strip packs the first one; in a small product it is read in place.
        bare = single & (n <= _BARE_STRIPS * nr) & (b_row & (_PAGE - 1)).differs(0)
        with fn.range(0, n, nc) as jc, fn.range(0, k, kc) as pc:
            nb, kb = fn.minimum(n - jc, nc), fn.minimum(k - pc, kc)
            keep_c = fn.select(pc.equals(0), beta, 1.0, F32)
            of_a = LeftBlock.of(fn, left, kb, nb)
            with fn.range(0, m, mc) as ic:
                mb = fn.minimum(m - ic, mc)
                panels = fn.ceil_div(mb, mr)
                a_block = a + a_row * ic + a_col * pc
                of_a.pack(tiles, pack_panel, a_block, mb)
                first = ic.equals(0)
                # Each panel's tiles pack a slice of the next strip, at a rate that their rounds can take.
                rounds = kb // tile.unroll
                rate = fn.ceil_div(fn.ceil_div(kb, panels), fn.maximum(rounds, 1))
                slice_rows = fn.ceil_div(fn.ceil_div(kb, panels), rate) * rate
                slices = rows_of_b & first & (mb > mr) & (slice_rows <= fn.minimum(kb, rounds * rate))
                with fn.range(0, nb, nr) as jr:
                    cols = fn.minimum(nb - jr, nr)
                    vectors = fn.ceil_div(cols, tile.lanes)
                    source = b + b_row * pc + b_col * (jc + jr)
                    # With one block of A no strip is needed twice: two places used in turn stay in L2.
                    strip = b_pack + fn.select(single, (jr // nr & 1) * (kb * nr), jr * kb)
                    following = b_pack + fn.select(single, (jr // nr + 1 & 1) * (kb * nr), (jr + nr) * kb)
                    in_place = (direct | (bare & slices & jr.equals(0))) & cols.equals(nr)
                    packed_before = slices & (jr > 0) & cols.equals(nr)
                    with fn.when(first & (in_place | packed_before).equals(0)):
                        fn.call(pack_strip, kb, cols, source, b_row, b_col, strip)
                    copying = slices & (jr + 2 * nr <= nb)
                    ahead = follows | ((jr + nr < nb) & (direct | first.equals(0)))
                    beside = (direct | copying) & follows.equals(0)
                    behind = fn.select(follows, source, strip, FLOATS) + kb * nr
                    ahead_at = fn.select(beside, source + nr, behind, FLOATS)
                    ahead_step = fn.select(beside, b_row, nr)

                    def multiply(ir: Value, rows: Value) -> None:
                        where = c + ldc * (ic + ir) + (jc + jr)
                        a_at, step, apart, origin = of_a.tile_at(a_block, ir, rows)
                        begin = fn.minimum(slice_rows * fn.ceil_div(ir, mr), fn.maximum(kb - slice_rows, 0))
                        b_at = fn.select(in_place, source, strip, FLOATS)
                        b_step = fn.select(in_place, b_row, vectors * tile.lanes)
                        common = (kb, a_at, step, b_at, b_step, where, ldc, alpha, keep_c, cols)
                        hint = fn.select(copying | ahead, ahead_at + ahead_step * begin, strip, FLOATS)
                        hints = (hint, ahead_step, fn.select(copying | ahead, slice_rows, 0), rate)
                        kind = Kind(left.panel, copying, apart & jr.equals(0))
                        # The strip that is copied next begins where the last slice ends.
                        lead = b_row * (rate * COPY_LEAD)
                        last = (ir + rows >= mb) & (jr + 3 * nr <= nb)
                        beyond = fn.select(last, lead - b_row * kb + nr, lead)
                        of_b = (following + begin * nr, beyond)
                        tiles.call(fn, kind, rows, vectors, (*common, *hints), of_b, (origin, a_row))

                    each_panel(fn, tiles, mb, multiply)
        fn.finish()
    return engine
