"""Issue slots: the load of a main loop's iteration on a partition of an SM, and the part of peak arithmetic it allows.

A partition issues one instruction a cycle and has a quarter of every pipe. Rates are from the table of arithmetic
throughput by compute capability in the CUDA programming guide; those of matrix instructions follow from the peaks in
the data sheets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gemmlab.analysis.main_loop import LoopReport
from gemmlab.core.gpu import WARP, GpuLimits, GpuModel
from gemmlab.sass import metrics
from gemmlab.sass.pipes import Pipe

ISSUE, FMA, ALU, TENSOR, L1 = "issue slots", "FMA pipe", "integer pipe", "tensor cores", "shared memory and L1"
DOUBLE, SPECIAL = "double-precision pipe", "special functions"
_ALU_LANES = 64
_XU_LANES = 16
_TF32_FLOPS = {"sm_80": 1024, "sm_86": 512, "sm_87": 512, "sm_89": 512, "sm_90": 2048}
"""Dense TF32 operations per SM and cycle, from the data sheets."""
_MMA_SYNC = {"sm_90": 4 / 6.05}
"""Fraction of that rate which `mma.sync` reaches, on architectures where only `wgmma` reaches all of it. Timed on an
H200 with operands in registers.
"""
MMA, WGMMA, WGMMA_TF32 = "HMMA", "HGMMA", "HGMMA.TF32"
"""Arithmetic of tensor cores: by a warp, by a warpgroup with 16-bit numbers, and with TF32."""
TENSOR_WORK = (MMA, WGMMA, WGMMA_TF32)
_FP32 = ("FFMA", "FADD", "FMUL")
_FP64 = ("DFMA", "DADD", "DMUL")
_FP64_LANES = {"sm_70": 32, "sm_80": 32, "sm_90": 64, "sm_100": 64}
_FEWEST_FP64_LANES = 2
_TF32_DEPTH = 8
"""Double-precision lanes of all other known architectures; conversions to and from double are as slow there."""


@dataclass(frozen=True, slots=True)
class IssueReport:
    """Cycles that one iteration of one warp takes on its partition."""

    arithmetic: str
    """The opcode that does the work, such as `"FFMA"`, `"FADD"`, `"HMMA"` or `"DFMA"`; `"HGMMA.TF32"` tells TF32 from
    16-bit numbers."""
    count: float
    """Instructions of that opcode."""
    slots: float
    """Number of all instructions, one issue slot each."""
    cycles: Mapping[str, float]
    """Busy cycles by unit: `ISSUE`, the pipes, `L1`."""
    work: float
    """Cycles that the arithmetic alone takes on its pipe."""
    conflict_cycles: int
    """Cycles of register bank conflicts, which other instructions may hide."""

    @property
    def busiest(self) -> str:
        """The unit that is busy for the most cycles; in a tie, the arithmetic's own pipe."""
        own = TENSOR if self.arithmetic in TENSOR_WORK else DOUBLE if self.arithmetic in _FP64 else FMA
        return max(self.cycles, key=lambda name: (self.cycles[name], name == own))

    @property
    def best(self) -> float:
        """Largest fraction of the arithmetic's peak that this loop can reach."""
        return self.work / self.cycles[self.busiest]

    @property
    def busiest_inside(self) -> str:
        """The busiest unit other than `L1`."""
        inside = {name: cycles for name, cycles in self.cycles.items() if name != L1}
        return replace(self, cycles=inside).busiest

    @property
    def best_inside(self) -> float:
        """Largest fraction of the peak if no access to memory, shared memory and L1 included, ever caused a wait."""
        return self.work / self.cycles[self.busiest_inside]


def explain_issue(loop: LoopReport, limits: GpuLimits) -> IssueReport | None:
    """Return the issue report of the main loop; `None` if it contains no arithmetic of a known opcode."""
    flops = {op: _flops(loop, op) for op in (*_FP32, *_FP64, MMA, WGMMA)}
    opcode = max(flops, key=lambda op: flops[op])
    if not flops[opcode]:
        return None
    arithmetic = WGMMA_TF32 if opcode == WGMMA and _wgmma_depth(loop) == _TF32_DEPTH else opcode
    lanes = limits.fma_lanes / limits.partitions
    # IMAD takes the half of the FMA pipe that multiplies integers twice as long: as much of the whole as FFMA does.
    fma = (loop.pipes.get("fma", 0.0) + loop.pipes.get("fmaheavy", 0.0)) * WARP / lanes
    # Conversions to and from double are no faster than double arithmetic.
    special = loop.pipes.get("xu", 0.0) + loop.mix.get("F2F", 0.0) * max(0.0, _XU_LANES / fp64_lanes(limits) - 1)
    cycles = {
        ISSUE: loop.executed,
        FMA: fma,
        ALU: loop.pipes.get("alu", 0.0) * WARP * limits.partitions / _ALU_LANES,
        SPECIAL: special * WARP * limits.partitions / _XU_LANES,
        DOUBLE: loop.pipes.get("fp64", 0.0) * WARP * limits.partitions / fp64_lanes(limits),
        # All partitions share one L1, and each has a warp that asks as much of it.
        L1: loop.l1_cycles * limits.partitions,
    }
    rate = _tensor_flops(arithmetic, limits.arch) / limits.partitions
    count = work = loop.mix[opcode]
    if rate:
        cycles[TENSOR] = flops[opcode] / rate
        work = cycles[TENSOR] * (_MMA_SYNC.get(limits.arch, 1.0) if opcode == MMA else 1.0)
    if arithmetic in _FP64:
        lanes = fp64_lanes(limits) / limits.partitions
    if arithmetic not in TENSOR_WORK:
        work = count * WARP / lanes
    return IssueReport(arithmetic, count, loop.executed, cycles, work, loop.conflict_cycles)


