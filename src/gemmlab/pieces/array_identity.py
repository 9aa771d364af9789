"""The identity of an array, so that a run is resumed only with the arrays with which it began: its place in a file or
in a store, and a digest of all its elements.

Neither the time of a file's last change nor samples can stand for the digest. A process that writes to a mapped file
changes the time only with the first change of a page after the page is written to the disk; in a file system in memory,
with the first change of all. Most stores have no such time.
"""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab.arrays.mapped_file import file_part
from gemmlab.core.hardware import usable_cpus
from gemmlab.pieces.block_sources import ArraySource, Block, Source, grain, mapping_of, parts

_BANDS, _MOST_THREADS = 64, 8
"""A digest is of up to `_BANDS` bands of rows, so that up to `_MOST_THREADS` threads compute it, whatever the number of
processors.
"""

_IN_MEMORY, _LOCAL = ("memory://", "gpumemory://"), {"file", "local"}
"""The beginnings of the place of a store in memory, and fsspec's names of this machine's files."""


def store_place(value: Any) -> str:
    """Return the place of an array in its store: for a store on this machine the real path, whatever the spelling
    under which it was opened; for another one the name that its package gives it.

    Empty for a NumPy array, and if the package names no place.
    """
    if isinstance(value, np.ndarray):
        return ""
    place = getattr(value, "store_path", None)
    if place is not None:
        return _zarr_place(place)
    filename = _hdf5_filename(value)
    return "" if filename is None else f"{os.path.realpath(filename)}:{getattr(value, 'name', None)}"


def same_array(one: Any, other: Any) -> bool:
    """Return whether two arrays of stores are one: the same object, or the same place."""
    if one is other:
        return True
    if _hdf5_filename(one) is not None and _hdf5_filename(other) is not None and one == other:
        # A dataset can have several names in a file: h5py compares the datasets themselves.
        return True
    place = store_place(one)
    return bool(place) and place == store_place(other)


def outlives(source: Source) -> bool:
    """Return whether data written to a matrix outlive this process: it is in a file, not mapped privately, or in a
    store that is not in memory.
    """
    value = source.value
    if mapping_of(value) is not None:
        part = file_part(value)
        return part is not None and part.shared
    if isinstance(value, np.ndarray) or not hasattr(value, "__setitem__"):
        return False
    filename = _hdf5_filename(value)
    # HDF5 in memory has the name of a file that does not exist.
    return not store_place(value).startswith(_IN_MEMORY) and (filename is None or Path(filename).exists())


def identity(source: Source) -> dict[str, Any]:
    """Return the identity of an array without its contents: its extents and its place, which memory has none of."""
    part = file_part(source.value) if isinstance(source.value, np.ndarray) else None
    place = store_place(source.value)
    lasting = "" if place.startswith(_IN_MEMORY) else place
    found: dict[str, Any] = {"shape": list(source.shape), "store": lasting}
    return found if part is None else {**found, "file": str(part.path.resolve()), "bytes": [part.first, part.end]}


def digest(source: Source, block: Block | None = None, most_bytes: int = 0) -> str:
    """Return a digest of all elements of a matrix, or of a block of it. For a store it depends on the chunks' extents.

    Chunks of a store are read by one thread, as in a product: as many at a time as `most_bytes` allow, at least one.
    """
    rows, cols = source.shape
    within = Block(0, rows, 0, cols) if block is None else block
    height = grain(source, within)[0]
    bands = list(within.bands(max(1, -(-within.rows // (_BANDS * height))) * height))

    def of_band(band: Block) -> bytes:
        total = hashlib.sha256()
        for part in parts(source, band, most_bytes):
            values = np.empty((part.rows, part.cols), np.float32)
            source.read(part, values)
            # Chunk by chunk, so that the digest does not depend on how many are read at a time.
            for each in parts(source, part):
                total.update(np.ascontiguousarray(values[each.within(part)]).data)
        return total.digest()

    threads = min(_MOST_THREADS, len(usable_cpus()), len(bands)) if isinstance(source, ArraySource) else 1
    if threads < 2:
        found = [of_band(band) for band in bands]
    else:
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(of_band, bands))
    return hashlib.sha256(b"".join(found)).hexdigest()


def _zarr_place(place: Any) -> str:
    """Return the place that a `zarr.storage.StorePath` names: a store, and a path in it."""
    store = getattr(place, "store", None)
    if store is None:
        return str(place)
    # Stores that log or cache wrap another.
    while (wrapped := getattr(store, "_store", None)) is not None:
        store = wrapped
    root = getattr(store, "root", getattr(store, "path", None))
    protocol = getattr(getattr(store, "fs", None), "protocol", ())
    protocols = {protocol} if isinstance(protocol, str) else set(protocol)
    if isinstance(root, Path) or protocols & _LOCAL:
        # A path in a store continues that of its folder, so an array of a group has one place.
        return os.path.realpath(Path(str(root)).joinpath(place.path))
    scheme = _IN_MEMORY[0] if "memory" in protocols else ""
    return f"{scheme}{store}/{place.path}".rstrip("/")


def _hdf5_filename(value: Any) -> str | None:
    """Return the name of the file that contains a dataset of h5py; `None` for another array."""
    found = getattr(getattr(value, "file", None), "filename", None)
    return None if found is None else str(found)
