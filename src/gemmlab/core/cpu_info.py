"""Dataclasses of a processor's facts, which the reader of each operating system fills in."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

DEFAULT_CACHES = {1: (32 << 10, 8), 2: (512 << 10, 8), 3: (8 << 20, 16)}
"""Cache level -> (bytes, ways), used if the system does not report the cache: few 64-bit server cores have less."""


@dataclass(frozen=True, slots=True)
class Cache:
    """One data or unified cache that a core uses. `ways` is its associativity."""

    level: int
    size_bytes: int
    ways: int
    line_bytes: int
    shared_by: int
    """Number of logical CPUs that share the cache."""
    source: str
    """Interface that reported the cache: `"sysfs"`, `"sysctl"`, `"GetLogicalProcessorInformation"`; or `"assumed"`."""


@dataclass(frozen=True, slots=True)
class CpuInfo:
    """Facts of the processor, of one core where cores differ. Clocks are in GHz, `None` when unknown.

    `lanes` (float32 per vector), `fma_units` and `fma_rule` are those of `cpu_facts.fma_units`. `physical_cores` and
    `logical_cpus` count what this process may use; on a Mac whose cores differ, `physical_cores` counts only
    performance cores.
    """

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
        """Return the data or unified cache of a level (1, 2, 3), `None` when there is none."""
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
        """The clock for the computed peak, in GHz: maximum, else nominal, else current; `None` if none is known."""
        return self.max_ghz or self.nominal_ghz or self.current_ghz

    @property
    def peak_gflops(self) -> float | None:
        """Computed float32 peak of one core in GFLOP/s, `None` when no clock is known."""
        clock = self.clock_ghz
        return computed_peak_gflops(clock, self.fma_units, self.lanes) if clock else None

    @property
    def slug(self) -> str:
        """A name for folders: vendor, family and model number, as in `intel-6-207`. Virtual machines hide the model's
        name, so it is not used.
        """
        vendor = re.sub(r"[^a-z0-9]+", "", self.vendor.lower().removeprefix("genuine").removeprefix("authentic"))
        return f"{vendor or 'unknown'}-{self.family}-{self.model}"

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        return {**asdict(self), "features": sorted(self.features), "caches": [asdict(c) for c in self.caches]}


def computed_peak_gflops(clock_ghz: float, units: int, lanes: int) -> float:
    """Return the float32 GFLOP/s of one core: clock x FMA units x lanes x 2."""
    return clock_ghz * units * lanes * 2
