"""Arrays of a store without a store: float32 that is read and written by slices, in chunks if it has any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt


class Store:
    """As Zarr's arrays, as far as products ask."""

    def __init__(self, values: npt.NDArray[Any], chunks: tuple[int, int] | None = None) -> None:
        self.values = values
        self.shape, self.dtype = values.shape, values.dtype
        self.reads = list[tuple[int, int]]()
        """The extents of each part that was read."""
        self.writes = list[tuple[slice, slice]]()
        if chunks is not None:
            self.chunks = chunks

    def __getitem__(self, place: Any) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = self.values[place].copy()
        self.reads.append(found.shape)
        return found

    def __setitem__(self, place: Any, values: npt.NDArray[Any]) -> None:
        self.values[place] = values
        self.writes.append(place)

    def whole_chunks_were_written(self) -> bool:
        """True if each write was of whole chunks, and no chunk was written twice."""
        axes = list(zip(self.chunks, self.shape, strict=True))
        whole = all(
            cut.start % chunk == 0 and (cut.stop % chunk == 0 or cut.stop == extent)
            for place in self.writes
            for cut, (chunk, extent) in zip(place, axes, strict=True)
        )
        sizes = [(rows.stop - rows.start) * (cols.stop - cols.start) for rows, cols in self.writes]
        return whole and sum(sizes) == self.shape[0] * self.shape[1]


class DecodingStore(Store):
    """A store that, as Zarr, has all chunks that a copy concerns in memory at a time, encoded and decoded.

    It keeps no lists of reads and writes, which take memory too.
    """

    def __getitem__(self, place: Any) -> npt.NDArray[Any]:
        with self._in_memory(place, 2):
            found: npt.NDArray[Any] = self.values[place].copy()
            return found

    def __setitem__(self, place: Any, values: npt.NDArray[Any]) -> None:
        with self._in_memory(place, 4):
            self.values[place] = values

    @contextmanager
    def _in_memory(self, place: tuple[slice, slice], copies: int) -> Iterator[None]:
        chunks = [-(-cut.stop // chunk) - cut.start // chunk for cut, chunk in zip(place, self.chunks, strict=True)]
        kept = np.empty((copies, *chunks, *self.chunks), np.float32)
        yield
        del kept


class PlacedStore(Store):
    """A store that names its place as Zarr does: a folder and a path in it, or a place in memory."""

    def __init__(self, values: npt.NDArray[Any], root: str, path: str = "", *, read_only: bool = False) -> None:
        super().__init__(values)
        self.store_path = SimpleNamespace(store=_LocalStore(Path(root)), path=path)
        self.read_only = read_only


class MemoryStore(Store):
    """A store in memory, which names an address as its place."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        super().__init__(values)
        self.store_path = SimpleNamespace(store=f"memory://{id(self)}", path="")


class Hdf5Store(Store):
    """A dataset of a file, as h5py's: with a path, and the mode in which the file is open."""

    def __init__(self, values: npt.NDArray[Any], filename: str, name: str, mode: str = "r+") -> None:
        super().__init__(values)
        self.file, self.name = SimpleNamespace(filename=filename, mode=mode), name


class _LocalStore:
    def __init__(self, root: Path) -> None:
        self.root = root

    def __str__(self) -> str:
        return f"file://{self.root.as_posix()}"
