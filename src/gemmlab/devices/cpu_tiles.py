"""The permission to use AMX tiles in this process."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

from gemmlab.core.hardware import cpu_info
from gemmlab.ir.target import host_target

FEATURES = ("amx_tile", "amx_bf16")
_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18
"""Linux on x86-64: the number of the system call arch_prctl, its operation ARCH_REQ_XCOMP_PERM, and the number of the
tiles' register state.
"""


@cache
def tiles_refusal() -> str:
    """Return the reason why products by AMX tiles are impossible here; empty if they are possible.

    The first call requests the permission from the Linux kernel; it holds for all threads and children of the process.
    """
    info = cpu_info()
    lacking = [name for name in FEATURES if name not in info.features]
    if lacking:
        return f"needs AMX tiles, and this processor ({info.name}) has no {' and no '.join(lacking)}"
    if host_target().lanes < 16:
        return f"needs AVX-512 beside AMX tiles, and this processor ({info.name}) has vectors of {host_target().lanes}"
    if not sys.platform.startswith("linux"):
        return f"needs AMX tiles, which gemmlab uses on Linux only, not on {sys.platform}"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA):
        return f"needs AMX tiles, and the system refuses them: {os.strerror(ctypes.get_errno())}"
    return ""
