"""Functions of Windows that Python does not wrap, through ctypes. They follow the documentation and were never run.

Other modules, which can be tested on any system, interpret their results.
"""

from __future__ import annotations

import ctypes
from typing import Any

_CURRENT = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"


class _MemoryStatus(ctypes.Structure):
    """The structure MEMORYSTATUSEX of `GlobalMemoryStatusEx`."""

    _fields_ = [
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in ("physical", "available", "page_file", "page_file_available")),
        *((name, ctypes.c_uint64) for name in ("virtual", "virtual_available", "extended_available")),
    ]


def _library(name: str) -> Any:
    return ctypes.WinDLL(name)  # type: ignore[attr-defined,unused-ignore]


def available_memory() -> int:
    """Return the free bytes of physical memory."""
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    _library("kernel32").GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.available)


def suspend(handle: int) -> None:
    """Stop all threads of the process with this handle until `resume`."""
    _library("ntdll").NtSuspendProcess(ctypes.c_void_p(handle))


def resume(handle: int) -> None:
    """Let the suspended process with this handle run again; a running one is not affected."""
    _library("ntdll").NtResumeProcess(ctypes.c_void_p(handle))


def has_feature(number: int) -> bool:
    """Return whether the processor has a feature, by its `PF_*` number."""
    return bool(_library("kernel32").IsProcessorFeaturePresent(ctypes.c_uint32(number)))


def logical_processor_information() -> bytes:
    """Return the records of `GetLogicalProcessorInformation` for the CPUs of this process's group; empty on failure."""
    call, nbytes = _library("kernel32").GetLogicalProcessorInformation, ctypes.c_uint32(0)
    call(None, ctypes.byref(nbytes))
    records = ctypes.create_string_buffer(nbytes.value)
    return records.raw[: nbytes.value] if call(records, ctypes.byref(nbytes)) else b""


def processor_registry(name: str) -> str | int | None:
    """Return the value `name` of the first processor in the registry, `None` if it has no such text or number."""
    import winreg  # type: ignore[import-not-found,unused-ignore]

    registry: Any = winreg
    try:
        with registry.OpenKey(registry.HKEY_LOCAL_MACHINE, _CURRENT) as key:
            value = registry.QueryValueEx(key, name)[0]
    except OSError:
        return None
    return value if isinstance(value, str | int) else None
