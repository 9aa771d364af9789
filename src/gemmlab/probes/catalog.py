"""Probes by name: what the target of a program may ask for."""

from __future__ import annotations

from gemmlab.core.errors import UsageError
from gemmlab.ir.module import Probe
from gemmlab.probes.cachesim import CacheProbe
from gemmlab.probes.stopwatch import PackingClock
from gemmlab.probes.touches import Touches


def probe_of(target: str) -> Probe | None:
    """The probe that a target's name asks for. `UsageError` for one there is not."""
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
