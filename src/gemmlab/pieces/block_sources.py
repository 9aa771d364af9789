"""The matrices of a large product: arrays of NumPy, mapped files and pinned memory among them, and arrays of a store.

Rows and columns are those of the memory or the store: an operand that kernels read transposed is not turned here.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.dispatch.request import rows_contiguous

Float32Array = npt.NDArray[np.float32]


class Block(NamedTuple):
    """A part of a matrix."""

    row: int
    rows: int
    col: int
    cols: int

    @property
    def place(self) -> tuple[slice, slice]:
        """The block as an index."""
        return slice(self.row, self.row + self.rows), slice(self.col, self.col + self.cols)

    def bands(self, rows: int) -> Iterator[Block]:
        """Yield bands of at most so many rows."""
        for start in range(0, self.rows, rows):
            yield self._replace(row=self.row + start, rows=min(rows, self.rows - start))


class Source(Protocol):
    """A matrix of float32 that is read, and one that is written, in blocks."""

    @property
    def value(self) -> Any:
        """The array that the caller gave."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def chunks(self) -> tuple[int, int] | None:
        """The extents of the parts that a store reads and writes at a time; `None` if it has none."""

    @property
    def memory(self) -> Float32Array | None:
        """The matrix, if it lies in memory and the elements of each row are adjacent."""

    def read(self, block: Block, into: Float32Array) -> None:
        """Copy a block into an array of its extents."""

    def write(self, block: Block, values: Float32Array) -> None:
        """Copy an array into a block."""

    def flush(self) -> None:
        """Return once everything written is where it outlives this process and, in a mapped file, this machine."""


@dataclass(frozen=True, slots=True)
class ArraySource:
    """A matrix in memory, or in a file that is mapped to it."""

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
            # h5py has `None` for an array in one part, Dask lists of extents.
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


def band_rows(source: Source, block: Block, most_bytes: int) -> int:
    """Return the rows of a block to read at a time: whole chunks, as far as `most_bytes` allow."""
    rows = max(1, most_bytes // max(1, FLOAT_BYTES * block.cols))
    chunk = 1 if source.chunks is None else max(1, source.chunks[0])
    return rows if rows < chunk else rows // chunk * chunk


def mapping_of(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """Return the mapping that an array's memory belongs to; `None` if it is no mapped file."""
    owner: Any = array
    while owner is not None and not isinstance(owner, mmap.mmap):
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return owner
