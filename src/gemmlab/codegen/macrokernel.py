"""The blocked product of one job: cache blocks around the register tile.

    for each block of NC columns (jc)
      for each k-block (pc)                    C is read and written once per k-block
        for each block of MC rows (ic)         A block MC x KC: copied to L2
          for each strip of NR columns (jr)    B strip KC x NR: packed on the fly by the first row panel
            for each panel of MR rows (ir)     A panel MR x KC: comes through L1
              register tile

An element's result is the same whatever job, block or tile it falls into: its k-blocks depend on k alone, and
inside one every tile adds the same products in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gemmlab.codegen.blocking import Blocks
from gemmlab.codegen.function import Function
from gemmlab.codegen.microkernel import FLOATS, SIGNATURE, THROUGH, Tile, emit_microkernel
from gemmlab.codegen.module import Module
from gemmlab.codegen.packing import emit_pack_panel, emit_pack_rows, emit_pack_strip, panel_stride
from gemmlab.codegen.types import F32, I64, VOID
from gemmlab.codegen.values import Value

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
"""Strides in elements, of any sign; C's rows are contiguous and `ldc` apart. alpha != 0, k > 0."""

_FEW_STRIPS = 4
"""Up to so many strips, A is read in place panel by panel instead of by blocks of MC rows."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The emitted pieces of one module: tile, blocks and the job function."""

    tile: Tile
    blocks: Blocks
    job: Function


def workspace_floats(tile: Tile, blocks: Blocks) -> int:
    """Floats a job needs for its packed blocks, with a cache line to spare at each seam."""
    return _b_floats(tile, blocks) + _a_floats(tile, blocks) + 64


