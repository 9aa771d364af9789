"""The script of one block, input of the schedule: the instructions of each warp in order and their memory requests.

Everything here follows from the machine code, its control codes and traced addresses; latencies are in `constants`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from gemmlab.analysis.arithmetic import OPCODES, arithmetic_of, mma_sync_flops
from gemmlab.core.counters import GLOBAL_LOAD, LOCAL_LOAD, SHARED_LOAD, TEXTURE_LOAD
from gemmlab.core.gpu import WARP, GpuLimits
from gemmlab.core.trace import Access, Trace
from gemmlab.sass import metrics
from gemmlab.sass.banks import bank_reads
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.pipes import pipe
from gemmlab.sass.vector_registers import registers_of

NONE = 7
"""Number in control codes that stands for no dependency barrier."""
BARRIER, COMMIT, COPIES = "barrier", "commit", "copies"
"""Roles in addition to the counters' kinds: a block's barrier, the end of a group of copies, a wait for groups."""
_ROLES = {"BAR": BARRIER, "LDGDEPBAR": COMMIT}
_RETURNED = frozenset({GLOBAL_LOAD, LOCAL_LOAD, SHARED_LOAD, TEXTURE_LOAD})
"""Roles of instructions whose results come from memory into registers."""
_ALU_LANES, _XU_LANES = 64, 16
"""Lanes of an SM's integer pipes and of its pipes for special functions. From the table of arithmetic throughput by
compute capability in the CUDA programming guide.
"""
_TEXTURE_UNITS, _LINE_BYTES = 4, 128
"""Texture units of an SM, in the figures of NVIDIA's white papers, each for a texel per cycle; bytes of a line."""
_SECTOR_BITS, _LINE_BITS = 5, 7
_BYPASS, _PAST_L1, _IDLE = "BYPASS", 1.0, 1.0
"""Modifier of asynchronous copies that pass by L1; cycles of L1 that such a copy takes; those of an LDS whose lanes are
all off, as ptxas places them before copies. Measured on the H200 (benchmarks/results/h200/unit-costs.json).
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction of the code."""

    stall: int
    """Stall count: cycles until the warp may issue its next instruction, at least 1."""
    waits: tuple[int, ...]
    """Dependency barriers that must be released before the instruction can issue."""
    write: int
    """Dependency barrier that is released with the result, or `NONE`."""
    read: int
    """Dependency barrier that is released when the operands have been read, or `NONE`."""
    pipe: str
    busy: float
    """Cycles for which the instruction occupies its partition's pipe."""
    role: str
    """The counters' kind of access for a memory instruction; or `BARRIER`, `COMMIT` or `COPIES`; else empty."""
    left: int
    """Groups of copies that may still be in flight after the instruction, if its role is `COPIES`."""
    reads: tuple[int, ...]
    """Number of registers read from each bank, not counting operands that `.reuse` provides; empty if there are none.
    """
    returned: int = 0
    """Number of registers per thread that a load from memory writes; 0 for other instructions."""


@dataclass(frozen=True, slots=True)
class Request:
    """The memory request of one execution of an instruction."""

    l1: float
    """Cycles for which the request occupies the SM's L1 and shared memory: one per wavefront or per line of 128 bytes,
    and no fewer than the load/store units take for a warp; for a texture fetch one per 128 bytes of its texels.
    """
    sectors: tuple[int, ...]
    """Numbers (address divided by 32) of the sectors in global, local or texture memory; empty for shared memory."""
    store: bool
    texels: float = 0.0
    """Cycles for which a texture fetch occupies the texture units; 0 for other requests."""


@dataclass(frozen=True, slots=True)
class Script:
    """The script of one block. `warps` has an array for each warp, with a row for each instruction that it executes:
    its index in `code`, and the index of its request in `requests`, or -1 for none.
    """

    code: tuple[Line, ...] = field(repr=False)
    requests: tuple[Request, ...] = field(repr=False)
    warps: tuple[npt.NDArray[np.int64], ...] = field(repr=False)

    @property
    def steps(self) -> int:
        """Number of executions of instructions, summed over all warps."""
        return sum(map(len, self.warps))


