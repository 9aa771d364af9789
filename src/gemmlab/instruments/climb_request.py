"""The settings of a climb, and the plan that they lead to on a device: to time the ladder, or to count it."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.core.hardware import physical_cores, require_cpus
from gemmlab.devices.device import Device
from gemmlab.instruments.defaults import rungs_here
from gemmlab.observe.counting import Count
from gemmlab.ops.catalog import find_op
from gemmlab.timing.climb import Climb
from gemmlab.timing.families import family_of
from gemmlab.timing.peers import parse_peers

INSTALLED = "installed"
"""Value of `peers` that stands for every installed peer."""


@dataclass(frozen=True, slots=True)
class ClimbRequest:
    """The settings of a climb, independent of the device."""

    op: str
    threads: int | None = None
    """Thread count; `None` for all physical cores."""
    peers: str = INSTALLED
    sizes: str | None = None
    """Sizes as text; `None` for the device's default sizes."""
    quick: bool = False
    budget_s: float = float("inf")
    """Seconds after which no further kernel is counted; timed rungs have no such limit."""

    def plan(self, device: Device) -> Climb | Count:
        """Return the plan for one device. If `peers` is `INSTALLED`, the plan of a timed climb has none: the caller
        adds those that are installed.

        Raises `UsageError` and `PeerError`.
        """
        op, where = find_op(self.op), device.device_name
        family, mode = family_of(where.family, self.op), where.modes[0]
        problems = op.parse_sizes(self.sizes or family.climb_sizes)
        kernels = rungs_here(self.op, device)
        if not family.timed:
            return Count(op, device, kernels, problems, budget_s=self.budget_s)
        named = [] if self.peers == INSTALLED else parse_peers(self.peers, where, mode, self.op)
        count = physical_cores() if self.threads is None else self.threads
        require_cpus(count)
        return Climb(
            op, device, kernels, named, count if family.host_threads else 1, self.sizes or "", self.quick, mode=mode
        )