def _b_floats(tile: Tile, blocks: Blocks) -> int:
    return blocks.kc_max * (blocks.nc * 4 // 3 + 2 * tile.cols)


def _a_floats(tile: Tile, blocks: Blocks) -> int:
    rows = blocks.mc * 4 // 3 + 2 * tile.rows
    return max(rows * (blocks.kc_max + 32), rows // tile.rows * panel_stride(tile) * blocks.kc_max)


class _Tiles:
    """Tables of micro-kernels by height and width, and calls through them."""

    def __init__(self, module: Module, tile: Tile) -> None:
        self.tile = tile
        self.least_through = tile.rows // 2 + 1
        self._plain: dict[bool, str] = {}
        self._through: dict[bool, str] = {}
        for panel in (False, True):
            kind = "panel" if panel else "rows"
            plain = [
                emit_microkernel(module, rows, vectors, panel=panel)
                for vectors in range(1, tile.vectors + 1)
                for rows in range(1, tile.rows + 1)
            ]
            through = [
                emit_microkernel(module, rows, tile.vectors, panel=panel, through=True)
                for rows in range(self.least_through, tile.rows + 1)
            ]
            self._plain[panel] = module.table(f"tiles_{kind}", plain)
            self._through[panel] = module.table(f"tiles_{kind}_through", through)

    def height(self, fn: Function, left: Value) -> Value:
        """Rows of the next panel when `left` remain: MR, but a thin last panel shares with the one before."""
        mr = self.tile.rows
        thin = mr * 2 // 3
        shared = (left > mr) & (left < mr + thin)
        return fn.select(shared, (left + 1) // 2, fn.minimum(left, mr))

    def call(self, fn: Function, panel: Value, rows: Value, vectors: Value, *args: Value) -> None:
        """The plain tile of that height and width."""
        index = (vectors - 1) * self.tile.rows + rows - 1
        with fn.choose(panel) as which:
            for arm, key in ((which.yes, True), (which.no, False)):
                with arm():
                    target = fn.table_entry(self._plain[key], index)
                    fn.call_pointer(target, VOID, [type_ for _name, type_ in SIGNATURE], *args)

    def call_through(self, fn: Function, panel: Value, rows: Value, *args: Value) -> None:
        """The full-width tile that also packs its strip of B."""
        index = rows - self.least_through
        with fn.choose(panel) as which:
            for arm, key in ((which.yes, True), (which.no, False)):
                with arm():
                    target = fn.table_entry(self._through[key], index)
                    fn.call_pointer(target, VOID, [type_ for _name, type_ in THROUGH], *args)


def even_block(fn: Function, total: Value, block: int, multiple: int) -> Value:
    """The block length that cuts `total` evenly into blocks of at most about 4/3 `block`."""
    count = fn.maximum((total + block * 2 // 3) // block, 1)
    return fn.ceil_div(fn.ceil_div(total, count), multiple) * multiple


def emit_engine(module: Module, tile: Tile, blocks: Blocks) -> Engine:
    """Emit the tiles, the packing and `job`, which multiplies one rectangle of C on one thread."""
    tiles = _Tiles(module, tile)
    pack_strip, pack_rows = emit_pack_strip(module, tile), emit_pack_rows(module)
    pack_panel = emit_pack_panel(module, tile)
    mr, nr = tile.rows, tile.cols
    with module.function("job", JOB) as fn:
        m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, ldc, workspace = fn.args
        b_pack = workspace
        a_pack = workspace + (_b_floats(tile, blocks) + 32)
        narrow = (n <= _FEW_STRIPS * nr) & (m > blocks.mc)
        mc = fn.select(narrow, mr, even_block(fn, m, blocks.mc, mr))
        kc = even_block(fn, k, blocks.kc, 4)
        nc = even_block(fn, n, blocks.nc, nr)
        rows_of_b = b_col.equals(1)
        direct = rows_of_b & (m <= mr)
        # Rows of A whose distance is a multiple of 1 KiB fall into few cache sets and push each other out.
        crowded = (a_row & 255).equals(0)
        panel = a_col.differs(1)
        copy_rows = a_col.equals(1) & (n > _FEW_STRIPS * nr) & (crowded | (n > 16 * nr))
        copy_panels = panel & (a_row.differs(1) | (n > nr))
        with fn.range(0, n, nc) as jc, fn.range(0, k, kc) as pc:
            nb, kb = fn.minimum(n - jc, nc), fn.minimum(k - pc, kc)
            keep_c = fn.select(pc.equals(0), beta, 1.0, F32)
            copied_step = fn.select(panel, panel_stride(tile), _odd_lines(kb))
            copied = copy_rows | copy_panels
            a_step = fn.select(copied, copied_step, fn.select(panel, a_col, a_row))
            strips = fn.ceil_div(nb, nr)
            with fn.range(0, m, mc) as ic:
                mb = fn.minimum(m - ic, mc)
                panels = fn.ceil_div(mb, mr)
                a_block = a + a_row * ic + a_col * pc

                def packed_a(ir: Value) -> Value:
                    return a_pack + fn.select(panel, fn.ceil_div(ir, mr) * kb * panel_stride(tile), copied_step * ir)

                with fn.when(copy_rows):
                    fn.call(pack_rows, mb, kb, a_block, a_row, a_pack, copied_step)
                with fn.when(copy_panels):
                    _each_panel(
                        fn,
                        tiles,
                        mb,
                        lambda ir, rows: fn.call(
                            pack_panel, rows, kb, a_block + a_row * ir, a_row, a_col, packed_a(ir)
                        ),
                    )
                first = ic.equals(0)
                through = rows_of_b & first & (mb > mr)
                more_rows = (ic + mc) < m
                next_block = fn.select(more_rows, a_block + a_row * mc, a + a_col * (pc + kc), FLOATS)
                has_next = copied & (more_rows | (pc + kc < k))
                with fn.range(0, nb, nr) as jr:
                    cols = fn.minimum(nb - jr, nr)
                    vectors = fn.ceil_div(cols, tile.lanes)
                    whole = cols.equals(nr)
                    source = b + b_row * pc + b_col * (jc + jr)
                    strip = b_pack + jr * kb
                    in_place = direct & whole
                    pass_through = through & whole
                    with fn.when(first & ((in_place | pass_through).equals(0))):
                        fn.call(pack_strip, kb, cols, source, b_row, b_col, strip)
                    # What the tiles of this strip prefetch: of the next strip, and of the next block of A.
                    from_source = first & rows_of_b
                    ahead = (jr + nr < nb) & (from_source | first.equals(0))
                    ahead_step = fn.select(from_source, b_row, nr)
                    next_strip = fn.select(from_source, source + nr, strip + kb * nr, FLOATS)
                    slice_rows = fn.ceil_div(kb, panels)
                    slice_k = fn.ceil_div(kb, strips)
                    next_at = next_block + fn.select(panel, a_col, 1) * (jr // nr * slice_k)

                    def multiply(ir: Value, rows: Value) -> None:
                        where = c + ldc * (ic + ir) + (jc + jr)
                        a_at = fn.select(copied, packed_a(ir), a_block + a_row * ir, FLOATS)
                        begin = slice_rows * fn.ceil_div(ir, mr)
                        hints = (
                            fn.select(ahead, next_strip + ahead_step * begin, strip, FLOATS),
                            ahead_step,
                            fn.select(ahead, slice_rows, 0),
                            fn.select(has_next, next_at + a_row * ir, strip, FLOATS),
                            fn.select(panel, a_col, a_row),
                            fn.select(has_next, fn.select(panel, slice_k, rows), 0),
                        )
                        with fn.choose(pass_through & ir.equals(0)) as packing:
                            with packing.yes():
                                tiles.call_through(
                                    fn, panel, rows, kb, a_at, a_step, source, b_row, where, ldc, alpha, keep_c, cols, *hints, strip
                                )
                            with packing.no():
                                b_at = fn.select(in_place, source, strip, FLOATS)
                                b_step = fn.select(in_place, b_row, vectors * tile.lanes)
                                tiles.call(
                                    fn, panel, rows, vectors, kb, a_at, a_step, b_at, b_step, where, ldc, alpha, keep_c, cols, *hints
                                )

                    _each_panel(fn, tiles, mb, multiply)
        fn.finish()
    return Engine(tile, blocks, fn)


def _odd_lines(length: Value) -> Value:
    """A row distance of an odd number of cache lines, so that rows spread over the cache sets."""
    return (((length + 15) // 16) | 1) * 16


def _each_panel(fn: Function, tiles: _Tiles, m: Value, body: Callable[[Value, Value], object]) -> None:
    """Call `body(first_row, rows)` for each panel of the next `m` rows."""
    at = fn.var(I64, 0)
    with fn.loop() as done:
        fn.leave_if(done, at.read() >= m)
        here = at.read()
        rows = tiles.height(fn, m - here)
        body(here, rows)
        at.set(here + rows)
