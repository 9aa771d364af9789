"""Configurations of kernels as contestants: named ones, all legal ones, or a few that differ widely."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gemmlab.core.errors import UsageError
from gemmlab.core.records import Record
from gemmlab.devices.device_name import DeviceName
from gemmlab.kernels.by_name import NamedKernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.results.summary import summarise
from gemmlab.timing.families import family_of
from gemmlab.timing.peers import Spec, kernel_spec

ALL = "all"
_NAMED = re.compile(r"kernel:(?P<kernel>[^\[]+)\[(?P<config>.*)\]\Z")


def spread(kernel: Kernel, count: int) -> list[dict[str, int]]:
    """Return `count` legal configurations of the tuning space, at least one, the default first; all if there are fewer.

    Each next configuration is the one with the most parameter values that none before it has; among equals, the one
    whose nearest predecessor is farthest. The result depends only on the arguments.
    """
    rest = list(kernel.configurations())
    chosen = [rest.pop(0)]
    while rest and len(chosen) < count:
        pairs = {item for config in chosen for item in config.items()}
        best = max(rest, key=lambda config: (len(config.items() - pairs), _nearest(kernel, config, chosen)))
        rest.remove(best)
        chosen.append(best)
    return chosen


def _nearest(kernel: Kernel, config: Mapping[str, int], chosen: Sequence[Mapping[str, int]]) -> float:
    """Return the distance of `config` to the nearest of `chosen`: a sum over parameters, each range scaled to 1."""
    places = {name: {value: place for place, value in enumerate(values)} for name, values in kernel.tune.items()}

    def distance(other: Mapping[str, int]) -> float:
        # A default need not be among the values to tune.
        steps = (
            abs(at.get(config[name], -1) - at.get(other[name], -1)) / max(1, len(at) - 1) for name, at in places.items()
        )
        return sum(steps)

    return min(map(distance, chosen))


def config_specs(
    kernels: Sequence[NamedKernel], device: DeviceName, mode: str, named: Sequence[Mapping[str, int]] = (),
    some: str | None = None,
) -> list[Spec]:  # fmt: skip
    """Return kernels as contestants on a device, in some configurations or, without `named` and `some`, in the default.

    `named` are configurations of the only kernel; `some` is `"all"` or the number to take from each tuning space. On a
    GPU, configurations of one kernel share a worker process. Raises `UsageError` if the device does not run a kernel,
    if a configuration is not legal, if `some` is malformed or a kernel has nothing to tune, if both `named` and `some`
    are given, if either is given without a kernel, and if `named` is given with several kernels.
    """
    specs = [kernel_spec(kernel, device, mode) for kernel in kernels]
    if named and some is not None:
        raise UsageError("--config names configurations, --configs uses those of the tuning space: give one of them")
    if (named or some is not None) and not specs:
        raise UsageError("--config, --configs: name the kernel that they configure")
    if named and len(specs) != 1:
        raise UsageError("--config: name the one kernel that it configures")
    if not named and some is None:
        return specs
    pairs = zip(specs, kernels, strict=True)
    return [configured(spec, config) for spec, one in pairs for config in _configs(one.kernel, named, some)]


def _configs(kernel: Kernel, named: Sequence[Mapping[str, int]], some: str | None) -> list[dict[str, int]]:
    if named:
        for config in named:
            kernel.configure(config)
        return [dict(config) for config in named]
    if not kernel.tune:
        raise UsageError(f"--configs: {kernel.id} has nothing to tune")
    if some == ALL:
        return list(kernel.configurations())
    if some is None or not re.fullmatch(r"[1-9][0-9]{0,3}", some):
        raise UsageError(f"--configs {some!r}: write all, or a number of them")
    return spread(kernel, int(some))


def configured(spec: Spec, config: Mapping[str, int]) -> Spec:
    """Return a kernel's contestant `spec` in configuration `config`, named as in `kernel:ID[BM=64,BN=64]`."""
    values = ",".join(f"{name}={value}" for name, value in config.items())
    host = "" if family_of(spec.device.family).host_threads else spec.name
    return replace(spec, name=f"{spec.name}[{values}]", config=dict(config), host=host)


@dataclass(frozen=True, slots=True)
class ConfigTable:
    """Median times of one kernel: one row per configuration, one column per size."""

    kernel: str
    threads: int
    sizes: tuple[str, ...]
    rows: Mapping[str, tuple[float | None, ...]]
    """Configuration (`"BM=64,BN=64"`) -> milliseconds per size, `None` if it was not timed."""

    @property
    def best(self) -> tuple[float | None, ...]:
        """The least time of each column in milliseconds; `None` for a column without times."""
        columns = zip(*self.rows.values(), strict=True)
        return tuple(min((time for time in column if time is not None), default=None) for column in columns)


def config_tables(record: Record) -> list[ConfigTable]:
    """Return one table for each kernel and thread count that the record has in named configurations (`configured`)."""
    found: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
    for row in summarise(record).rows:
        if (match := _NAMED.match(row.contestant)) is not None:
            times = found.setdefault((match["kernel"], row.threads), {})
            times.setdefault(match["config"], {})[row.label] = row.median_us / 1e3
    tables = []
    for (kernel, threads), rows in found.items():
        sizes = tuple(dict.fromkeys(label for times in rows.values() for label in times))
        cells = {config: tuple(times.get(size) for size in sizes) for config, times in rows.items()}
        tables.append(ConfigTable(kernel, threads, sizes, cells))
    return tables
