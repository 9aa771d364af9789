"""Read the facts of a Mac's processor through `sysctlbyname` (no subprocess)."""

from __future__ import annotations

import os
from collections.abc import Callable

from gemmlab.core import cpu_facts as facts
from gemmlab.core.cpu_info import DEFAULT_CACHES, Cache, CpuInfo

Sysctl = Callable[[str], int | str | None]
"""Function: name -> value, `None` if the system has no such name."""


def read_macos(query: Sysctl | None = None) -> CpuInfo:
    """Return the processor's facts from `query` (default: `sysctlbyname`).

    If cores differ, the caches and `physical_cores` are those of the performance cores; `logical_cpus` counts all.
    """
    ask = query or _system_query()

    def number(*names: str) -> int:
        return next((value for name in names if isinstance(value := ask(name), int) and value > 0), 0)

    def text(name: str) -> str:
        value = ask(name)
        return value if isinstance(value, str) else ""

    arm = number("hw.optional.arm64") == 1
    arch = "aarch64" if arm else "x86_64"
    flags = "neon asimd" if arm else f"{text('machdep.cpu.features')} {text('machdep.cpu.leaf7_features')}"
    features = frozenset(flags.lower().split())
    vendor = "Apple" if arm else text("machdep.cpu.vendor") or "unknown"
    name = text("machdep.cpu.brand_string") or vendor
    family, model = number("machdep.cpu.family"), number("machdep.cpu.model")
    lanes = facts.vector_lanes(features)
    units, rule = facts.fma_units(arch, vendor, family, model, name, lanes, tiles="amx_tile" in features)
    nominal = number("hw.cpufrequency") / 1e9 or facts.advertised_ghz(name)
    maximum = number("hw.cpufrequency_max") / 1e9 or None
    line = number("hw.cachelinesize") or 64
    caches = []
    for level, key in ((1, "l1dcachesize"), (2, "l2cachesize"), (3, "l3cachesize")):
        size = number(f"hw.perflevel0.{key}", f"hw.{key}")
        sharers = number("hw.perflevel0.cpusperl2") if level == 2 else 1
        if size:
            caches.append(Cache(level, size, DEFAULT_CACHES[level][1], line, sharers or 1, "sysctl"))
        elif level < 3:
            caches.append(Cache(level, *DEFAULT_CACHES[level], line, 1, "assumed"))
    logical = number("hw.logicalcpu") or os.cpu_count() or 1
    return CpuInfo(
        arch=arch, vendor=vendor, name=name, family=family, model=model, stepping=number("machdep.cpu.stepping"),
        features=features, lanes=lanes, fma_units=units, fma_rule=rule,
        nominal_ghz=nominal, current_ghz=None, max_ghz=maximum,
        clock_source="sysctl" if nominal or maximum else "unknown", hypervisor=number("kern.hv_vmm_present") == 1,
        caches=tuple(caches), physical_cores=number("hw.perflevel0.physicalcpu", "hw.physicalcpu") or logical,
        logical_cpus=logical, cpu_quota=None,
    )  # fmt: skip


def _system_query() -> Sysctl:
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)

    def query(name: str) -> int | str | None:
        length = ctypes.c_size_t(0)
        if library.sysctlbyname(name.encode(), None, ctypes.byref(length), None, ctypes.c_size_t(0)):
            return None
        buffer = ctypes.create_string_buffer(max(1, length.value))
        if library.sysctlbyname(name.encode(), buffer, ctypes.byref(length), None, ctypes.c_size_t(0)):
            return None
        raw = buffer.raw[: length.value]
        return int.from_bytes(raw, "little") if length.value in (4, 8) else raw.rstrip(b"\0").decode("utf-8", "replace")

    return query
