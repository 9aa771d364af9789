"""Read clocks and throttling counts of the processor, as far as the system reports them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gemmlab.core import cpu_facts as facts
from gemmlab.core.hardware import usable_cpus

Reader = Callable[[str], str | None]
"""Function: path -> the file's whole text, `None` when it cannot be read."""

_CPU = "/sys/devices/system/cpu"


def read_clocks(read: Reader | None = None, cpus: Iterable[int] | None = None) -> dict[str, Any]:
    """Return the clocks of the CPUs in `cpus` (by default those of this process) and their throttling counts.

    `mhz` is the clock in MHz by CPU number (a text), `source` is `"cpufreq"`, `"/proc/cpuinfo"` or `"unknown"`.
    `throttled` has the numbers of times that heat throttled the processor since the system started: `core` is the sum
    over `cpus`, in which each hardware thread of a core counts, `package` the largest of any package. Values that the
    system does not report are left out. Under a hypervisor /proc/cpuinfo often gives the rate of the time-stamp counter
    instead of the clock.
    """
    file = read or _whole
    chosen = sorted(usable_cpus() if cpus is None else cpus)
    mhz, source = _clocks(file, chosen)
    return {"mhz": mhz, "source": source, "throttled": _throttled(file, chosen)}


def throttled_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return a sentence if throttling counts rose between two results of `read_clocks`, else an empty text."""
    rises = {name: count - before["throttled"].get(name, count) for name, count in after["throttled"].items()}
    parts = [f"{rise} times ({name})" for name, rise in rises.items() if rise > 0]
    return f"the processor throttled for heat while this was measured: {', '.join(parts)}" if parts else ""


def _clocks(read: Reader, cpus: list[int]) -> tuple[dict[str, float], str]:
    khz = {str(cpu): facts.parse_float(read(f"{_CPU}/cpu{cpu}/cpufreq/scaling_cur_freq")) for cpu in cpus}
    mhz = {cpu: value / 1e3 for cpu, value in khz.items() if value}
    if mhz:
        return mhz, "cpufreq"
    for part in (read("/proc/cpuinfo") or "").split("\n\n"):
        fields = facts.parse_cpuinfo(part)
        cpu, value = facts.parse_int(fields.get("processor")), facts.parse_float(fields.get("cpu mhz"))
        if value and cpu in cpus:
            mhz[str(cpu)] = value
    return mhz, "/proc/cpuinfo" if mhz else "unknown"


def _throttled(read: Reader, cpus: list[int]) -> dict[str, int]:
    counts = {
        name: [facts.parse_int(read(f"{_CPU}/cpu{cpu}/thermal_throttle/{name}_throttle_count")) for cpu in cpus]
        for name in ("core", "package")
    }
    valid = {name: [count for count in found if count is not None] for name, found in counts.items()}
    # Every CPU repeats the count of its package, so the counts of a package's CPUs are not added up.
    return {name: sum(found) if name == "core" else max(found) for name, found in valid.items() if found}


def _whole(path: str) -> str | None:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY), encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return None
