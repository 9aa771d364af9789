"""The plan of a bench: problems, contestants and settings of the measurement; and the progress of a bench."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.core.hardware import require_cpus
from gemmlab.devices.device_name import CPU, DeviceName
from gemmlab.ops.op import Op
from gemmlab.timing.families import Timing
from gemmlab.timing.peers import Spec


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a bench, for a live display. `done` and `total` count turns."""

    done: int
    total: int
    """All turns of the plan's contestants; the probe's are not counted."""
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a bench: problems, contestants and settings of the measurement.

    Raises `UsageError` if it has nothing to time, less than one round or process, a problem without work, or a
    contestant named twice, or if it needs more threads than there are CPUs.
    """

    op: Op
    problems: Sequence[Any]
    contestants: Sequence[Spec]
    threads: Sequence[int] = (1,)
    rounds: int = 15
    processes: int = 3
    timing: Timing = field(default_factory=Timing)
    seed: int = 0
    budget_s: float = inf
    """Seconds, the baseline's timing included. After them a contestant has no further turn at a size and thread count
    at which it has had one.
    """
    verify: bool = True
    """True if each contestant's result is compared with the float64 reference before the turns of the first process."""
    probe: bool = True
    """True if the device's limit (FMA peak or memory rate) is measured in turns with the contestants."""
    only: Callable[[str, Any], bool] = field(default=lambda _name, _problem: True)
    """(name of a contestant, problem) -> whether the contestant is timed at the problem; not called for the probe."""
    kind: str = "bench"
    """The kind of the record: `"bench"` or `"climb"`."""
    device: DeviceName = CPU
    """The device of the probe and of the notes on the method; each contestant names its own device."""
    mode: str = "warm"
    baseline: Spec | None = None
    """The naive kernel, timed before all others at the sizes that it finishes in time; `None` to leave it out."""
    notes: Sequence[str] = ()
    """Notes for the record."""

    def __post_init__(self) -> None:
        for name in ("rounds", "processes"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} = {getattr(self, name)}: at least 1")
        for name in ("problems", "contestants", "threads"):
            if not getattr(self, name):
                raise UsageError(f"nothing to measure: no {name}")
        for problem in self.problems:
            if not self.op.flops(problem):
                raise UsageError(f"size {problem.label}: there is nothing to compute, so nothing to time")
        names = [spec.name for spec in self.contestants]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"{name} is named twice")
        for count in self.threads:
            require_cpus(count)
