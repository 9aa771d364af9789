"""llvmlite, loaded on first use, and only if there is memory: LLVM aborts the process if it gets none."""

from __future__ import annotations

import mmap
from functools import cache
from typing import Any

_LIBRARY_BYTES = 192 << 20
"""Address space of llvmlite's library and of what it sets up."""


@cache
def binding() -> Any:
    """Return llvmlite's `binding`. `MemoryError` if there is no room to load it."""
    require_room(_LIBRARY_BYTES, "load LLVM")
    from llvmlite import binding as found

    return found


def require_room(nbytes: int, what: str) -> None:
    """Raise `MemoryError` unless the system would give this process `nbytes` now; `what` names the purpose."""
    try:
        private_memory(nbytes).close()
    except (OSError, OverflowError) as error:
        raise MemoryError(f"no {nbytes >> 20} MiB of memory to {what}: {error}") from error


def private_memory(nbytes: int) -> mmap.mmap:
    """Return zeroed memory that parent and child each have as their own after a fork. Raises `OSError`,
    `OverflowError`.
    """
    # Windows knows neither the flags nor a fork.
    if not hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, nbytes)
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
