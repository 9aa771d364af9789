"""Probes by the names in targets of programs."""

from __future__ import annotations

from gemmlab.core.errors import UsageError
from gemmlab.ir.module import Probe
from gemmlab.probes.cachesim import CacheProbe
from gemmlab.probes.stopwatch import PackingClock
from gemmlab.probes.touches import Touches


def probe_of(target: str) -> Probe | None:
    """Return the probe that a target's name ends with (`ARCH:LANES:CPU:PROBE`); `None` if it names none.

    Raises `UsageError` for an unknown one.
    """
    _arch, _lanes, _cpu, *named = target.split(":")
    if not named:
        return None
    for probe in (PackingClock, Touches):
        if named == [probe.name]:
            return probe()
    found = CacheProbe.from_name(":".join(named))
    if found is None:
        raise UsageError(f"no probe named {':'.join(named)!r}")
    return found
