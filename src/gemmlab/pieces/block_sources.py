"""The matrices of a large product: arrays of NumPy (also mapped files and pinned memory), and arrays of a store.

Rows and columns are those of the memory or the store: an operand that kernels read transposed is not transposed here.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypedDict

import numpy as np
import numpy.typing as npt

from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.dispatch.request import rows_contiguous

Float32Array = npt.NDArray[np.float32]
_PART_FLOATS = 1 << 18
"""Elements of the parts in which an array without chunks is read: few, because a store's package allocates as many."""
_MOST_BYTES, _SHARE = 32 << 20, 8
"""The most bytes of chunks that are copied at a time, and the part of a block that they are at most."""


class Block(NamedTuple):
    """A part of a matrix: its first row, number of rows, first column, and number of columns."""

    row: int
    rows: int
    col: int
    cols: int

    @property
    def place(self) -> tuple[slice, slice]:
        """The block as two slices, of rows and of columns, which index the matrix."""
        return slice(self.row, self.row + self.rows), slice(self.col, self.col + self.cols)

    def within(self, other: Block) -> tuple[slice, slice]:
        """Return the block as two slices that index an array of the elements of `other`, a block that contains it."""
        return self._replace(row=self.row - other.row, col=self.col - other.col).place

    def bands(self, rows: int) -> Iterator[Block]:
        """Yield the block in bands of at most `rows` rows."""
        for start in range(0, self.rows, rows):
            yield self._replace(row=self.row + start, rows=min(rows, self.rows - start))


class ChunkFacts(TypedDict):
    """The fields of a `PiecePlan` with the same names."""

    chunks: tuple[int, int]
    chunk_bytes: int


class Source(Protocol):
    """A float32 matrix that is read or written in blocks."""

    @property
    def value(self) -> Any:
        """The caller's array, or a NumPy view of it; for a product without `out`, the newly allocated result."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def chunks(self) -> tuple[int, int] | None:
        """Rows and columns of the chunks in which a store reads and writes; `None` without chunks."""

    @property
    def memory(self) -> Float32Array | None:
        """The matrix as a NumPy array, if it lies in memory or in a mapped file and its rows are contiguous; else
        `None`.
        """

    def read(self, block: Block, into: Float32Array) -> None:
        """Copy `block` of the matrix into `into`, an array with the block's extents."""

    def write(self, block: Block, values: Float32Array) -> None:
        """Copy `values`, an array with the block's extents, into `block` of the matrix."""

    def flush(self) -> None:
        """Return once all written data will survive the end of this process and, in a mapped file, a crash of this
        machine.
        """


@dataclass(frozen=True, slots=True)
class ArraySource:
    """A matrix in memory or in a mapped file."""

    value: Any
    matrix: Float32Array

    @property
    def shape(self) -> tuple[int, int]:
        rows, cols = self.matrix.shape
        return rows, cols

    @property
    def chunks(self) -> tuple[int, int] | None:
        return None

    @property
    def memory(self) -> Float32Array | None:
        return self.matrix if rows_contiguous(self.matrix) else None

    def read(self, block: Block, into: Float32Array) -> None:
        np.copyto(into, self.matrix[block.place])

    def write(self, block: Block, values: Float32Array) -> None:
        np.copyto(self.matrix[block.place], values)

    def flush(self) -> None:
        found = mapping_of(self.matrix)
        if found is not None:
            found.flush()


@dataclass(frozen=True, slots=True)
class StoreSource:
    """A two-dimensional array that is indexed by slices, such as Zarr's or h5py's."""

    value: Any

    @property
    def shape(self) -> tuple[int, int]:
        rows, cols = self.value.shape
        return int(rows), int(cols)

    @property
    def chunks(self) -> tuple[int, int] | None:
        found: Any = getattr(self.value, "chunks", None)
        try:
            rows, cols = found
            return int(rows), int(cols)
        except (TypeError, ValueError):
            # h5py has `None` for an array without chunks, Dask lists of extents.
            return None

    @property
    def memory(self) -> Float32Array | None:
        return None

    def read(self, block: Block, into: Float32Array) -> None:
        np.copyto(into, np.asarray(self.value[block.place]), casting="no")

    def write(self, block: Block, values: Float32Array) -> None:
        self.value[block.place] = values

    def flush(self) -> None:
        for owner in (self.value, getattr(self.value, "file", None)):
            flush = getattr(owner, "flush", None)
            if callable(flush):
                flush()


def grain(source: Source, block: Block) -> tuple[int, int]:
    """Return the rows and columns of the least parts in which to copy a block: those of a chunk or, without chunks, of
    about `_PART_FLOATS` elements.
    """
    if source.chunks is not None:
        return max(1, source.chunks[0]), max(1, source.chunks[1])
    cols = min(max(1, block.cols), _PART_FLOATS)
    return _PART_FLOATS // cols, cols


def parts(source: Source, block: Block, most_bytes: int = 0) -> Iterator[Block]:
    """Yield parts that make up a block, row by row: of as many whole chunks as `most_bytes` allow, at least one.

    Without chunks, all parts have about `_PART_FLOATS` elements.
    """
    rows, cols = grain(source, block)
    most = 1 if source.chunks is None else max(1, most_bytes // (FLOAT_BYTES * rows * cols))
    wide = max(1, min(most, -(-(block.col + block.cols) // cols) - block.col // cols))
    for row, height in _cuts(block.row, block.rows, rows, max(1, most // wide)):
        for col, width in _cuts(block.col, block.cols, cols, wide):
            yield Block(row, height, col, width)


def of_chunks(a: Source | None, b: Source | None, others: Iterable[Source], turned: tuple[bool, bool]) -> ChunkFacts:
    """Return what a plan must know of the chunks of a product's matrices, as they are stored."""
    found = [each.chunks for each in (a, b, *others) if each is not None and each.chunks is not None]
    rows = a.chunks[turned[0]] if a is not None and a.chunks is not None else 1
    cols = b.chunks[not turned[1]] if b is not None and b.chunks is not None else 1
    most = max((FLOAT_BYTES * math.prod(each) for each in found), default=0)
    return ChunkFacts(chunks=(max(1, rows), max(1, cols)), chunk_bytes=most)


def at_once(nbytes: int) -> int:
    """Return the bytes of chunks to copy at a time, if there is more than one, of a block of `nbytes`: packages decode
    several at the same time, but they take memory.
    """
    return min(_MOST_BYTES, nbytes // _SHARE)


def band_rows(source: Source, block: Block, most_bytes: int) -> int:
    """Return how many rows of a block to copy at a time: those of whole chunks, as many as `most_bytes` allow.

    If not even one chunk's rows fit, it is the number of rows that do, at least 1.
    """
    rows = max(1, most_bytes // max(1, FLOAT_BYTES * block.cols))
    chunk = 1 if source.chunks is None else max(1, source.chunks[0])
    return rows if rows < chunk else rows // chunk * chunk


def mapping_of(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """Return the mapping that an array's memory is part of; `None` if it is no mapped file."""
    owner: Any = array
    while owner is not None and not isinstance(owner, mmap.mmap):
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return owner


def _cuts(first: int, extent: int, chunk: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield begin and extent of parts that make up a range, each in `count` chunks or, at an end, in fewer."""
    begin, stop = first, first // chunk * chunk
    while begin < first + extent:
        stop += count * chunk
        yield begin, min(first + extent, stop) - begin
        begin = stop
