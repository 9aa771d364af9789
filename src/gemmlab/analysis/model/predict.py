"""The predicted time of a kernel on a GPU: a function of the kernel's study, its launches and the GPU's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean

from gemmlab.analysis.model.constants import OF_H200, Constants
from gemmlab.analysis.model.demand import demand_at, demand_of
from gemmlab.analysis.model.kernel_study import Load, Study
from gemmlab.analysis.model.schedule import InstructionTimes, block_cycles, instruction_times
from gemmlab.core.errors import UsageError
from gemmlab.core.gpu import GpuModel, occupancy
from gemmlab.core.numerals import plain

LAUNCH, ENDS, WAITING, UNEVEN, MEMORY = (
    "launches", "starts and ends of blocks", "waiting", "SMs without a block", "device memory",
)  # fmt: skip
DRAWS = 4
"""Schedules whose mean is taken, each with other sectors that arrive sooner and later than in the mean."""
_ROUNDING = 1e-6
"""Share by which sums of equal times may differ because they were rounded."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted time of one execution of a kernel."""

    gpu: str
    time_us: float
    terms: Mapping[str, float]
    """Microseconds by term, which add up to `time_us`: launches, the busiest unit of an SM, and further delays."""
    busy: Mapping[str, float]
    """Unit of an SM -> microseconds for which it is busy, in the mean over all SMs."""
    resident: int
    """Number of blocks that fit on an SM together."""
    waves: float
    """Waves of resident blocks that the first launch takes; may be a fraction."""

    @property
    def binds(self) -> str:
        """The name of the largest term."""
        return max(self.terms, key=lambda name: self.terms[name])


@dataclass(frozen=True)
class Model:
    """The performance model of one kernel on one GPU."""

    study: Study
    gpu: GpuModel
    constants: Constants = OF_H200
    scheduled: dict[tuple[int, float, float], float] = field(default_factory=dict, repr=False)
    """Cache of schedules, the slow part of a prediction: (blocks, depth, latency) -> cycles. Models that differ only in
    the constant `launch_us` may share it.
    """

    @property
    def resident(self) -> int:
        """Number of blocks that fit on an SM together; 0 if none fits."""
        of = self.study
        return occupancy(self.gpu.limits, of.registers, of.smem_bytes, of.threads).blocks

    @cached_property
    def demands(self) -> Mapping[float, Mapping[str, float]]:
        """Studied depth -> unit -> cycles for which a block keeps the unit busy."""
        return {depth: demand_of(script) for depth, script in self.study.scripts.items()}

    def predict(self, loads: Sequence[Load], nbytes: int) -> Prediction:
        """Predict the time of consecutive launches that move at least `nbytes` from and to device memory.

        Raises `UsageError` if a block does not fit on an SM, and if the time would be shorter than the peak rate of a
        unit of the SMs allows.
        """
        if not self.resident:
            raise UsageError(f"an SM of {self.gpu.name} has no room for a block")
        clock = self.gpu.boost_mhz
        busy: dict[str, float] = {}
        total = even = ends = 0.0
        for load in loads:
            each = -(-load.blocks // self.gpu.sms)
            seconds = self._cycles(each, load.depth) / clock
            part = load.blocks / (self.gpu.sms * each)
            total += seconds
            even += seconds * part
            ends += part * self._cycles(each, 0.0) / clock
            for unit, cycles in demand_at(load.depth, self.demands).items():
                busy[unit] = busy.get(unit, 0.0) + cycles * load.blocks / self.gpu.sms / clock
        bound = max(busy, key=lambda unit: busy[unit])
        if even < busy[bound] * (1 - _ROUNDING):
            raise UsageError(
                f"its blocks would take {plain(even, 3)} us by the model, and {bound} alone {plain(busy[bound], 3)} us "
                f"at the peak of {self.gpu.name}, so the model does not fit this kernel"
            )
        ends = min(ends, even - busy[bound])
        memory = nbytes / (self.gpu.memory_gbs * self.constants.memory_share) / 1e3
        launches = self.constants.launch_us + self.constants.next_us * (len(loads) - 1)
        terms = {
            LAUNCH: launches, bound: busy[bound], WAITING: even - busy[bound] - ends, ENDS: ends, UNEVEN: total - even,
            MEMORY: max(0.0, memory - total),
        }  # fmt: skip
        waves = loads[0].blocks / (self.gpu.sms * self.resident)
        return Prediction(self.gpu.name, launches + max(total, memory), terms, busy, self.resident, waves)

    def _cycles(self, blocks: int, depth: float) -> float:
        """Return the cycles that an SM takes for `blocks` blocks, of which `resident` run at a time.

        Sectors that miss L1 have the latency of device memory for a single block, because few other blocks have loaded
        its tiles before, and the latency of L2 for several resident blocks. The last wave takes no less time than a
        single block, so that more blocks are never faster. If full waves precede it, it takes the mean of its own time
        and a full wave's: where blocks end together, an SM may get more of the last blocks than its even share.
        """
        full, last = divmod(blocks - 1, self.resident)
        end = self._line(1, depth, self.constants.memory)
        if last:
            end = max(end, self._line(last + 1, depth, self.constants.l2))
        if not full:
            return end
        whole = self._line(self.resident, depth, self.constants.l2)
        return full * whole + (end + max(end, whole)) / 2

    def _line(self, blocks: int, depth: float, latency: float) -> float:
        """Return the cycles of `blocks` resident blocks at any depth, on a straight line through the studied depths.

        The line does not descend. If only one depth was studied, the cycles are the same at every depth.
        """
        depths = sorted(self.study.scripts)
        first = self._scheduled(blocks, depths[0], latency)
        if len(depths) == 1:
            return first
        slope = (self._scheduled(blocks, depths[-1], latency) - first) / (depths[-1] - depths[0])
        return max(0.0, first + max(0.0, slope) * (depth - depths[0]))

    def _scheduled(self, blocks: int, depth: float, latency: float) -> float:
        key = blocks, depth, latency
        if key not in self.scheduled:
            script = self.study.scripts[depth]
            self.scheduled[key] = fmean(
                block_cycles(script, blocks, self.constants, self._l2_bytes, latency, draw) for draw in range(DRAWS)
            )
        return self.scheduled[key]

    @property
    def _l2_bytes(self) -> float:
        """Bytes that an SM receives from L2 per cycle."""
        return self.gpu.l2_gbs * 1e3 / self.gpu.boost_mhz / self.gpu.sms * self.constants.l2_share

    def by_instruction(self) -> InstructionTimes:
        """Return the times of each instruction at the largest studied depth, with as many resident blocks as fit.

        Raises `UsageError` if a block does not fit on an SM.
        """
        if not self.resident:
            raise UsageError(f"an SM of {self.gpu.name} has no room for a block")
        script = self.study.scripts[max(self.study.scripts)]
        return instruction_times(script, self.resident, self.constants, self._l2_bytes, self.constants.l2)
