"""The part of a file that a NumPy array is mapped from: two mappings of it have two addresses and the same elements."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_PRIVATE = "c"
"""The mode of a mapping whose changes are not written to the file."""


class FilePart(NamedTuple):
    """The part of a file that an array is mapped from."""

    path: Path
    first: int
    end: int
    """Offsets in the file: the first byte is `first`, the last one `end - 1`."""
    shared: bool
    """False if changes of the array are not written to the file."""

    def overlaps(self, other: FilePart) -> bool:
        """Return whether two parts share a byte."""
        return self.same_file(other) and self.first < other.end and other.first < self.end

    def same_file(self, other: FilePart) -> bool:
        """Return whether both are parts of one file, even under two names."""
        return self.path.samefile(other.path)


def file_part(value: Any) -> FilePart | None:
    """Return the part of a file that an array spans.

    `None` if `numpy.memmap` did not map the array from a file with a name, or if the array is empty.
    """
    owner: Any = value
    while owner is not None and not _is_mapping(owner):
        owner = getattr(owner, "base", None)
    if owner is None or owner.filename is None or not value.size:
        return None
    low, high = span(value)
    first = int(owner.offset) + value.ctypes.data + low - owner.ctypes.data
    return FilePart(Path(owner.filename), first, first + high - low, owner.mode != _PRIVATE)


def span(array: npt.NDArray[Any]) -> tuple[int, int]:
    """Return the offsets in bytes of an array's first byte and of the one after its last, counted from its address."""
    low, high = 0, array.itemsize
    for step, extent in zip(array.strides, array.shape, strict=True):
        if step < 0:
            low += step * (extent - 1)
        else:
            high += step * (extent - 1)
    return low, high


def _is_mapping(array: Any) -> bool:
    """Return whether an array is a mapped file itself, not a view of one."""
    base: Any = getattr(array, "base", None)
    return isinstance(array, np.memmap) and isinstance(base, mmap.mmap)