def fp64_lanes(limits: GpuLimits) -> int:
    """Return the number of double-precision operations that an SM begins in a cycle."""
    return _FP64_LANES.get(limits.arch, _FEWEST_FP64_LANES)


def mma_sync_flops(arch: str, unknown: float) -> float:
    """Return the TF32 operations per SM and cycle with `mma.sync` (HMMA); based on `unknown` if there is no rate."""
    return _TF32_FLOPS.get(arch, unknown) * _MMA_SYNC.get(arch, 1.0)


def peak_gflops(arithmetic: str, model: GpuModel) -> float | None:
    """Return the GFLOP/s of a GPU that executes only this opcode; `None` for matrix instructions of unknown rate."""
    if arithmetic in TENSOR_WORK:
        rate = _dense_flops(arithmetic, model.limits.arch)
        return None if rate is None else model.sms * rate * model.boost_mhz / 1e3
    # An addition or a multiplication counts as one operation, FFMA as two.
    share = fp64_lanes(model.limits) / model.limits.fma_lanes if arithmetic in _FP64 else 1.0
    return model.peak_gflops * share / (1 if arithmetic in ("FFMA", "DFMA") else 2)


def in_words(issue: IssueReport, loop: LoopReport, limits: GpuLimits) -> list[str]:
    """Return the report as sentences with its arithmetic."""
    parts = [f"{count:.4g} {name}" for name, count in _beside(issue, loop)]
    double = issue.arithmetic in _FP64
    peak = "tensor peak" if issue.arithmetic in TENSOR_WORK else "double-precision peak" if double else "FMA peak"
    slots = f"{issue.slots:.4g} issue slots, which alone would allow {min(1.0, issue.work / issue.slots):.0%} of {peak}"
    lines = [f"{issue.count:.4g} {issue.arithmetic} to {' + '.join(parts) or 'nothing'}: {slots}"]
    lanes = fp64_lanes(limits) if double else limits.fma_lanes
    per = WARP * limits.partitions / lanes
    if per > 1 and issue.arithmetic not in TENSOR_WORK:
        lines.append(f"{limits.arch}: {lanes} lanes an SM, so each takes its pipe {per:.2g} cycles and "
                     f"{issue.work:.4g} of them hide other instructions")  # fmt: skip
    if issue.cycles[L1]:
        lines.append(
            f"{L1}: {loop.l1_cycles:.4g} cycles a warp ({loop.wavefronts:.4g} of shared memory), {limits.partitions} "
            f"partitions share it: {issue.cycles[L1]:.4g} cycles to {issue.work:.4g} of {issue.arithmetic}"
        )
    lines.append(
        f"busiest: {issue.busiest}, {issue.cycles[issue.busiest]:.4g} cycles; at best {issue.best:.0%} of {peak}"
    )
    if issue.conflict_cycles:
        worse = issue.work / (issue.cycles[issue.busiest] + issue.conflict_cycles)
        lines.append(f"register banks: {issue.conflict_cycles} cycles more where nothing hides them: {worse:.0%}")
    return lines


def _beside(issue: IssueReport, loop: LoopReport) -> Iterator[tuple[str, float]]:
    """Yield the other instructions beside the arithmetic: memory accesses by width, then the work of other pipes."""
    rest = issue.slots - issue.count
    named: dict[str, float] = {
        "LDS.128": loop.wide_shared,
        "narrower LDS": loop.mix.get("LDS", 0.0) - loop.wide_shared,
        "LDSM": loop.mix.get("LDSM", 0.0),
        "STS": loop.mix.get("STS", 0.0),
        "LDG": loop.mix.get("LDG", 0.0),
        "LDGSTS": loop.mix.get("LDGSTS", 0.0),
        "double": sum(loop.mix.get(op, 0.0) for op in _FP64 if op != issue.arithmetic),
        "F2F": loop.mix.get("F2F", 0.0),
        "other float": sum(loop.mix.get(op, 0.0) for op in _FP32 if op != issue.arithmetic),
        "integer": sum(loop.pipes.get(name, 0.0) for name in _INTEGER),
        "BAR": loop.barriers,
    }
    for name, count in named.items():
        if count:
            rest -= count
            yield name, count
    if rest > 1e-9:
        yield "other", rest


_INTEGER: tuple[Pipe, ...] = ("alu", "fmaheavy", "uniform")


def _dense_flops(arithmetic: str, arch: str) -> float | None:
    """Return the dense operations per SM and cycle of tensor cores; `None` if the rate is unknown.

    A 16-bit product takes half the time of one in TF32.
    """
    rate = _TF32_FLOPS.get(arch)
    return rate and rate * (2 if arithmetic == WGMMA else 1)


def _tensor_flops(arithmetic: str, arch: str) -> float:
    """Return the operations per SM and cycle that this arithmetic reaches; 0 for that of other units and of unknown
    rate.
    """
    if arithmetic == MMA:
        return mma_sync_flops(arch, 0)
    return (_dense_flops(arithmetic, arch) or 0) if arithmetic in TENSOR_WORK else 0


def _wgmma_depth(loop: LoopReport) -> int:
    """Return the elements along k of the loop's instructions of warpgroups; 0 without one."""
    return next((metrics.matrix_shape(i)[2] for i in loop.instructions if i.opcode == WGMMA), 0)


def _flops(loop: LoopReport, opcode: str) -> float:
    each = next((metrics.flops(i) for i in loop.instructions if i.opcode == opcode and metrics.flops(i)), 0)
    return each * loop.mix.get(opcode, 0.0)
