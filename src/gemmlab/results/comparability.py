"""Comparability of two records: conditions for a comparison, and warnings about differences other than code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gemmlab.core.clocks import throttled_between
from gemmlab.core.errors import RecordError, UsageError
from gemmlab.core.records import Record, Result
from gemmlab.devices.device_name import family_part
from gemmlab.results.record_cases import PEAK, timings

TIMED = ("bench", "climb")
_MACHINE = {
    "cpu": ("vendor", "family", "model", "physical_cores", "logical_cpus"),
    "cuda": ("compute_capability", "sms", "memory_bytes"),
}
"""Family of devices -> the facts that, besides the name, must agree if two devices are of the same model."""
_HOW = ("min_time_us", "warm_up_us", "inner_us", "interleaved", "mode")
_CLOCK_DRIFT = 0.02
"""Largest relative difference of median clocks without a warning; a GPU's clock steps are half a percent."""
_MOST_NAMED = 3


def require_comparable(old: Record, new: Record, *, other_device: bool) -> None:
    """Raise an error if two records cannot be compared.

    Raises `RecordError` for records without times or of different operations, and `UsageError` for different devices
    unless `other_device`.
    """
    for record in (old, new):
        if record.kind not in TIMED:
            raise RecordError(f"a record of kind {record.kind!r} holds no times to compare; {' and '.join(TIMED)} do")
    if old.op != new.op:
        raise RecordError(f"one record is of {old.op}, the other of {new.op}")
    if (differs := _devices(old, new)) and not other_device:
        raise UsageError(f"different devices: {'; '.join(differs)}. --other-device compares them nevertheless")


def sameness_warnings(old: Record, new: Record, threshold: float) -> list[str]:
    """Return a sentence for each thing beside the kernels that may explain a difference of the records' times.

    These are other devices, methods, versions, clocks and peaks, a clock that was reduced, and a record of one process.

    A change of the probed peak is reported if it exceeds `threshold` percent.
    """
    texts = [f"other devices: {text}" for text in _devices(old, new)]
    texts += [f"taken differently: {text}" for text in _changes(_how(old), _how(new))]
    texts += _versions(old, new)
    texts += [f"{name}: {text}" for name, text in (("OLD", _throttled(old)), ("NEW", _throttled(new))) if text]
    before, after = _clock(old), _clock(new)
    if before and after and abs(np.log(after / before)) > _CLOCK_DRIFT:
        texts.append(f"the clock was {before:.0f} MHz in OLD and {after:.0f} in NEW (median)")
    if (drift := _peak_drift(old, new)) is not None and abs(np.log(drift)) > np.log1p(threshold / 100):
        texts.append(f"the peak probed beside the cases is {drift:.3f} of OLD's: the machine itself changed its speed")
    single = [name for name, record in (("OLD", old), ("NEW", new)) if record.method and record.method.processes == 1]
    if single:
        texts.append(
            f"{' and '.join(single)}: one process each. Intervals do not include differences between processes; "
            "--processes 3 of bench would show them"
        )
    return texts


def _devices(old: Record, new: Record) -> list[str]:
    found = [record.device for record in (old, new)]
    families = [family_part(str(device.get("id", ""))) for device in found]
    if families[0] != families[1]:
        return [f"{families[0] or 'unknown'}, then {families[1] or 'unknown'}"]
    facts = [
        {"name": device.get("name"), **_part(device.get("facts"), _MACHINE.get(families[0], ()))} for device in found
    ]
    return _changes(*facts)


def _how(record: Record) -> dict[str, Any]:
    method = {name: getattr(record.method, name) for name in _HOW} if record.method else {}
    return {"kind": record.kind, **method}


def _versions(old: Record, new: Record) -> list[str]:
    """Return the differences in versions of compilers, drivers and libraries, as far as both records contain them."""
    changes = [
        f"different versions: {one}"
        for one in _changes(*(_part(r.device.get("facts"), ("driver",)) for r in (old, new)))
    ]
    facts = [{result.contestant: result.facts for result in record.results} for record in (old, new)]
    changed: dict[str, list[str]] = {}
    for name in facts[1]:
        for what in ("compiler", "version", "core_type"):
            one, two = (side.get(name, {}).get(what) for side in facts)
            if one and two and one != two:
                library = "compiler" if what == "compiler" else f"{facts[1][name].get('library', name)} {what}"
                changed.setdefault(f"{library}: {one}, then {two}", []).append(name)
    for text, names in changed.items():
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        changes.append(f"different versions: {text} ({', '.join(names[:_MOST_NAMED])}{more})")
    return changes


def _throttled(record: Record) -> str:
    turns = [sample.throttle for result in record.results for sample in result.samples]
    reasons = [reason for reason in turns if reason]
    clocks = record.environment.get("clocks")
    if reasons:
        named = ", ".join(sorted({reason for each in reasons for reason in each}))
        return f"the clock was reduced after {len(reasons)} of {len(turns)} turns: {named}"
    try:
        return throttled_between(clocks["before"], clocks["after"]) if isinstance(clocks, Mapping) else ""
    except (KeyError, TypeError, AttributeError):
        return ""


def _clock(record: Record) -> float | None:
    """Return the median clock of the device in MHz, or `None` if unknown.

    A CPU's clock is known only if the system reports it by cpufreq; the rate of a counter does not count.
    """
    clocks_mhz = [s.clock_mhz for result in record.results for s in result.samples if s.clock_mhz]
    clocks = record.environment.get("clocks")
    if not clocks_mhz and isinstance(clocks, Mapping) and str(record.device.get("id")) == "cpu":
        moments = [clocks.get(when) for when in ("before", "after")]
        clocks_mhz = [
            mhz for m in moments if isinstance(m, Mapping) and m.get("source") == "cpufreq" for mhz in m["mhz"].values()
        ]
    return float(np.median(clocks_mhz)) if clocks_mhz else None


def _peak_drift(old: Record, new: Record) -> float | None:
    """Return the ratio of the probed peaks, new to old: the median over the problems in both records, or `None`."""
    sides = [
        {(r.label, r.threads): float(np.median(list(timings(r).values()))) for r in _peaks(record)}
        for record in (old, new)
    ]
    ratios = [sides[0][where] / time for where, time in sides[1].items() if where in sides[0]]
    return float(np.median(ratios)) if ratios else None


def _peaks(record: Record) -> Iterable[Result]:
    return (result for result in record.results if result.facts.get("role") == PEAK and result.samples)


def _part(facts: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: facts.get(name) for name in names} if isinstance(facts, Mapping) else {}


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return `"name: A, then B"` for each fact that both contain with different values."""
    both = [name for name in old if old[name] is not None and new.get(name) is not None]
    return [f"{name}: {old[name]}, then {new[name]}" for name in both if old[name] != new[name]]