def script_of(trace: Trace, instructions: Sequence[Instruction], limits: GpuLimits) -> Script:
    """Return the script of the one block that was traced. `instructions` are all instructions of the kernel.

    Instructions without a known pipe, such as NOP, are left out of `warps`.
    """
    roles = {site.address: site.kind for site in trace.observation.counters.sites}
    code = tuple(
        _line(i, reads, roles.get(i.address, ""), limits)
        for i, reads in zip(instructions, bank_reads(instructions, limits.arch), strict=True)
    )
    requests: dict[Request, int] = {}
    steps = trace.steps.columns
    rows = np.stack([steps["instruction"].astype(np.int64), np.full(len(steps), -1)], axis=1)
    for order, request in _requests(trace, WARP / limits.load_lanes):
        rows[order, 1] = requests.setdefault(request, len(requests))
    issued = np.array([line.pipe != "none" for line in code])[rows[:, 0]]
    count = -(-int(np.prod(trace.threads)) // WARP)
    warps = tuple(rows[issued & (steps["warp"] == warp)] for warp in range(count))
    idle = np.array([i.is_idle and i.opcode == "LDS" for i in instructions])
    if idle.any():
        nothing = requests.setdefault(Request(_IDLE, (), False), len(requests))
        warps = tuple(_with_idle(warp, idle, nothing) for warp in warps)
    return Script(code, tuple(requests), warps)


def _with_idle(rows: npt.NDArray[np.int64], idle: npt.NDArray[np.bool_], request: int) -> npt.NDArray[np.int64]:
    """Return the rows of a warp with its idle instructions, which no trace has, before those that follow them."""
    run = np.zeros(len(idle) + 1, np.int64)
    for at, one in enumerate(idle):
        run[at + 1] = run[at] + 1 if one else 0
    more = run[rows[:, 0]]
    ends = np.cumsum(more + 1)
    found = np.full((int(ends[-1]) if len(ends) else 0, 2), request)
    found[ends - 1] = rows
    for back in range(1, int(more.max(initial=0)) + 1):
        found[ends[more >= back] - 1 - back, 0] = rows[more >= back, 0] - back
    return found


def _requests(trace: Trace, least: float) -> Iterable[tuple[int, Request]]:
    """Return (index of the step in the trace, request) pairs. Each request takes at least `least` cycles of L1.

    The two accesses of an asynchronous copy are one request.
    """
    merged: dict[int, Request] = {}
    near = {site.address: site.wavefronts / site.requests for site in trace.observation.counters.sites if site.requests}
    for access in trace.accesses:
        if access.space == "shared":
            request = Request(max(least, near.get(access.site.address, 1.0)), (), access.store)
        else:
            request = _far(access, least)
        before = merged.get(access.order)
        if before is not None:
            request = _copy(access.site.opcode, before, request)
        if access.site.kind == TEXTURE_LOAD:
            request = _texture(request, len(access.lanes) * access.width)
        merged[access.order] = request
    return merged.items()


def _copy(opcode: str, one: Request, other: Request) -> Request:
    """Return the request of an asynchronous copy, from those of its two accesses.

    Data that pass L1 take it for the lines and for the write to shared memory; copies past L1 take it for a cycle, as
    measured (benchmarks/results/h200/unit-costs.json).
    """
    l1 = _PAST_L1 if _BYPASS in opcode else one.l1 + other.l1
    return Request(l1, one.sectors or other.sectors, False)


def _far(access: Access, least: float) -> Request:
    starts = [access.addresses[lane] for lane in access.lanes]
    beyond = access.width - 1
    sectors = {start >> _SECTOR_BITS for start in starts} | {start + beyond >> _SECTOR_BITS for start in starts}
    lines = {sector >> _LINE_BITS - _SECTOR_BITS for sector in sectors}
    return Request(max(least, float(len(lines))), tuple(sorted(sectors)), access.store)


def _texture(request: Request, nbytes: int) -> Request:
    """Return the request of a texture fetch of `nbytes`, from one that has a cycle of L1 per line of 128 bytes.

    The texture units take these cycles instead of L1, but no fewer than a warp's lanes need.
    """
    return replace(request, l1=max(1.0, nbytes / _LINE_BYTES), texels=max(WARP / _TEXTURE_UNITS, request.l1))


def _line(i: Instruction, reads: tuple[int, ...], kind: str, limits: GpuLimits) -> Line:
    control = i.control
    role, left = _ROLES.get(i.opcode, kind), 0
    if i.opcode == "DEPBAR" and i.operands and i.operands[0].kind == "scoreboard":
        role, left = COPIES, next((operand.value for operand in i.operands[1:] if operand.kind == "imm"), 0)
    return Line(
        stall=max(1, control.stall), waits=tuple(bit for bit in range(NONE) if control.wait_mask >> bit & 1),
        write=control.write_barrier, read=control.read_barrier, pipe=pipe(i), busy=pipe_cycles(i, limits), role=role,
        left=left, reads=reads if any(reads) else (),
        returned=len(registers_of(i)[1]) if role in _RETURNED else 0,
    )  # fmt: skip


def pipe_cycles(i: Instruction, limits: GpuLimits) -> float:
    """Return the cycles for which a warp's instruction occupies its partition's pipe; 1 if its rate is unknown."""
    match pipe(i):
        case "fma" | "fmaheavy":
            return WARP * limits.partitions / limits.fma_lanes
        case "alu":
            return WARP * limits.partitions / _ALU_LANES
        case "xu":
            return WARP * limits.partitions / _XU_LANES
        case "tensor":
            return metrics.flops(i) * limits.partitions / _tensor_flops(i, limits.arch)
        case _:
            return 1.0


def _tensor_flops(i: Instruction, arch: str) -> float:
    """Return the operations per SM and cycle of a matrix instruction; if that is unknown, of TF32 products."""
    known = arithmetic_of(i.opcode, [i]).flops_a_cycle(arch) if i.opcode in OPCODES else 0.0
    return known or mma_sync_flops(arch, 1024)
