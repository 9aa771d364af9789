"""The identity of an array, so that a run is resumed only with the arrays with which it began: its place in a file or
in a store, and a digest of all its elements.

Neither the time of a file's last change nor samples can stand for the digest. A process that writes to a mapped file
changes the time only with the first change of a page after the page is written to the disk; in a file system in memory,
with the first change of all. Most stores have no such time.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from gemmlab.arrays.mapped_file import file_part
from gemmlab.core.hardware import usable_cpus
from gemmlab.pieces.block_sources import ArraySource, Block, Source, grain, mapping_of, parts

_BANDS, _MOST_THREADS = 64, 8
"""A digest is of up to `_BANDS` bands of rows, so that up to `_MOST_THREADS` threads compute it, whatever the number of
processors.
"""


def store_place(value: Any) -> str:
    """Return the place of an array in its store, as the store's package names it; empty for a NumPy array, and if the
    package does not name it.
    """
    if isinstance(value, np.ndarray):
        return ""
    path = getattr(value, "store_path", None)
    if path is not None:
        return str(path)
    file, name = getattr(value, "file", None), getattr(value, "name", None)
    return f"{getattr(file, 'filename', '')}:{name}" if file is not None else ""


def outlives(source: Source) -> bool:
    """Return whether data written to a matrix outlive this process: it is in a file, not mapped privately, or in a
    store.
    """
    if mapping_of(source.value) is None:
        return not isinstance(source.value, np.ndarray) and hasattr(source.value, "__setitem__")
    part = file_part(source.value)
    return part is not None and part.shared


def identity(source: Source) -> dict[str, Any]:
    """Return the identity of an array without its contents: its extents and its place."""
    part = file_part(source.value) if isinstance(source.value, np.ndarray) else None
    found: dict[str, Any] = {"shape": list(source.shape), "store": store_place(source.value)}
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
