"""The left operand, A, as the tiles of a job read it: in place, packed, or copied to a larger row distance.

If A's rows are not contiguous (it is transposed, say), its blocks are packed into k-major panels before they are
multiplied; but if its columns are contiguous and C has a single strip, A is read in place. Contiguous rows that crowd
L1 (`codegen/blocking.py`) are copied by the tiles of the first strip while they multiply.
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
"""The fewest steps in a k-block whose crowded rows (`Left.crowded`) are copied. In a shorter k-block they are read in
place.
"""


@dataclass(frozen=True, slots=True)
class Left:
    """A job's left operand: its strides in floats, how tiles read it, and `room`, the address of memory for copies."""

    tile: Tile
    a_row: Value
    a_col: Value
    room: Value
    panel: Value
    """True if the tiles read A in k-major order."""
    copied: Value
    """True if blocks of A are packed before they are multiplied."""
    crowded: Value
    """True if A is read in rows that evict each other from L1."""

    @staticmethod
    def of(fn: Function, tile: Tile, blocks: Blocks, a_row: Value, a_col: Value, n: Value, room: Value) -> Left:
        """Return the left operand of a job with `n` columns of C."""
        panel = a_col.differs(1)
        copied = panel & (a_row.differs(1) | (n > tile.cols))
        crowded = panel.equals(0) & _crowded(blocks, a_row) if blocks.crowd_period else fn.constant(0, I1)
        return Left(tile, a_row, a_col, room, panel, copied, crowded)


@dataclass(frozen=True, slots=True)
class LeftBlock:
    """The left operand within one k-block of `depth` steps, as it is read for a block of C with `cols` columns."""

    fn: Function
    left: Left
    depth: Value
    step: Value
    """Distance in floats between the rows that a tile reads, or, if A is read in k-major order, between steps of k.
    Tiles that read copied rows (`loosened`) have the distance `loose` instead.
    """
    loosened: Value
    """True if the tiles of the first strip copy each panel of MR rows to a larger row distance; smaller panels are read
    in place.
    """
    loose: Value
    """Distance in floats between the copied rows."""

    @staticmethod
    def of(fn: Function, left: Left, depth: Value, cols: Value) -> LeftBlock:
        """Return the left operand within a k-block of `depth` steps, for a block of C with `cols` columns."""
        in_place = fn.select(left.panel, left.a_col, left.a_row)
        step = fn.select(left.copied, panel_stride(left.tile), in_place)
        loosened = left.crowded & (cols >= left.tile.cols) & (depth >= _SHORT)
        return LeftBlock(fn, left, depth, step, loosened, loose_stride(fn, depth))

    def pack(self, tiles: Tiles, pack_panel: Function, origin: Value, rows_below: Value) -> None:
        """Emit the packing of `rows_below` rows, the first of which is at `origin`, if blocks of A are packed."""
        left = self.left

        def pack_one(ir: Value, rows: Value) -> None:
            source = origin + left.a_row * ir
            self.fn.call(pack_panel, rows, self.depth, source, left.a_row, left.a_col, self._packed(ir))

        with self.fn.when(left.copied):
            each_panel(self.fn, tiles, rows_below, pack_one)

    def tile_at(self, origin: Value, ir: Value, rows: Value) -> tuple[Value, Value, Value, Value]:
        """Return where a tile finds its rows of A: the address and step with which it reads them, whether the first
        strip's tile must copy them there, and their address in the caller's A.

        The tile has `rows` rows from row `ir` of the block on; the block's first row is at `origin`.
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
    """Return the number of floats that the copies of a block of A take, packed or at a larger row distance.

    The block has at most `elements` elements.
    """
    panels = -(-elements * panel_stride(tile) // tile.rows) + 2 * panel_stride(tile) * blocks.kc_max
    # `loose_stride` adds less than two lines to a row of at least _SHORT.
    return max(panels, elements * (_SHORT + 2 * LINE) // _SHORT) if blocks.crowd_period else panels


def _crowded(blocks: Blocks, distance: Value) -> Value:
    """Emit a test, and return its result: whether rows at this distance, in floats, evict each other from L1.

    `crowd_period` must not be 0.
    """
    off = (distance + blocks.crowd_slack) & (blocks.crowd_period - 1)
    return off <= 2 * blocks.crowd_slack
