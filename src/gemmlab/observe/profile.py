"""Profiles of kernels by Nsight Compute or the emulator, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gemmlab.core.notebook_view import Display
from gemmlab.core.precision import FLOAT32, comparable_precision

NCU = "ncu"
NO_BASELINE = "no baseline"
"""First words of the note in a record that no library was profiled for comparison."""
_CYCLES = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
_SAMPLES = re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+?)(_not_issued)?(?:\.sum)?")
_ONE_NAME = {"gmma": "warpgroup_arrive", "no_instruction": "no_instructions"}
"""Name of a stall in metrics of cycles -> its name in metrics of samples, where they differ."""


@dataclass(frozen=True, slots=True, repr=False)
class Profile(Display):
    """The figures of one contestant at one size, over all launches of its execution."""

    contestant: str
    """The contestant's name in records: `"kernel:naive"`, `"cublas"`."""
    size: str
    kernels: tuple[str, ...]
    """Machine functions in order of launch; for a library, those that it chose. Empty if nothing ran."""
    facts: Mapping[str, Any]
    """The record's facts about the contestant: configuration, compiler and code digest of a kernel, or the version of a
    library.
    """
    counts: Mapping[str, float]
    """Sums over instructions and launches, by the names in `ncu_report.METRICS`."""
    metrics: Mapping[str, float]
    """Metrics by Nsight Compute's names: from ncu those of the longest launch, else those of all launches together."""
    origin: str = NCU
    """`"ncu"` or the emulated device, such as `"emulated:sm_90"`."""
    opcodes: Mapping[str, float] = field(default_factory=dict)
    """Executions by warps of each base opcode, the most frequent first; empty if the record has none."""
    inexact: Mapping[str, str] = field(default_factory=dict)
    """Metric that may differ from a GPU's -> the reason."""
    emulated: Mapping[str, float] = field(default_factory=dict)
    """The emulator's metrics for the same code, for comparison with ncu's."""
    disagreements: tuple[str, ...] | None = None
    """Exact counts in which emulator and ncu differ; `None` if the emulator did not run."""
    notes: tuple[str, ...] = ()
    """Reasons why nothing ran, or errors."""

    def _line(self) -> str:
        ran = f"{len(self.metrics) + len(self.counts)} figures by {self.origin}" if self.kernels else "nothing ran"
        return f"{self.name} at {self.size}: {ran}"

    @property
    def name(self) -> str:
        """The contestant without the prefix `kernel:`, `"naive"`."""
        return self.contestant.removeprefix("kernel:")

    @property
    def is_library(self) -> bool:
        """True if it is a library to compare with, False for a kernel."""
        return not self.contestant.startswith("kernel:")

    @property
    def precision(self) -> str:
        """The precision of its products; float32 if the record does not state one."""
        return str(self.facts.get("precision", FLOAT32))

    def first(self, *names: str) -> float | None:
        """Return the value of the first of these metrics or counts that exists; `None` if none does.

        Several names are tried because versions of ncu have different ones.
        """
        return next((found[name] for name in names for found in (self.metrics, self.counts) if name in found), None)

    @property
    def stall_cycles(self) -> dict[str, float]:
        """Cycles that a warp spends in each stall state per issued instruction, the longest first.

        Includes `selected`, the cycle in which the instruction is issued.
        """
        return largest_first({
            _ONE_NAME.get(match[1], match[1]): value
            for name, value in self.metrics.items()
            if (match := _CYCLES.fullmatch(name))
        })  # fmt: skip

    def stall_samples(self, *, not_issued: bool = False) -> dict[str, float]:
        """Return the number of samples of warps in each stall state, the most frequent first.

        With `not_issued`, these are only samples in cycles in which the warp's partition issued nothing.
        """
        return largest_first({
            _ONE_NAME.get(match[1], match[1]): value
            for name, value in self.metrics.items()
            if (match := _SAMPLES.fullmatch(name)) and bool(match[2]) is not_issued
        })  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Profiles(Display):
    """All profiles of one record, with device, profiler and time."""

    op: str
    device: str
    """The device's name: `"NVIDIA H200"`, `"emulated sm_90"`."""
    arch: str
    profiler: str
    """Version of ncu; empty if the emulator counted."""
    time_utc: str
    profiles: tuple[Profile, ...]
    notes: tuple[str, ...] = ()

    def _line(self) -> str:
        return f"{self.op} on {self.device}; contestants and sizes: {len(self.profiles)}"

    def baseline(self, profile: Profile) -> Profile | None:
        """Return the profile of a library at the size of the kernel's `profile`; `None` without one, and for a library.

        It has the precision that is compared with the kernel's (`comparable_precision`).
        """
        if profile.is_library:
            return None
        beside = [one for one in self.profiles if one.is_library and one.kernels and one.size == profile.size]
        wanted = comparable_precision(profile.precision)
        return next((one for one in beside if one.precision == wanted), None)


def largest_first(values: Mapping[str, float]) -> dict[str, float]:
    """Return the mapping sorted by value, the largest first."""
    return dict(sorted(values.items(), key=lambda item: -item[1]))
