"""The micro-kernels of one register tile for every kind, number of rows and number of vectors, and calls of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gemmlab.codegen.microkernel import COPYING, SIGNATURE, Tile, emit_microkernel
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I64, VOID
from gemmlab.ir.values import Value

Args = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of a tile: truth values, in the code under construction, by which a micro-kernel is chosen."""

    panel: Value
    """True if A is k-major, False if it is row-major."""
    copying: Value
    """True if the tile packs a slice of the next strip of B."""
    loosening: Value
    """True if the tile copies its panel of A, whose rows crowd L1."""


class Tiles:
    """Emits the micro-kernels of a tile, tables of their addresses, and calls of them."""

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
        """Emit the number of rows of the next panel if `left` rows remain, MR at most, and return it.

        If the last panel would have less than 2/3 MR rows, the last two panels share their rows evenly.
        """
        mr = self.tile.rows
        thin = mr * 2 // 3
        shared = (left > mr) & (left < mr + thin)
        return fn.select(shared, (left + 1) // 2, fn.minimum(left, mr))

    def call(self, fn: Function, kind: Kind, rows: Value, vectors: Value, shared: Args, of_b: Args, of_a: Args) -> None:
        """Emit a call of the micro-kernel of a kind for `rows` rows of `vectors` vectors.

        `shared` are the arguments `SIGNATURE`; copying tiles get `of_b`, too, and loosening ones `of_a`. Only tiles of
        full width with at least `least_copying` rows can copy, and only those of full width with MR rows can loosen.
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

    def _call_in_place(self, fn: Function, kind: Kind, rows: Value, vectors: Value, shared: Args, of_b: Args) -> None:
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


def each_panel(fn: Function, tiles: Tiles, m: Value, body: Callable[[Value, Value], object]) -> None:
    """Emit a loop over the panels of `m` rows; `body(first_row, rows)` emits what is done for a panel."""
    at = fn.var(I64, 0)
    with fn.loop() as done:
        fn.leave_if(done, at.read() >= m)
        here = at.read()
        rows = tiles.height(fn, m - here)
        body(here, rows)
        at.set(here + rows)
