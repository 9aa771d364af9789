"""What Windows alone offers and Python does not wrap, through ctypes. Never run by us: written from its documentation.

Whatever these return is interpreted elsewhere, where it can be tested on any system.
"""

from __future__ import annotations

import ctypes
from typing import Any

_CURRENT = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX."""

    _fields_ = [
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in ("physical", "available", "page_file", "page_file_available")),
        *((name, ctypes.c_uint64) for name in ("virtual", "virtual_available", "extended_available")),
    ]


def _library(name: str) -> Any:
    return ctypes.WinDLL(name)  # type: ignore[attr-defined,unused-ignore]


def available_memory() -> int:
    """Bytes of physical memory that are free."""
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    _library("kernel32").GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.available)


def suspend(handle: int) -> None:
    """Stop all threads of a process until `resume`."""
    _library("ntdll").NtSuspendProcess(ctypes.c_void_p(handle))


def resume(handle: int) -> None:
    """Let a process run again; nothing happens to one that runs."""
    _library("ntdll").NtResumeProcess(ctypes.c_void_p(handle))


def has_feature(number: int) -> bool:
    """`IsProcessorFeaturePresent`."""
    return bool(_library("kernel32").IsProcessorFeaturePresent(ctypes.c_uint32(number)))


def logical_processor_information() -> bytes:
    """The records of `GetLogicalProcessorInformation` one after another, for the CPUs of this process's group."""
    call, nbytes = _library("kernel32").GetLogicalProcessorInformation, ctypes.c_uint32(0)
    call(None, ctypes.byref(nbytes))
    records = ctypes.create_string_buffer(nbytes.value)
    return records.raw[: nbytes.value] if call(records, ctypes.byref(nbytes)) else b""


def processor_registry(name: str) -> str | int | None:
    """What the registry says of the first processor under this name."""
    import winreg  # type: ignore[import-not-found,unused-ignore]

    registry: Any = winreg
    try:
        with registry.OpenKey(registry.HKEY_LOCAL_MACHINE, _CURRENT) as key:
            value = registry.QueryValueEx(key, name)[0]
    except OSError:
        return None
    return value if isinstance(value, str | int) else None
