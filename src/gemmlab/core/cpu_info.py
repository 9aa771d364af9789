"""Dataclasses of a processor's facts, which the reader of each operating system fills in."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

DEFAULT_CACHES = {1: (32 << 10, 8), 2: (512 << 10, 8), 3: (8 << 20, 16)}
"""Level -> (bytes, ways) assumed where the system gives none: nearly every 64-bit server core has at least these."""


@dataclass(frozen=True, slots=True)
class Cache:
    """One data or unified cache as seen from one core."""

    level: int
    size_bytes: int
    ways: int
    line_bytes: int
    shared_by: int
    """Logical CPUs that share it."""
    source: str
    """`"sysfs"`, `"sysctl"`, Windows' `"GetLogicalProcessorInformation"` or `"assumed"`."""


@dataclass(frozen=True, slots=True)
class CpuInfo:
    """Facts of the processor, of one core where cores differ. Clocks in GHz, `None` when unknown."""

    arch: str
    """`"x86_64"`, `"aarch64"` or the system's own name."""
    vendor: str
    name: str
    family: int
    model: int
    stepping: int
    features: frozenset[str]
    lanes: int
    fma_units: int
    fma_rule: str
    nominal_ghz: float | None
    current_ghz: float | None
    max_ghz: float | None
    clock_source: str
    hypervisor: bool
    caches: tuple[Cache, ...]
    physical_cores: int
    logical_cpus: int
    cpu_quota: float | None
    """CPU time that the control group allows, in CPUs; `None` when unlimited."""

    def cache(self, level: int) -> Cache | None:
        """Return the data cache of a level (1, 2, 3), `None` when there is none."""
        return next((c for c in self.caches if c.level == level), None)

    def _bytes(self, level: int) -> int:
        found = self.cache(level)
        return found.size_bytes if found else 0

    @property
    def l1d_bytes(self) -> int:
        """Bytes of one core's level-1 data cache; 0 when unknown."""
        return self._bytes(1)

    @property
    def l2_bytes(self) -> int:
        """Bytes of the level-2 cache that one core uses; 0 when unknown."""
        return self._bytes(2)

    @property
    def clock_ghz(self) -> float | None:
        """The clock for the computed peak, in GHz: the maximum, else the nominal, else the current one."""
        return self.max_ghz or self.nominal_ghz or self.current_ghz

    @property
    def peak_gflops(self) -> float | None:
        """Computed float32 peak of one core, `None` when no clock is known."""
        clock = self.clock_ghz
        return computed_peak_gflops(clock, self.fma_units, self.lanes) if clock else None

    @property
    def slug(self) -> str:
        """A name for folders: vendor, family and model, as in `intel-6-207`. Virtual machines hide the model name."""
        vendor = re.sub(r"[^a-z0-9]+", "", self.vendor.lower().removeprefix("genuine").removeprefix("authentic"))
        return f"{vendor or 'unknown'}-{self.family}-{self.model}"

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        return {**asdict(self), "features": sorted(self.features), "caches": [asdict(c) for c in self.caches]}


def computed_peak_gflops(clock_ghz: float, units: int, lanes: int) -> float:
    """Return the float32 GFLOP/s of one core: clock x FMA units x lanes x 2."""
    return clock_ghz * units * lanes * 2
