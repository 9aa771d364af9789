"""The kinds of arithmetic that may do the work of a main loop, each with opcode, pipe, rate and peak.

Rates of pipes are from the table of arithmetic throughput by compute capability in the CUDA programming guide; those of
tensor cores follow from the peaks in the data sheets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from gemmlab.core.gpu import GpuLimits, GpuModel
from gemmlab.sass import metrics
from gemmlab.sass.instruction import Instruction

FMA, TENSOR, DOUBLE, HALF = "FMA pipe", "tensor cores", "double-precision pipe", "half-precision pipe"
PEAKS: Mapping[str, str] = {
    FMA: "FMA peak",
    TENSOR: "tensor peak",
    DOUBLE: "double-precision peak",
    HALF: "half-precision peak",
}
"""Pipe -> words for its peak."""
_TF32_FLOPS = {"sm_80": 1024, "sm_86": 512, "sm_87": 512, "sm_89": 512, "sm_90": 2048}
"""Architecture -> TF32 operations per SM and cycle, without sparsity ("dense")."""
_HALF_FLOPS = {"sm_75": 1024, **{arch: 2 * rate for arch, rate in _TF32_FLOPS.items()}}
_WHOLE_FLOPS = {arch: 2 * rate for arch, rate in _HALF_FLOPS.items()}
_DOUBLE_FLOPS = {"sm_80": 128, "sm_90": 256}
_MMA_SYNC = {"sm_90": 4 / 6.05}
"""Architecture -> fraction of the dense rate that `mma.sync` of floating-point numbers reaches; 1 for all others.
Only `wgmma` reaches all of the rate there. Measured on an H200 with TF32 operands in registers.
"""
_FP64_LANES = {"sm_70": 32, "sm_80": 32, "sm_90": 64, "sm_100": 64}
_FEWEST_FP64_LANES = 2
"""Double-precision lanes of an SM on architectures that `_FP64_LANES` lacks. Conversions to and from double
are as slow.
"""
_HALF_LANES = {"sm_80": 128, "sm_90": 128, "sm_100": 128}
_FEWEST_HALF_LANES = 64
"""Lanes of an SM for pairs of halves (float16) on architectures that `_HALF_LANES` lacks."""
_TF32 = "TF32"
_TF32_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A kind of arithmetic: the instruction that does it, the pipe that executes that, and its rate."""

    name: str
    opcode: str
    pipe: str
    lane_flops: int = 0
    """Floating-point operations of one instruction in each lane; 0 for matrix instructions."""
    dense: Mapping[str, int] | None = None
    """Architecture -> dense operations of a matrix instruction per SM and cycle; `None` for other instructions."""
    synchronous: bool = False
    """True for `mma.sync`, which reaches only a part of `dense` on architectures where `wgmma` reaches all of it."""

    def lanes(self, limits: GpuLimits) -> int:
        """Return the number of lanes for which an SM begins this arithmetic in a cycle; not for matrix instructions."""
        if self.pipe == FMA:
            return limits.fma_lanes
        return fp64_lanes(limits) if self.pipe == DOUBLE else half_lanes(limits)

    def flops_a_cycle(self, arch: str) -> float:
        """Return the operations per SM and cycle that a matrix instruction reaches.

        0 for other instructions, and if the rate on `arch` is unknown.
        """
        return (self.dense or {}).get(arch, 0) * self.reached(arch)

    def reached(self, arch: str) -> float:
        """Return the fraction of `dense` that this instruction reaches; less than 1 only if it is `synchronous`."""
        return _MMA_SYNC.get(arch, 1.0) if self.synchronous else 1.0

    def peak_gflops(self, model: GpuModel) -> float | None:
        """Return the peak in GFLOP/s at the boost clock; `None` for matrix instructions of unknown rate.

        The peak of `mma.sync` is that of `dense`, even where it reaches only a part of that.
        """
        if self.dense is not None:
            rate = self.dense.get(model.limits.arch)
            return None if rate is None else model.sms * rate * model.boost_mhz / 1e3
        return model.sms * self.lanes(model.limits) * self.lane_flops * model.boost_mhz / 1e3


