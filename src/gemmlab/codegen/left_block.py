"""A as the tiles of a job read it: in place; in packed panels if transposed; copied to a larger row distance if its
rows crowd L1.

A transposed A is packed a block at a time, before the block is multiplied. Rows that crowd L1 are copied by the tiles
of the first strip while they multiply.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.codegen.blocking import Blocks
from gemmlab.codegen.microkernel import FLOATS, LINE, Tile
from gemmlab.codegen.packing import loose_stride, panel_stride
from gemmlab.codegen.tile_table import Tiles, each_panel
from gemmlab.ir.function import Function
from gemmlab.ir.types import I1
from gemmlab.ir.values import Value

_SHORT = 64
"""Shorter k-blocks of crowded rows are read in place, without a copy."""


@dataclass(frozen=True, slots=True)
class Left:
    """The A of a job: its strides, and room for copies at `room`."""

    tile: Tile
    a_row: Value
    a_col: Value
    room: Value
    panel: Value
    """True if the tiles read A in k-major order."""
    copied: Value
    """True if blocks of A are packed before they are multiplied."""
    crowded: Value
    """True if its rows evict each other from L1."""

    @staticmethod
    def of(fn: Function, tile: Tile, blocks: Blocks, a_row: Value, a_col: Value, n: Value, room: Value) -> Left:
        """Return the A of a job with `n` columns of C."""
        panel = a_col.differs(1)
        copied = panel & (a_row.differs(1) | (n > tile.cols))
        crowded = panel.equals(0) & _crowded(blocks, a_row) if blocks.crowd_period else fn.constant(0, I1)
        return Left(tile, a_row, a_col, room, panel, copied, crowded)


@dataclass(frozen=True, slots=True)
class LeftBlock:
    """The A of one k-block of `depth` steps, of which `cols` columns of C are computed."""

    fn: Function
    left: Left
    depth: Value
    step: Value
    """Distance between rows, or between steps of k in a panel."""
    loosened: Value
    """True if the first strip's tiles copy full panels to a larger row distance."""
    loose: Value
    """Distance between the copied rows."""

    @staticmethod
    def of(fn: Function, left: Left, depth: Value, cols: Value) -> LeftBlock:
        """Return the block of A."""
        in_place = fn.select(left.panel, left.a_col, left.a_row)
        step = fn.select(left.copied, panel_stride(left.tile), in_place)
        loosened = left.crowded & (cols >= left.tile.cols) & (depth >= _SHORT)
        return LeftBlock(fn, left, depth, step, loosened, loose_stride(fn, depth))

    def pack(self, tiles: Tiles, pack_panel: Function, origin: Value, rows_below: Value) -> None:
        """Pack the panels of `rows_below` rows from `origin` on, if A is packed."""
        left = self.left

        def pack_one(ir: Value, rows: Value) -> None:
            source = origin + left.a_row * ir
            self.fn.call(pack_panel, rows, self.depth, source, left.a_row, left.a_col, self._packed(ir))

        with self.fn.when(left.copied):
            each_panel(self.fn, tiles, rows_below, pack_one)

    def tile_at(self, origin: Value, ir: Value, rows: Value) -> tuple[Value, Value, Value, Value]:
        """Return, for the tile of `rows` rows from `ir` on, its address and step, whether it copies its rows, and their
        source.
        """
        fn, left = self.fn, self.left
        apart, source = self.loosened & rows.equals(left.tile.rows), origin + left.a_row * ir
        in_rows = fn.select(apart, left.room + self.loose * ir, source, FLOATS)
        at = fn.select(left.copied, self._packed(ir), in_rows, FLOATS)
        return at, fn.select(apart, self.loose, self.step), apart, source

    def _packed(self, ir: Value) -> Value:
        panels = self.fn.ceil_div(ir, self.left.tile.rows)
        return self.left.room + panels * self.depth * panel_stride(self.left.tile)


def left_floats(tile: Tile, blocks: Blocks, elements: int) -> int:
    """Return the floats of room for copies of a block of A of so many elements."""
    panels = -(-elements * panel_stride(tile) // tile.rows) + 2 * panel_stride(tile) * blocks.kc_max
    # `loose_stride` adds less than two lines to a row of at least _SHORT.
    return max(panels, elements * (_SHORT + 2 * LINE) // _SHORT) if blocks.crowd_period else panels


def _crowded(blocks: Blocks, distance: Value) -> Value:
    """Return whether rows at this distance evict each other from L1."""
    off = (distance + blocks.crowd_slack) & (blocks.crowd_period - 1)
    return off <= 2 * blocks.crowd_slack
