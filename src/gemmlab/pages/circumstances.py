"""Circumstances of a measurement, as names and values: environment, method and libraries of a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gemmlab.core.records import Method, Record, Result
from gemmlab.results.climb_rows import about

Lines = tuple[tuple[str, str], ...]


def environment(record: Record) -> Lines:
    """Return the device, software, load and clocks in a record; those that it lacks are left out."""
    return tuple((name, text) for name, text in _environment(record) if text)


def method(record: Record) -> Lines:
    """Return the method by which samples were taken; empty for a record without samples."""
    return () if record.method is None else tuple(_method(record.method))


def libraries(record: Record) -> Lines:
    """Return the peers (contestants outside gemmlab) with their versions."""
    found = {
        str(r.facts.get("name") or r.contestant): about(r.facts)
        for r in record.results
        if r.facts.get("role") == "peer"
    }
    return tuple(sorted(found.items()))


def _environment(record: Record) -> Iterator[tuple[str, str]]:
    environment, facts = record.environment, _mapping(record.device.get("facts"))
    yield "device", _joined([record.device.get("name"), record.device.get("id")])
    yield "compute capability", str(facts.get("compute_capability") or "")
    yield "multiprocessors", str(facts.get("sms") or "")
    yield "driver", _joined([facts.get("driver"), facts.get("driver_cuda") and f"CUDA {facts['driver_cuda']}"])
    yield "compiler", ", ".join(sorted({str(r.facts["compiler"]) for r in record.results if r.facts.get("compiler")}))
    yield "clocks seen", _clocks(record.results)
    yield "throttled by", ", ".join(sorted({why for r in record.results for s in r.samples for why in s.throttle}))
    yield "processor", _joined([environment.get("cpu"), environment.get("cpus") and f"{environment['cpus']} CPUs used"])
    yield "load average before", _joined(_sequence(environment.get("load_average")))
    yield "system", str(environment.get("os") or "")
    versions = [f"{name} {environment[name]}" for name in ("gemmlab", "python", "numpy") if environment.get(name)]
    yield "versions", ", ".join(versions)
    yield "date", str(environment.get("time_utc") or "")
    yield "command", " ".join(map(str, _sequence(environment.get("command"))))
    yield "variables", ", ".join(f"{name}={value}" for name, value in _mapping(environment.get("variables")).items())


def _method(how: Method) -> Iterator[tuple[str, str]]:
    yield "rounds", f"{how.rounds} in each of {how.processes} {'process' if how.processes == 1 else 'processes'}"
    yield "caches", how.mode
    yield "a turn lasts", f"{how.min_time_us / 1e3:.3g} ms at least, after {how.warm_up_us / 1e3:.3g} ms of warm-up"
    if how.inner_us:
        yield "shorter calls than", f"{how.inner_us:.3g} µs are timed together"
    yield "contestants", "take turns within each round" if how.interleaved else "follow one another"
    yield "seed", str(how.seed)
    for note in how.notes:
        yield "", note


def _clocks(results: Sequence[Result]) -> str:
    samples = [sample for result in results for sample in result.samples]
    core = [sample.clock_mhz for sample in samples if sample.clock_mhz is not None]
    memory = [sample.memory_mhz for sample in samples if sample.memory_mhz is not None]
    return ", ".join(
        [f"{name} {_range(values)} MHz" for name, values in (("core", core), ("memory", memory)) if values]
    )


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low} to {high}"


def _joined(parts: Sequence[Any]) -> str:
    return ", ".join(str(part) for part in parts if part not in (None, ""))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else []
