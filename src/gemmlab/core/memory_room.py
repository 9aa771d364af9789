"""Checks that there is enough memory, before work that would abort the process or stay half done without it."""

from __future__ import annotations

import mmap
import sys

_MODULES_BYTES = 32 << 20
"""Address space for the modules that compile and run kernels. They take some 8 MiB with Python 3.11."""


def require_room(nbytes: int, what: str) -> None:
    """Raise `MemoryError` unless the system would give this process `nbytes` now; `what` names the purpose."""
    try:
        private_memory(nbytes).close()
    except (OSError, OverflowError) as error:
        raise MemoryError(f"no {nbytes >> 20} MiB of memory to {what}: {error}") from error


def require_room_to_import(module: str) -> None:
    """Raise `MemoryError` unless a module has been imported or there is room for it and those that it imports.

    Without room for a shared library, an import raises ImportError; and `hashlib` then lacks its functions until the
    process ends.
    """
    if module not in sys.modules:
        require_room(_MODULES_BYTES, f"import {module}")


def private_memory(nbytes: int) -> mmap.mmap:
    """Return zeroed memory of which parent and child have separate copies after a fork. Raises `OSError`,
    `OverflowError`.
    """
    # Windows knows neither the flags nor a fork.
    if not hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, nbytes)
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
