"""Read the facts of this processor: features, clocks, caches, cores. Standard library only, no subprocess.

Kernels choose block sizes by these facts at run time. So reading is quick (a few small files) and never raises: a value
that cannot be read is replaced by a default or `None`. The fields `source`, `clock_source` and `fma_rule` say where
figures come from.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache

from gemmlab.core import cpu_facts as facts
from gemmlab.core.cpu_info import DEFAULT_CACHES, Cache, CpuInfo
from gemmlab.core.errors import UsageError

Reader = Callable[[str], str | None]
"""Function: path -> the file's text, `None` when it cannot be read. The text may end after 16 KiB."""

_CPU = "/sys/devices/system/cpu"
_QUERIED_ONCE = ("darwin", "win32")
"""Systems on which the CPUs of a process do not change while it runs, or are not reported: they are read once."""


@cache
def cpu_info() -> CpuInfo:
    """Return the facts of this machine's processor; they are read at the first call."""
    if sys.platform == "darwin":
        from gemmlab.core.hardware_macos import read_macos

        return read_macos()
    if sys.platform == "win32":
        from gemmlab.core.hardware_windows import read_windows

        return read_windows(_machine(), usable_cpus())
    return read_linux(_read, _machine(), usable_cpus())


def physical_cores() -> int:
    """Return the number of cores that this process may use, at least 1. Hardware threads of a core count once.

    On Linux the number follows changes of the process's affinity, and a CPU quota limits it. On macOS and Windows it is
    read once; on macOS only performance cores count, if cores differ.
    """
    if sys.platform in _QUERIED_ONCE:
        return cpu_info().physical_cores
    return _cores_now(usable_cpus())


def require_cpus(threads: int) -> None:
    """Raise `UsageError` for fewer than one thread, or more than the logical CPUs that this process may use."""
    if threads < 1:
        raise UsageError(f"threads = {threads}: at least 1")
    available = len(usable_cpus())
    if threads > available:
        raise UsageError(f"threads = {threads}: this process may use {available} CPUs")


@cache
def _cores_now(affinity: frozenset[int]) -> int:
    return _limit(count_cores(_read, affinity), read_quota(_read))


def read_linux(read: Reader, machine: str, affinity: frozenset[int]) -> CpuInfo:
    """Return a processor's facts from the files that `read` gives.

    `machine` is the system's name of the architecture, `affinity` the logical CPUs that this process may use.
    """
    arch = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine.lower(), machine.lower())
    fields = facts.parse_cpuinfo(read("/proc/cpuinfo") or "")
    arm = arch == "aarch64"
    features = frozenset((fields.get("features" if arm else "flags") or "").lower().split())
    implementer = facts.parse_int(fields.get("cpu implementer"))
    vendor = facts.arm_vendor(implementer) if arm else fields.get("vendor_id", "unknown")
    family = facts.parse_int(fields.get("cpu architecture" if arm else "cpu family")) or 0
    model = facts.parse_int(fields.get("cpu part" if arm else "model")) or 0
    core = facts.ARM_CORES.get((vendor, model))
    name = fields.get("model name") or (core[0] if core else f"{vendor} {arch}")
    lanes = facts.vector_lanes(features)
    units, rule = facts.fma_units(arch, vendor, family, model, name, lanes, tiles="amx_tile" in features)
    first = min(affinity, default=0)
    hypervisor = "hypervisor" in features
    nominal, current, maximum, clock_source = _clocks(read, fields, name, first, hypervisor)
    quota = read_quota(read)
    return CpuInfo(
        arch=arch, vendor=vendor, name=name, family=family, model=model,
        stepping=facts.parse_int(fields.get("cpu revision" if arm else "stepping")) or 0,
        features=features, lanes=lanes, fma_units=units, fma_rule=rule,
        nominal_ghz=nominal, current_ghz=current, max_ghz=maximum, clock_source=clock_source, hypervisor=hypervisor,
        caches=tuple(_caches(read, first)),
        physical_cores=_limit(count_cores(read, affinity), quota),
        logical_cpus=_limit(len(affinity), quota), cpu_quota=quota,
    )  # fmt: skip


