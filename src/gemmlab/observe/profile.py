"""What Nsight Compute or the emulator saw of kernels, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gemmlab.core.precision import FLOAT32

NCU = "ncu"
_CYCLES = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
_SAMPLES = re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+?)(_not_issued)?(?:\.sum)?")
_ONE_NAME = {"gmma": "warpgroup_arrive", "no_instruction": "no_instructions"}
"""What one family of metrics calls otherwise than the other."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One contestant at one size, all launches of its execution together."""

    contestant: str
    """As records call it: `"kernel:naive"`, `"cublas"`."""
    size: str
    kernels: tuple[str, ...]
    """Machine functions in order of launch: of a library, what it chose. Empty where nothing ran."""
    facts: Mapping[str, Any]
    """As records keep them: configuration, compiler and digest of our code, version of a library."""
    counts: Mapping[str, float]
    """What instructions were asked to do, by the names in `ncu_report.METRICS`, added up over the launches."""
    metrics: Mapping[str, float]
    """Of whole launches by Nsight Compute's names: from ncu those of the longest one, else of all together."""
    origin: str = NCU
    """`"ncu"`, or the emulated device."""
    opcodes: Mapping[str, float] = field(default_factory=dict)
    """Executions by warps of each base opcode, the most frequent first; empty where nobody kept them."""
    inexact: Mapping[str, str] = field(default_factory=dict)
    """Names of figures that are not exactly a GPU's, and why."""
    emulated: Mapping[str, float] = field(default_factory=dict)
    """Beside figures of ncu, the emulator's for the same code."""
    disagreements: tuple[str, ...] | None = None
    """Exact counts in which the two differ; `None` where nothing was emulated beside."""
    notes: tuple[str, ...] = ()
    """Why nothing ran, or what went wrong."""

    @property
    def name(self) -> str:
        """Without what it is: `"naive"`."""
        return self.contestant.removeprefix("kernel:")

    @property
    def is_library(self) -> bool:
        """Whether it is a baseline: code of somebody else's."""
        return not self.contestant.startswith("kernel:")

    @property
    def precision(self) -> str:
        """What it rounds its inputs to."""
        return str(self.facts.get("precision", FLOAT32))

    def first(self, *names: str) -> float | None:
        """The first of these figures that is there: each version of ncu has some of them."""
        return next((found[name] for name in names for found in (self.metrics, self.counts) if name in found), None)

    @property
    def stall_cycles(self) -> dict[str, float]:
        """Cycles that a warp spends in each state for one instruction that is issued, the longest first.

        With `selected`, the cycle in which it is issued itself.
        """
        return largest_first({
            _ONE_NAME.get(match[1], match[1]): value
            for name, value in self.metrics.items()
            if (match := _CYCLES.fullmatch(name))
        })  # fmt: skip

    def stall_samples(self, *, not_issued: bool = False) -> dict[str, float]:
        """How often a warp was found in each state, the most frequent first: in every cycle that was looked at, or in
        those in which its partition issued nothing.
        """
        return largest_first({
            _ONE_NAME.get(match[1], match[1]): value
            for name, value in self.metrics.items()
            if (match := _SAMPLES.fullmatch(name)) and bool(match[2]) is not_issued
        })  # fmt: skip


@dataclass(frozen=True, slots=True)
class Profiles:
    """Everything that one record says, with where it is from."""

    op: str
    device: str
    """`"NVIDIA H200"`, `"emulated sm_90"`."""
    arch: str
    profiler: str
    """ncu's version; empty where the emulator counted."""
    time_utc: str
    profiles: tuple[Profile, ...]
    notes: tuple[str, ...] = ()

    def baseline(self, profile: Profile) -> Profile | None:
        """The library beside a kernel: at the same size, in the same precision; `None` where there is none."""
        if profile.is_library:
            return None
        beside = [one for one in self.profiles if one.is_library and one.kernels and one.size == profile.size]
        return next((one for one in beside if one.precision == profile.precision), None)


def largest_first(values: Mapping[str, float]) -> dict[str, float]:
    """The same, sorted."""
    return dict(sorted(values.items(), key=lambda item: -item[1]))
