"""Check that there is enough memory before work that would otherwise abort the process or stay half done."""

from __future__ import annotations

import mmap
import sys

_MODULES_BYTES = 32 << 20
"""Bytes of address space required before an import. Modules that compile and run kernels take some 8 MiB."""


def require_room(nbytes: int, what: str) -> None:
    """Raise `MemoryError` unless the system can map `nbytes` for this process now; `what` says what they are for."""
    try:
        private_memory(nbytes).close()
    except (OSError, OverflowError) as error:
        raise MemoryError(f"no {nbytes >> 20} MiB of memory to {what}: {error}") from error


def require_room_to_import(module: str) -> None:
    """Raise `MemoryError` unless `module` has been imported already or 32 MiB of memory are free to import it.

    An import without enough memory for a shared library raises `ImportError` instead; and `hashlib` then lacks
    functions until the process ends.
    """
    if module not in sys.modules:
        require_room(_MODULES_BYTES, f"import {module}")


def private_memory(nbytes: int) -> mmap.mmap:
    """Return zeroed memory. After a fork, parent and child have separate copies. Raises `OSError`, `OverflowError`."""
    # Windows has neither these flags nor forks.
    if not hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, nbytes)
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
