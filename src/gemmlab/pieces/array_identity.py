"""The identity of an array, so that a run is resumed only with the arrays with which it began.

For a mapped file it has name, part, size and time of the last change; for an array in a store its place there. It also
has a digest of up to 64 elements at each of 64 places. Operands in the file of the result lack time and digest, because
a run changes that file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.mapped_file import FilePart, file_part
from gemmlab.pieces.block_sources import Block, Source, mapping_of

Float32Array = npt.NDArray[np.float32]
_PLACES, _ELEMENTS = 8, 64
"""Number of places along each axis of a matrix at which `digest` samples it, and the most adjacent elements of a row in
each sample.
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


def identity(source: Source, changing: FilePart | None) -> dict[str, Any]:
    """Return the identity of an operand. `changing` is the part of a file that has the result, or `None`: an operand in
    the same file has no time and no digest.
    """
    part = file_part(source.value) if isinstance(source.value, np.ndarray) else None
    found: dict[str, Any] = {"shape": list(source.shape), "store": store_place(source.value)}
    if part is not None:
        facts = part.path.stat()
        found |= {"file": str(part.path.resolve()), "bytes": [part.first, part.end], "size": facts.st_size}
        if changing is None or not part.same_file(changing):
            found["mtime_ns"] = facts.st_mtime_ns
            found["digest"] = digest(source)
        return found
    return {**found, "digest": digest(source)}


def place_of(source: Source) -> dict[str, Any]:
    """Return the identity of the result: its place, without its contents, which change."""
    part = file_part(source.value) if isinstance(source.value, np.ndarray) else None
    found: dict[str, Any] = {"shape": list(source.shape), "store": store_place(source.value)}
    return found if part is None else {**found, "file": str(part.path.resolve()), "bytes": [part.first, part.end]}


def digest(source: Source, block: Block | None = None) -> str:
    """Return a digest of elements of a matrix, or of a block of it: up to `_ELEMENTS` adjacent ones at each of
    `_PLACES` x `_PLACES` places.
    """
    rows, cols = source.shape
    within = Block(0, rows, 0, cols) if block is None else block
    total = hashlib.blake2b(digest_size=16)
    if within.rows and within.cols:
        width = min(_ELEMENTS, within.cols)
        sample = np.empty((1, width), np.float32)
        for row in _spread(within.rows - 1):
            for col in _spread(within.cols - width):
                source.read(Block(within.row + row, 1, within.col + col, width), sample)
                total.update(sample.tobytes())
    return total.hexdigest()


def _spread(last: int) -> Iterable[int]:
    return sorted({last * number // (_PLACES - 1) for number in range(_PLACES)})
