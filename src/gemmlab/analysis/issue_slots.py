"""Issue slots: the cycles that an iteration of a main loop takes on a partition of an SM, and the fraction of the peak
that this allows.

A partition issues one instruction a cycle and has a quarter of every pipe (`analysis/arithmetic.py` has the rates).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gemmlab.analysis.arithmetic import (
    BY_NAME,
    DOUBLE,
    FMA,
    HALF,
    OPCODES,
    PEAKS,
    TENSOR,
    arithmetic_of,
    fp64_lanes,
    half_lanes,
)
from gemmlab.analysis.main_loop import LoopReport
from gemmlab.core.gpu import WARP, GpuLimits, GpuModel
from gemmlab.core.numerals import plain
from gemmlab.sass import metrics
from gemmlab.sass.pipes import Pipe

ISSUE, ALU, L1 = "issue slots", "integer pipe", "shared memory and L1"
SPECIAL = "special functions"
_ALU_LANES = 64
_XU_LANES = 16
_FP32 = ("FFMA", "FADD", "FMUL")
_FP64 = ("DFMA", "DADD", "DMUL")


@dataclass(frozen=True, slots=True)
class IssueReport:
    """Cycles that one iteration of one warp takes on its partition."""

    arithmetic: str
    """Name in `arithmetic.BY_NAME` of the arithmetic that does the most operations: `"FFMA"`, `"HMMA"`, `"HMMA.16"`."""
    count: float
    """Number of instructions of that arithmetic per iteration."""
    slots: float
    """Number of all instructions per iteration, one issue slot each."""
    cycles: Mapping[str, float]
    """Busy cycles by unit: `ISSUE`, the pipes, and `L1`, which serves one warp of each partition in this time.

    Tensor cores and the half-precision pipe are left out unless they do the `arithmetic`.
    """
    work: float
    """Cycles that the arithmetic alone takes at the peak of its pipe; one per instruction if the peak is unknown."""
    conflict_cycles: int
    """Cycles of register bank conflicts, which other instructions may hide."""

    @property
    def busiest(self) -> str:
        """The unit that is busy for the most cycles; in a tie, the arithmetic's own pipe."""
        own = BY_NAME[self.arithmetic].pipe
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
        """Largest fraction of the peak that the loop could reach if `L1` were never busy."""
        return self.work / self.cycles[self.busiest_inside]


def explain_issue(loop: LoopReport, limits: GpuLimits) -> IssueReport | None:
    """Return the issue report of the main loop; `None` if it contains no arithmetic of a known opcode."""
    flops = {op: _flops(loop, op) for op in OPCODES}
    opcode = max(flops, key=lambda op: flops[op])
    if not flops[opcode]:
        return None
    arithmetic = arithmetic_of(opcode, loop.instructions)
    lanes = limits.fma_lanes / limits.partitions
    # IMAD occupies one half of the FMA pipe for twice as long, which is as much of the whole pipe as FFMA takes.
    fma = (loop.pipes.get("fma", 0.0) + loop.pipes.get("fmaheavy", 0.0)) * WARP / lanes
    # Conversions to and from double are no faster than double arithmetic.
    special = loop.pipes.get("xu", 0.0) + loop.mix.get("F2F", 0.0) * max(0.0, _XU_LANES / fp64_lanes(limits) - 1)
    cycles = {
        ISSUE: loop.executed,
        FMA: fma,
        ALU: loop.pipes.get("alu", 0.0) * WARP * limits.partitions / _ALU_LANES,
        SPECIAL: special * WARP * limits.partitions / _XU_LANES,
        DOUBLE: loop.pipes.get("fp64", 0.0) * WARP * limits.partitions / fp64_lanes(limits),
        # All partitions share one L1, and each has a warp with as many accesses.
        L1: loop.l1_cycles * limits.partitions,
    }
    if (pairs := loop.pipes.get("fp16", 0.0)) and arithmetic.pipe == HALF:
        cycles[HALF] = pairs * WARP * limits.partitions / half_lanes(limits)
    count = work = loop.mix[opcode]
    if arithmetic.dense is None:
        work = count * WARP * limits.partitions / arithmetic.lanes(limits)
    elif rate := arithmetic.flops_a_cycle(limits.arch) / limits.partitions:
        cycles[TENSOR] = flops[opcode] / rate
        work = cycles[TENSOR] * arithmetic.reached(limits.arch)
    return IssueReport(arithmetic.name, count, loop.executed, cycles, work, loop.conflict_cycles)


def peak_gflops(arithmetic: str, model: GpuModel) -> float | None:
    """Return `Arithmetic.peak_gflops` of the arithmetic with this name; `None` if the rate is not known."""
    return BY_NAME[arithmetic].peak_gflops(model)


def in_words(issue: IssueReport, loop: LoopReport, limits: GpuLimits) -> list[str]:
    """Return the report as lines of text that show how its numbers were computed."""
    parts = [f"{plain(count)} {name}" for name, count in _beside(issue, loop)]
    kind = BY_NAME[issue.arithmetic]
    peak = PEAKS[kind.pipe]
    slots = (
        f"{plain(issue.slots)} issue slots, which alone would allow {min(1.0, issue.work / issue.slots):.0%} of {peak}"
    )
    lines = [f"{plain(issue.count)} {issue.arithmetic} to {' + '.join(parts) or 'nothing'}: {slots}"]
    if kind.dense is None and (per := WARP * limits.partitions / kind.lanes(limits)) > 1:
        lines.append(f"{limits.arch}: {kind.lanes(limits)} lanes an SM, so each takes its pipe {per:.2g} cycles and "
                     f"{plain(issue.work)} of them hide other instructions")  # fmt: skip
    if issue.cycles[L1]:
        lines.append(
            f"{L1}: {plain(loop.l1_cycles)} cycles a warp ({plain(loop.wavefronts)} of shared memory), "
            f"{limits.partitions} partitions share it: {plain(issue.cycles[L1])} cycles to {plain(issue.work)} of "
            f"{issue.arithmetic}"
        )
    lines.append(
        f"busiest: {issue.busiest}, {plain(issue.cycles[issue.busiest])} cycles; at best {issue.best:.0%} of {peak}"
    )
    if issue.conflict_cycles:
        worse = issue.work / (issue.cycles[issue.busiest] + issue.conflict_cycles)
        lines.append(f"register banks: {issue.conflict_cycles} cycles more where nothing hides them: {worse:.0%}")
    return lines


def _beside(issue: IssueReport, loop: LoopReport) -> Iterator[tuple[str, float]]:
    """Yield the names and numbers of the loop's instructions other than `issue.arithmetic`, `"other"` last.

    Names without instructions are left out.
    """
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


def _flops(loop: LoopReport, opcode: str) -> float:
    each = next((metrics.flops(i) for i in loop.instructions if i.opcode == opcode and metrics.flops(i)), 0)
    return each * loop.mix.get(opcode, 0.0)
