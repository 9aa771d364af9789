"""The blocked product of one job: cache blocks around the register tile.

    for each block of NC columns (jc)
      for each k-block (pc)                    C is read and written once per k-block
        for each block of MC rows (ic)         A block MC x KC: stays in L2, copied if its rows crowd L1
          for each strip of NR columns (jr)    B strip KC x NR: packed, slice by slice, by the strip before it
            for each panel of MR rows (ir)     A panel MR x KC: comes through L1
              register tile

An element's result is the same whatever job, block or tile it falls into: its k-blocks depend on k alone, and
inside one every tile adds the same products in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gemmlab.codegen.blocking import Blocks
from gemmlab.codegen.microkernel import COPY_LEAD, COPYING, FLOATS, LINE, SIGNATURE, Tile, emit_microkernel
from gemmlab.codegen.packing import emit_pack_panel, emit_pack_strip, loose_stride, panel_stride
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I1, I64, VOID
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
"""Strides are in elements, of any sign; C's rows are contiguous and `ldc` apart. alpha != 0, k > 0."""

_PAGE = 1024
"""Floats in 4 KiB: rows of B at a multiple of that distance fall into few cache sets and evict each other."""
_FEW_STRIPS = 4
"""Up to this many strips, a tall A is read in place panel by panel instead of by blocks of MC rows."""
_SHORT = 64
"""Shorter k-blocks of crowded rows are read in place, without a copy."""
_BARE_STRIPS = 10
"""Up to this many strips, a product is small enough for its first strip of B to be read unpacked."""


def workspace_floats(tile: Tile, blocks: Blocks) -> int:
    """Number of floats that a job needs for its packed blocks, with a spare cache line at each seam."""
    return _b_floats(tile, blocks) + _a_floats(tile, blocks) + 64