def count_cores(read: Reader, affinity: frozenset[int]) -> int:
    """Return the number of cores, at least 1, to which the CPUs in `affinity` belong, by Linux's lists of siblings.

    A CPU without a list counts as a core.
    """
    counted: set[int] = set()
    cores = 0
    for cpu in sorted(affinity):
        if cpu not in counted:
            siblings = facts.parse_cpu_list(read(f"{_CPU}/cpu{cpu}/topology/thread_siblings_list") or "")
            counted |= siblings | {cpu}
            cores += 1
    return max(1, cores)


def read_quota(read: Reader) -> float | None:
    """Return the CPU time, in CPUs, that this process's control groups (versions 1 and 2) allow; `None`: no limit."""
    groups = facts.group_paths(read("/proc/self/cgroup") or "")
    levels: list[tuple[str | None, str | None]] = []
    for path in _upwards(groups.get("", "/")):
        levels.append((read(f"/sys/fs/cgroup{path}cpu.max"), None))
    for path in _upwards(groups["cpu"]) if "cpu" in groups else ():
        base = f"/sys/fs/cgroup/cpu{path}"
        levels.append((read(f"{base}cpu.cfs_quota_us"), read(f"{base}cpu.cfs_period_us")))
    return facts.group_quota(levels)


def _upwards(path: str) -> Iterator[str]:
    # Yield the path and its parents, the root last. In a container the path may be one of the host and absent here, but
    # the root of the mount exists.
    parts = [part for part in path.split("/") if part and part != ".."]
    for length in range(len(parts), -1, -1):
        yield "/" + "".join(part + "/" for part in parts[:length])


def _caches(read: Reader, cpu: int) -> Iterator[Cache]:
    found: dict[int, Cache] = {}
    for index in range(8):
        base = f"{_CPU}/cpu{cpu}/cache/index{index}/"
        kind = read(base + "type")
        if kind is None:
            break
        level = facts.parse_int(read(base + "level"))
        size = facts.parse_size(read(base + "size") or "")
        if level and size and kind.strip() in ("Data", "Unified"):
            ways = facts.parse_int(read(base + "ways_of_associativity")) or DEFAULT_CACHES.get(level, (0, 8))[1]
            line = facts.parse_int(read(base + "coherency_line_size")) or 64
            sharers = facts.parse_cpu_list(read(base + "shared_cpu_list") or "")
            found[level] = Cache(level, size, ways, line, max(1, len(sharers)), "sysfs")
    # A machine that lists a level-2 but no level-3 cache has none. If level 2 is not listed, assume the defaults.
    wanted = (1, 2) if 2 in found else (1, 2, 3)
    for level in wanted:
        if level not in found:
            size, ways = DEFAULT_CACHES[level]
            found[level] = Cache(level, size, ways, 64, 1, "assumed")
    yield from (found[level] for level in sorted(found))


def _clocks(
    read: Reader, fields: dict[str, str], name: str, cpu: int, hypervisor: bool
) -> tuple[float | None, float | None, float | None, str]:
    base = f"{_CPU}/cpu{cpu}/cpufreq/"

    def from_khz(file: str) -> float | None:
        value = facts.parse_float(read(base + file))
        return value / 1e6 if value else None

    nominal, current, maximum = from_khz("base_frequency"), from_khz("scaling_cur_freq"), from_khz("cpuinfo_max_freq")
    sources = ["cpufreq"] if nominal or current or maximum else []
    if nominal is None and (advertised := facts.advertised_ghz(name)):
        nominal = advertised
        sources.append("model name (nominal)")
    mhz = facts.parse_float(fields.get("cpu mhz"))
    if current is None and mhz:
        current = mhz / 1e3
        sources.append("/proc/cpuinfo (current; under a hypervisor often the time-stamp rate, not the core clock)"
                       if hypervisor else "/proc/cpuinfo (current)")  # fmt: skip
    return nominal, current, maximum, ", ".join(sources) or "unknown"


def _limit(cpus: int, quota: float | None) -> int:
    return max(1, cpus if quota is None else min(cpus, int(quota)))


def usable_cpus() -> frozenset[int]:
    """Return the logical CPUs that this process may run on now; all CPUs where Python cannot ask (macOS, Windows)."""
    current: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    return frozenset(current(0) if current else range(os.cpu_count() or 1))


def _machine() -> str:
    return os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "unknown")


def _read(path: str) -> str | None:
    # 16 KiB contain the first processor of /proc/cpuinfo; reading all of it takes milliseconds on machines with many
    # cores.
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(descriptor, 1 << 14).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)
