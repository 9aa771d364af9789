"""Arrays of a store without a store: float32 that is read and written by slices, in chunks if it has any."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt


class Store:
    """As Zarr's arrays, as far as products ask."""

    def __init__(self, values: npt.NDArray[Any], chunks: tuple[int, int] | None = None) -> None:
        self.values = values
        self.shape, self.dtype = values.shape, values.dtype
        self.reads = list[tuple[int, int]]()
        """The extents of each part that was read."""
        if chunks is not None:
            self.chunks = chunks

    def __getitem__(self, place: Any) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = self.values[place].copy()
        self.reads.append(found.shape)
        return found

    def __setitem__(self, place: Any, values: npt.NDArray[Any]) -> None:
        self.values[place] = values