def _b_floats(tile: Tile, blocks: Blocks) -> int:
    return -(-blocks.kc_max * (blocks.nc * 4 // 3 + 2 * tile.cols) // LINE) * LINE


def _single_floats(blocks: Blocks) -> int:
    """Largest size of A that makes a single block: 2/5 of L2."""
    return blocks.mc * blocks.kc * 8 // 5


def _a_floats(tile: Tile, blocks: Blocks) -> int:
    rows = blocks.mc * 4 // 3 + 2 * tile.rows
    elements = max(rows * blocks.kc_max, _single_floats(blocks))
    panels = -(-elements * panel_stride(tile) // tile.rows) + 2 * panel_stride(tile) * blocks.kc_max
    # `loose_stride` adds less than two lines to a row of at least _SHORT.
    return max(panels, elements * (_SHORT + 2 * LINE) // _SHORT) if blocks.crowd_period else panels


Args = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class _Kind:
    """Variants of a tile: its truth values, in the code under construction, choose the micro-kernel."""

    panel: Value
    """True if A is k-major, False if it is row-major."""
    copying: Value
    """True if the tile packs a slice of the next strip of B."""
    loosening: Value
    """True if the tile copies its panel of A, whose rows are crowded."""


class _Tiles:
    """Tables of micro-kernels by height and width, and calls through them."""

    def __init__(self, module: Module, tile: Tile, *, loosening: bool) -> None:
        self.tile = tile
        self.least_copying = tile.rows // 2
        self._plain: dict[bool, str] = {}
        self._copying: dict[bool, str] = {}
        for panel in (False, True):
            kind = "panel" if panel else "rows"
            plain = [
                emit_microkernel(module, rows, vectors, panel=panel, unroll=tile.unroll)
                for vectors in range(1, tile.vectors + 1)
                for rows in range(1, tile.rows + 1)
            ]
            copying = [
                emit_microkernel(module, rows, tile.vectors, panel=panel, unroll=tile.unroll, copying=True)
                for rows in range(self.least_copying, tile.rows + 1)
            ]
            self._plain[panel] = module.table(f"tiles_{kind}", plain)
            self._copying[panel] = module.table(f"tiles_{kind}_copying", copying)
        self._loosening = {
            copying: emit_microkernel(
                module, tile.rows, tile.vectors, panel=False, unroll=tile.unroll, copying=copying, loosening=True
            )
            for copying in ((False, True) if loosening else ())
        }

    def height(self, fn: Function, left: Value) -> Value:
        """Return the rows of the next panel when `left` remain: MR, but a thin last panel is split evenly with the one
        before.
        """
        mr = self.tile.rows
        thin = mr * 2 // 3
        shared = (left > mr) & (left < mr + thin)
        return fn.select(shared, (left + 1) // 2, fn.minimum(left, mr))

    def call(
        self, fn: Function, kind: _Kind, rows: Value, vectors: Value, shared: Args, of_b: Args, of_a: Args
    ) -> None:
        """Call the tile of that kind, height and width; a copying tile has full width, a loosening one full height too.

        `of_b` and `of_a` are the further arguments of copying and loosening tiles.
        """
        if not self._loosening:
            self._call_in_place(fn, kind, rows, vectors, shared, of_b)
            return
        with fn.choose(kind.loosening) as which:
            with which.yes(), fn.choose(kind.copying) as both:
                with both.yes():
                    fn.call(self._loosening[True], *shared, *of_b, *of_a)
                with both.no():
                    fn.call(self._loosening[False], *shared, *of_a)
            with which.no():
                self._call_in_place(fn, kind, rows, vectors, shared, of_b)

    def _call_in_place(self, fn: Function, kind: _Kind, rows: Value, vectors: Value, shared: Args, of_b: Args) -> None:
        for_copying = [type_ for _name, type_ in (*SIGNATURE, *COPYING)]
        with fn.choose(kind.panel) as which:
            for arm, key in ((which.yes, True), (which.no, False)):
                with arm(), fn.choose(kind.copying) as either:
                    with either.yes():
                        target = fn.table_entry(self._copying[key], rows - self.least_copying)
                        fn.call_pointer(target, VOID, for_copying, *shared, *of_b)
                    with either.no():
                        index = (vectors - 1) * self.tile.rows + rows - 1
                        target = fn.table_entry(self._plain[key], index)
                        fn.call_pointer(target, VOID, for_copying[: len(SIGNATURE)], *shared)


def even_block(fn: Function, total: Value, block: int, multiple: int) -> Value:
    """Return the block length that cuts `total` evenly into blocks of at most about 4/3 `block`."""
    count = fn.maximum((total + block * 2 // 3) // block, 1)
    return fn.ceil_div(fn.ceil_div(total, count), multiple) * multiple


def _crowded(blocks: Blocks, distance: Value) -> Value:
    """Return whether rows at this distance evict each other from L1."""
    off = (distance + blocks.crowd_slack) & (blocks.crowd_period - 1)
    return off <= 2 * blocks.crowd_slack


def emit_engine(module: Module, tile: Tile, blocks: Blocks) -> Function:
    """Emit the tiles, the packing and `job`, which multiplies one rectangle of C on one thread."""
    tiles = _Tiles(module, tile, loosening=blocks.crowd_period > 0)
    pack_strip, pack_panel = emit_pack_strip(module, tile), emit_pack_panel(module, tile)
    mr, nr = tile.rows, tile.cols
    with module.function("job", JOB) as fn:
        m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, ldc, workspace = fn.args
        b_pack = workspace
        a_pack = workspace + (_b_floats(tile, blocks) + 32)
        kc = even_block(fn, k, blocks.kc, 4)
        nc = even_block(fn, n, blocks.nc, nr)
        narrow = (n <= min(_FEW_STRIPS * nr, blocks.nc)) & (m > blocks.mc)
        # If A as one block nearly fits L2, not all strips of B need to be stored; else blocks are small.
        single = narrow.equals(0) & (m * kc <= _single_floats(blocks))
        mc = fn.select(narrow, mr, fn.select(single, m, even_block(fn, m, blocks.mc, mr)))
        rows_of_b = b_col.equals(1)
        direct = rows_of_b & (m <= mr)
        # A strip whose rows follow each other (`gemmlab.pack`): the next k-block lies behind this one.
        follows = rows_of_b & n.equals(nr) & b_row.equals(nr)
        # No earlier strip packs the first one; in a small product it is read in place.
        bare = single & (n <= _BARE_STRIPS * nr) & (b_row & (_PAGE - 1)).differs(0)
        panel = a_col.differs(1)
        copied = panel & (a_row.differs(1) | (n > nr))
        crowded = panel.equals(0) & _crowded(blocks, a_row) if blocks.crowd_period else fn.constant(0, I1)
        with fn.range(0, n, nc) as jc, fn.range(0, k, kc) as pc:
            nb, kb = fn.minimum(n - jc, nc), fn.minimum(k - pc, kc)
            keep_c = fn.select(pc.equals(0), beta, 1.0, F32)
            a_step = fn.select(copied, panel_stride(tile), fn.select(panel, a_col, a_row))
            # Full panels of crowded rows are copied apart by the first strip's tiles.
            loosened, loose = crowded & (nb >= nr) & (kb >= _SHORT), loose_stride(fn, kb)
            with fn.range(0, m, mc) as ic:
                mb = fn.minimum(m - ic, mc)
                panels = fn.ceil_div(mb, mr)
                a_block = a + a_row * ic + a_col * pc

                def packed_a(ir: Value) -> Value:
                    return a_pack + fn.ceil_div(ir, mr) * kb * panel_stride(tile)

                def pack_one(ir: Value, rows: Value) -> None:
                    fn.call(pack_panel, rows, kb, a_block + a_row * ir, a_row, a_col, packed_a(ir))

                with fn.when(copied):
                    _each_panel(fn, tiles, mb, pack_one)
                first = ic.equals(0)
                # Each panel's tiles pack a slice of the next strip, at a rate that fits into their rounds.
                rounds = kb // tile.unroll
                rate = fn.ceil_div(fn.ceil_div(kb, panels), fn.maximum(rounds, 1))
                slice_rows = fn.ceil_div(fn.ceil_div(kb, panels), rate) * rate
                slices = rows_of_b & first & (mb > mr) & (slice_rows <= fn.minimum(kb, rounds * rate))
                with fn.range(0, nb, nr) as jr:
                    cols = fn.minimum(nb - jr, nr)
                    vectors = fn.ceil_div(cols, tile.lanes)
                    source = b + b_row * pc + b_col * (jc + jr)
                    # With one block of A no strip is needed twice: two places taken in turns stay in L2.
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
                        apart, origin = loosened & rows.equals(mr), a_block + a_row * ir
                        in_rows = fn.select(apart, a_pack + loose * ir, origin, FLOATS)
                        a_at, step = fn.select(copied, packed_a(ir), in_rows, FLOATS), fn.select(apart, loose, a_step)
                        begin = fn.minimum(slice_rows * fn.ceil_div(ir, mr), fn.maximum(kb - slice_rows, 0))
                        b_at = fn.select(in_place, source, strip, FLOATS)
                        b_step = fn.select(in_place, b_row, vectors * tile.lanes)
                        common = (kb, a_at, step, b_at, b_step, where, ldc, alpha, keep_c, cols)
                        hint = fn.select(copying | ahead, ahead_at + ahead_step * begin, strip, FLOATS)
                        hints = (hint, ahead_step, fn.select(copying | ahead, slice_rows, 0), rate)
                        kind = _Kind(panel, copying, apart & jr.equals(0))
                        # Where the last slice ends, the strip that is copied after this one begins.
                        lead = b_row * (rate * COPY_LEAD)
                        last = (ir + rows >= mb) & (jr + 3 * nr <= nb)
                        beyond = fn.select(last, lead - b_row * kb + nr, lead)
                        of_b, of_a = (following + begin * nr, beyond), (origin, a_row)
                        tiles.call(fn, kind, rows, vectors, (*common, *hints), of_b, of_a)

                    _each_panel(fn, tiles, mb, multiply)
        fn.finish()
    return fn


def _each_panel(fn: Function, tiles: _Tiles, m: Value, body: Callable[[Value, Value], object]) -> None:
    """Call `body(first_row, rows)` for each panel of the next `m` rows."""
    at = fn.var(I64, 0)
    with fn.loop() as done:
        fn.leave_if(done, at.read() >= m)
        here = at.read()
        rows = tiles.height(fn, m - here)
        body(here, rows)
        at.set(here + rows)
