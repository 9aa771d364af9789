"""The pieces of a product whose operands do not fit into a device's memory, their bytes and predicted times."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from gemmlab.core.notebook_view import Display, View
from gemmlab.core.precision import FLOAT_BYTES

ALIGNED = 256
"""Bytes on which each part of a device's memory begins."""
OPERANDS = ("a", "b", "c")
_ROW = 4
"""Floats in 16 bytes."""


@dataclass(frozen=True, slots=True)
class Room:
    """Memory on the device for panels of A or of B, or for pieces of C.

    `rows` and `cols` are the extents of one as it is stored: exchanged for a transposed operand.
    """

    rows: int
    cols: int
    slots: int
    """The number of panels or pieces at a time: with two, one is filled while the other is used."""

    @property
    def nbytes(self) -> int:
        """Bytes of one panel or piece, a multiple of `ALIGNED`."""
        return -(-FLOAT_BYTES * self.rows * self.cols // ALIGNED) * ALIGNED


@dataclass(frozen=True, slots=True, repr=False)
class PiecePlan(Display):
    """C (m x n, k terms) in pieces of `rows` x `cols`. Pieces at the right and lower edge may have other extents.

    A piece needs a panel of A, `rows` x k, and a panel of B, k x `cols`.
    """

    m: int
    n: int
    k: int
    rows: int
    cols: int
    by_rows: bool
    """True if a panel of A stays on the device while panels of B are exchanged; False if a panel of B stays."""
    turned: tuple[bool, bool]
    """True for A or B if it is stored transposed (layout t)."""
    least: tuple[int, int] = (1, 1)
    """The fewest rows and columns that a launch computes: those beyond the piece are zeros, and are not copied back."""
    tail: tuple[int, int] = (1, 1)
    """The fewest rows and columns of the last pieces. A shorter remainder is part of the piece before it."""
    tile: tuple[int, int] = (1, 1)
    """(rows, columns): launches begin at multiples of these numbers, and end at them or at the lower and right edge of
    C. What a launch computes beyond its piece is discarded.
    """
    unit: int = 1
    """The numbers of rows and of columns that a launch computes are multiples of this number."""
    reads: bool = True
    """False if alpha or k is 0: A and B are not read."""
    reads_c: bool = False
    """True if c is added, so that it is copied to the device."""
    chunks: tuple[int, int] = (1, 1)
    """Rows of the chunks of op(a), and columns of those of op(b), in stores, which read whole chunks; 1 without."""
    chunk_bytes: int = 0
    """Bytes of the largest chunk of operands and result in stores; 0 without chunks."""
    workspace_bytes: int = 0
    """Bytes of device memory besides panels and pieces: for the kernel or, on a CPU, for chunks of stores."""
    memory_bytes: int = 0
    """Bytes of device memory that may be used: the caller's bound or, without one, `PieceDevice.room`."""
    least_bytes: int = 0
    """The fewest bytes of device memory with which the product is possible."""
    staging_bytes: int = 0
    """Bytes of the host's pinned memory through which arrays are copied that are not pinned."""
    link_gbs: float | None = None
    """Rate of the link between host and device in each direction, 10^9 bytes a second; `None` if they share memory."""
    line_ns: float = 0.0
    """Least time of a row of a copy whose rows are not adjacent in the host's memory, in nanoseconds."""
    kernel_seconds: float | None = None
    """Estimated time of all products in seconds; `None` if unknown."""
    seconds: float | None = None
    """Predicted time of the call in seconds, `None` if unknown. Copies overlap with products, except for the first
    copies and the last one.
    """
    note: str = ""
    """A further line of the plan in words."""

    @property
    def grid(self) -> tuple[int, int]:
        """(number of pieces along m, number of pieces along n)."""
        return self._count(self.m, self.rows, 0), self._count(self.n, self.cols, 1)

    @property
    def count(self) -> int:
        """The number of pieces."""
        down, across = self.grid
        return down * across

    def extents(self, row: int, col: int) -> tuple[int, int]:
        """Return the rows and columns of the piece at index (row, col) of the grid."""
        down, across = self.grid
        return (
            self.m - row * self.rows if row == down - 1 else self.rows,
            self.n - col * self.cols if col == across - 1 else self.cols,
        )

    @property
    def widest(self) -> tuple[int, int]:
        """The most rows and columns that are computed for a piece."""
        return max(self.heights), max(self.widths)

    @property
    def heights(self) -> tuple[int, ...]:
        """All numbers of rows that are computed for a piece, and perhaps one that is not."""
        return self._lengths(0)

    @property
    def widths(self) -> tuple[int, ...]:
        """All numbers of columns that are computed for a piece, and perhaps one that is not."""
        return self._lengths(1)

    def launched(self, row: int, col: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return ((first row, rows), (first column, columns)) of the part of C that the launch for a piece computes:
        the piece and, unless it begins and ends at multiples of `tile`, the rest of the tiles at its edges.
        """
        return self._span(row, 0), self._span(col, 1)

    def computed(self, row: int, col: int) -> tuple[int, int]:
        """Return the rows and columns that are computed for a piece, with those beyond C's edge (`least`, `unit`)."""
        (_, rows), (_, cols) = self.launched(row, col)
        return self._padded(rows, 0), self._padded(cols, 1)

    @property
    def rooms(self) -> dict[str, Room]:
        """The memory for panels of A and B and pieces of C, by `"a"`, `"b"` and `"c"`.

        Rows in this memory are as far apart, modulo 16 bytes, as in the whole matrix, because kernels read rows by
        their alignment.
        """
        down, across = self.grid
        rows, cols = self.widest
        deep = self.k if self.reads else 0
        down_a, across_b = rows + (self.m - rows) % _ROW, cols + (self.n - cols) % _ROW
        return {
            "a": Room(deep, down_a, min(2, down)) if self.turned[0] else Room(rows, deep, min(2, down)),
            "b": Room(cols, deep, min(2, across)) if self.turned[1] else Room(deep, across_b, min(2, across)),
            "c": Room(rows, across_b, min(2, self.count)),
        }

    @property
    def device_bytes(self) -> int:
        """Bytes of device memory that the product uses, without those of the code and of the driver itself."""
        if not self.count:
            return 0
        return sum(room.nbytes * room.slots for room in self.rooms.values()) + self.workspace_bytes

    @property
    def bytes_in(self) -> int:
        """Bytes that are copied to the device. A panel is copied again if it is needed after others took its place.

        Rows and columns that are copied for tiles at two pieces (`tile`) are counted once.
        """
        return self._copied(1.0, 1.0)

    @property
    def bytes_read(self) -> int:
        """About the bytes that stores read for the copies to the device: whole chunks for each panel."""
        sizes = zip((self.rows, self.cols), self.chunks, strict=True)
        down, across = (1 + (chunk - math.gcd(each, chunk)) / each for each, chunk in sizes)
        return self._copied(down, across)

    @property
    def bytes_out(self) -> int:
        """Bytes that are copied from the device."""
        return FLOAT_BYTES * self.m * self.n

    @property
    def link_seconds(self) -> float | None:
        """Time of the slower direction of the link in seconds; `None` if host and device share memory."""
        return None if self.link_gbs is None else max(self.bytes_in, self.bytes_out) / (self.link_gbs * 1e9)

    def load_seconds(self, name: str) -> float:
        """Return the time of the link for one panel of `"a"` or `"b"`, or one piece of `"c"`; 0 if both share
        memory, and for a panel that is not read.
        """
        if self.link_gbs is None or not (self.reads or name == "c"):
            return 0.0
        a = (self.k, self.rows, self.m) if self.turned[0] else (self.rows, self.k, self.k)
        b = (self.cols, self.k, self.k) if self.turned[1] else (self.k, self.cols, self.n)
        lines, width, whole = {"a": a, "b": b, "c": (self.rows, self.cols, self.n)}[name]
        line_ns = FLOAT_BYTES * width / self.link_gbs
        return lines * (line_ns if width == whole else max(line_ns, self.line_ns)) * 1e-9

    def order(self) -> Iterator[tuple[int, int]]:
        """Yield the index (row, column) of each piece in the order in which they are computed.

        With `by_rows`, each row of pieces is computed in the opposite direction of the row before it, else each column.
        """
        down, across = self.grid
        outer, inner = (down, across) if self.by_rows else (across, down)
        for strip in range(outer):
            for place in range(inner) if strip % 2 == 0 else reversed(range(inner)):
                yield (strip, place) if self.by_rows else (place, strip)

    def _count(self, extent: int, each: int, axis: int) -> int:
        whole, rest = divmod(extent, each)
        return max(whole + (rest >= self.tail[axis] and rest > 0), min(extent, 1))

    def _copied(self, rows: float, cols: float) -> int:
        """Return the bytes that are copied to the device, if panels of A and B have so many times their elements."""
        down, across = self.grid
        if not self.count:
            return 0
        added = FLOAT_BYTES * self.m * self.n * self.reads_c
        if not self.reads:
            return added
        stays, passes = (self.m * rows, self.n * cols) if self.by_rows else (self.n * cols, self.m * rows)
        turns, panels, step = (down, across, self.cols * cols) if self.by_rows else (across, down, self.rows * rows)
        # A strip in the opposite direction finds the last two panels of the one before it.
        resident = (passes - max(0, panels - 2) * step, passes if panels <= 2 else 2 * step)
        again = (passes - resident[0]) * (turns // 2) + (passes - resident[1]) * ((turns - 1) // 2)
        return FLOAT_BYTES * self.k * round(stays + passes + again) + added

    def _span(self, index: int, axis: int) -> tuple[int, int]:
        whole, each, tile = (self.m, self.n)[axis], (self.rows, self.cols)[axis], self.tile[axis]
        first = index * each // tile * tile
        end = whole if index == self.grid[axis] - 1 else min(whole, -(-(index + 1) * each // tile) * tile)
        return first, end - first

    def _lengths(self, axis: int) -> tuple[int, ...]:
        whole, each, tile, count = (
            (self.m, self.n)[axis],
            (self.rows, self.cols)[axis],
            self.tile[axis],
            self.grid[axis],
        )
        found = {self._span(index, axis)[1] for index in (0, count - 1)}
        if count > 2:
            # A piece between them begins at most so many rows or columns after a multiple of the tile.
            most = tile - math.gcd(each, tile)
            found |= {min(whole, -(-(each + begin) // tile) * tile) for begin in (0, most)}
        return tuple(sorted({self._padded(length, axis) for length in found}))

    def _padded(self, extent: int, axis: int) -> int:
        return -(-max(extent, self.least[axis]) // self.unit) * self.unit

    def _line(self) -> str:
        return f"{self.count} of {self.rows} x {self.cols}, {self.device_bytes:,} bytes of {self.memory_bytes:,}"

    def _view(self) -> View:
        first, *more = self.lines()
        return View(first, lines=tuple(more))

    def lines(self) -> list[str]:
        """Return the plan in words, as lines of text."""
        down, across = self.grid
        stays, passes = ("A", "B") if self.by_rows else ("B", "A")
        panels = f"a panel of {stays} stays, those of {passes} change"
        lines = [
            f"pieces: {down} x {across} of {self.rows} x {self.cols}; {panels}",
            f"memory: {self.device_bytes:,} bytes of {self.memory_bytes:,}; the least is {self.least_bytes:,}",
            f"copies: {self.bytes_in:,} bytes in, {self.bytes_out:,} bytes out",
        ]
        if self.link_seconds is not None:
            ways = [f"link {self.link_seconds:.3g} s at {self.link_gbs:g} GB/s each way"]
            ways += [] if self.kernel_seconds is None else [f"kernel {self.kernel_seconds:.3g} s"]
            ways += [] if self.seconds is None else [f"together {self.seconds:.3g} s"]
            lines.append(f"predicted: {', '.join(ways)}")
        if self.staging_bytes:
            lines.append(f"arrays that are not pinned are copied through {self.staging_bytes:,} bytes of pinned memory")
        return [*lines, self.note] if self.note else lines

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, with bytes, times and count that follow from them."""
        names = ("device_bytes", "bytes_in", "bytes_out", "link_seconds", "count")
        return {**asdict(self), **{name: getattr(self, name) for name in names}}

    def __str__(self) -> str:
        return "\n".join(self.lines())
