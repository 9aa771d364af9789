"""llvmlite, loaded on first use, and only if there is memory: LLVM aborts the process if it gets none."""

from __future__ import annotations

from functools import cache
from typing import Any

from gemmlab.core.memory_room import require_room

_LIBRARY_BYTES = 192 << 20
"""Bytes of address space that are needed to load and initialise llvmlite's library."""


@cache
def binding() -> Any:
    """Return the module `llvmlite.binding`. Raises `MemoryError` if there is no room to load it."""
    require_room(_LIBRARY_BYTES, "load LLVM")
    from llvmlite import binding as found

    return found
