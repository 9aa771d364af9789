"""Read a processor's facts on Windows from the registry, feature flags, and the table of cores and caches."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gemmlab.core import cpu_facts as facts
from gemmlab.core import windows
from gemmlab.core.cpu_info import DEFAULT_CACHES, Cache, CpuInfo

_FEATURES = {10: "sse2", 38: "sse4_2", 39: "avx", 40: "avx2", 41: "avx512f"}
"""Number of a constant `PF_*` for `IsProcessorFeaturePresent` -> the feature's name."""
_RECORD = struct.Struct("<QI4xBBHII4x")
"""SYSTEM_LOGICAL_PROCESSOR_INFORMATION of 64-bit Windows: CPU mask, kind of record; a cache's level, ways, line, bytes,
type.
"""
_CORE, _CACHE = 0, 2
_UNIFIED, _DATA = 0, 2
_IDENTIFIER = re.compile(r"Family (\d+) Model (\w+) (?:Stepping|Revision)\s+(\w+)")
_MAIN_ID = "CP 4000"
"""Name in the registry of an ARM core's main ID register, MIDR_EL1."""


@dataclass(frozen=True, slots=True)
class WindowsFacts:
    """The functions of the system from which the facts are read; tests replace them."""

    registry: Callable[[str], str | int | None] = windows.processor_registry
    has_feature: Callable[[int], bool] = windows.has_feature
    table: Callable[[], bytes] = windows.logical_processor_information


def read_windows(machine: str, affinity: frozenset[int], ask: WindowsFacts | None = None) -> CpuInfo:
    """Return the processor's facts from `ask` (default: the system).

    `machine` is `"ARM64"`, or any other name for x86-64. `affinity` has the logical CPUs that this process may use.
    """
    source = ask or WindowsFacts()

    def text(name: str) -> str:
        value = source.registry(name)
        return value.strip() if isinstance(value, str) else ""

    arm = machine.upper() == "ARM64"
    arch = "aarch64" if arm else "x86_64"
    features = {"neon", "asimd"} if arm else {name for number, name in _FEATURES.items() if source.has_feature(number)}
    if "avx2" in features:
        # Windows does not report FMA. Every Intel and AMD processor with AVX2 has it.
        features.add("fma")
    family, model, stepping = _numbers(text("Identifier"), "0x" if arm else "")
    vendor = text("VendorIdentifier") or "unknown"
    if arm and isinstance(main := source.registry(_MAIN_ID), int):
        # The vendor that the registry names is the chip's, not the core's.
        vendor, model, stepping = facts.arm_vendor(main >> 24 & 0xFF), main >> 4 & 0xFFF, main & 0xF
    core = facts.ARM_CORES.get((vendor, model))
    name = text("ProcessorNameString") or (core[0] if core else "unknown")
    lanes = facts.vector_lanes(features)
    units, rule = facts.fma_units(arch, vendor, family, model, name, lanes, tiles="amx_tile" in features)
    mhz = source.registry("~MHz")
    records = list(_records(source.table()))
    cores = sum(kind == _CORE for _cpus, kind, *_ in records)
    return CpuInfo(
        arch=arch, vendor=vendor, name=name, family=family, model=model, stepping=stepping,
        features=frozenset(features), lanes=lanes, fma_units=units, fma_rule=rule,
        nominal_ghz=mhz / 1e3 if isinstance(mhz, int) else facts.advertised_ghz(name), current_ghz=None, max_ghz=None,
        clock_source="registry" if isinstance(mhz, int) else "unknown", hypervisor=False,
        caches=tuple(_caches(records)), physical_cores=cores or len(affinity),
        logical_cpus=len(affinity), cpu_quota=None,
    )  # fmt: skip


def _numbers(identifier: str, prefix: str) -> tuple[int, int, int]:
    """Return (family, model, stepping) from a text such as `Intel64 Family 6 Model 158 Stepping 10`; zeros if unknown.

    `prefix` is that of the last two numbers: `0x` for ARM, which has them in hexadecimal (`Model D0C Revision 301`).
    """
    found = _IDENTIFIER.search(identifier)
    texts = (found[1], prefix + found[2], prefix + found[3]) if found else ("", "", "")
    family, model, stepping = (facts.parse_int(text) or 0 for text in texts)
    return family, model, stepping


def _records(table: bytes) -> Iterator[tuple[int, ...]]:
    whole = len(table) - len(table) % _RECORD.size
    yield from _RECORD.iter_unpack(table[:whole])


def _caches(records: list[tuple[int, ...]]) -> Iterator[Cache]:
    """Yield the data and unified caches of the first CPU; level 1 or 2 gets a default if `records` lack it."""
    found = {}
    for cpus, kind, level, ways, line, nbytes, sort in records:
        if kind == _CACHE and cpus & 1 and sort in (_UNIFIED, _DATA):
            # The number 255 stands for a fully associative cache.
            real = nbytes // line if ways == 255 else ways
            found[level] = Cache(level, nbytes, real, line, cpus.bit_count(), "GetLogicalProcessorInformation")
    for level in (1, 2):
        found.setdefault(level, Cache(level, *DEFAULT_CACHES[level], 64, 1, "assumed"))
    yield from (found[level] for level in sorted(found))