MMA, WGMMA, WGMMA_TF32 = "HMMA", "HGMMA", "HGMMA.TF32"
"""Names of tensor arithmetic: TF32 by a warp, 16-bit numbers by a warpgroup, and TF32 by a warpgroup."""
_KINDS = (
    Arithmetic("FFMA", "FFMA", FMA, 2), Arithmetic("FADD", "FADD", FMA, 1), Arithmetic("FMUL", "FMUL", FMA, 1),
    Arithmetic("DFMA", "DFMA", DOUBLE, 2), Arithmetic("DADD", "DADD", DOUBLE, 1),
    Arithmetic("DMUL", "DMUL", DOUBLE, 1),
    # One instruction works on two halves of each lane.
    Arithmetic("HFMA2", "HFMA2", HALF, 4), Arithmetic("HADD2", "HADD2", HALF, 2),
    Arithmetic("HMUL2", "HMUL2", HALF, 2),
    Arithmetic(MMA, "HMMA", TENSOR, dense=_TF32_FLOPS, synchronous=True),
    Arithmetic("HMMA.16", "HMMA", TENSOR, dense=_HALF_FLOPS, synchronous=True),
    Arithmetic("IMMA", "IMMA", TENSOR, dense=_WHOLE_FLOPS), Arithmetic("DMMA", "DMMA", TENSOR, dense=_DOUBLE_FLOPS),
    Arithmetic(WGMMA, "HGMMA", TENSOR, dense=_HALF_FLOPS), Arithmetic(WGMMA_TF32, "HGMMA", TENSOR, dense=_TF32_FLOPS),
    Arithmetic("IGMMA", "IGMMA", TENSOR, dense=_WHOLE_FLOPS),
)  # fmt: skip
BY_NAME: Mapping[str, Arithmetic] = {kind.name: kind for kind in _KINDS}
OPCODES = tuple(dict.fromkeys(kind.opcode for kind in _KINDS))
"""The opcodes of all kinds of arithmetic."""


def arithmetic_of(opcode: str, instructions: Iterable[Instruction]) -> Arithmetic:
    """Return the kind of arithmetic of one of `OPCODES`.

    For HMMA and HGMMA it depends on the type of operands in the first of `instructions` with this opcode.
    """
    first = next((i for i in instructions if i.opcode == opcode), None)
    if opcode not in _of_tf32 or first is None:
        return BY_NAME[opcode]
    return BY_NAME[
        {("HMMA", False): "HMMA.16", ("HGMMA", True): WGMMA_TF32}.get((opcode, _of_tf32[opcode](first)), opcode)
    ]


def fp64_lanes(limits: GpuLimits) -> int:
    """Return the number of double-precision operations that an SM begins in a cycle."""
    return _FP64_LANES.get(limits.arch, _FEWEST_FP64_LANES)


def half_lanes(limits: GpuLimits) -> int:
    """Return the number of operations on pairs of halves that an SM begins in a cycle."""
    return _HALF_LANES.get(limits.arch, _FEWEST_HALF_LANES)


def mma_sync_flops(arch: str, unknown: float) -> float:
    """Return the TF32 operations per SM and cycle with `mma.sync` (HMMA); `unknown` if `arch` has no known rate."""
    return _TF32_FLOPS.get(arch, unknown) * _MMA_SYNC.get(arch, 1.0)


_of_tf32: Mapping[str, Callable[[Instruction], bool]] = {
    "HMMA": lambda instruction: _TF32 in instruction.modifiers,
    "HGMMA": lambda instruction: metrics.matrix_shape(instruction)[2] == _TF32_DEPTH,
}
"""Opcode -> test whether an instruction multiplies TF32 numbers."""
