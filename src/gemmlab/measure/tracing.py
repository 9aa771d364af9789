"""A kernel's own addresses, joined to what they are addresses of: matrices, rows and columns, words and banks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from gemmlab.core.errors import UsageError
from gemmlab.core.program import Artifact, Launch
from gemmlab.core.trace import Access, Trace, TraceRequest
from gemmlab.devices.emulated import EmulatedDevice, EmulatedLoaded
from gemmlab.kernels.fitting import fitted
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure.memory import check_bytes, require_memory
from gemmlab.measure.run import bind
from gemmlab.ops.catalog import find_op
from gemmlab.ops.op import Op, Operand
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.parse import parse

WORD = 4
BANKS = 32
SIZES: Mapping[str, str] = {"gemm": "256x256x64", "reduce": "2^14"}
"""What is traced by default: some tiles in each direction, few steps along k."""
SHALLOW = 8
"""K where only the order of the blocks matters."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an operand, as it is stored."""

    operand: str
    row: int
    col: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """An operand and where it lies."""

    operand: Operand
    address: int

    @property
    def end(self) -> int:
        """The first address behind it."""
        of = self.operand
        return self.address + WORD * ((of.rows - 1) * of.ld + of.cols if of.rows and of.cols else 0)

    def element(self, address: int) -> Element | None:
        """The element that lies at an address; `None` for what is outside or between rows."""
        if not self.address <= address < self.end:
            return None
        row, col = divmod((address - self.address) // WORD, self.operand.ld)
        return Element(self.operand.name, row, col) if col < self.operand.cols else None


@dataclass(frozen=True, slots=True)
class KernelTrace:
    """One launch of a kernel, recorded, with what its addresses mean."""

    kernel: Kernel
    config: Mapping[str, int]
    arch: str
    problem: Any
    artifact: Artifact = field(repr=False)
    function: SassFunction = field(repr=False)
    """Its machine code; a step's `site.address` is an address in it."""
    launch: Launch = field(repr=False)
    """The one with the most blocks, of those that make one execution."""
    matrices: Mapping[str, Matrix]
    """By name: `A`, `B`, `C`, or `x` and `out`."""
    resident: int
    """Blocks that the GPU of this architecture runs at once."""
    trace: Trace = field(repr=False)

    def element(self, address: int) -> Element | None:
        """What lies at a global address; `None` where no operand does."""
        return next((found for m in self.matrices.values() if (found := m.element(address)) is not None), None)

    def elements(self, access: Access, lane: int) -> tuple[Element, ...]:
        """The elements that one lane of an access to global memory moves."""
        words = (self.element(address) for address in access.bytes_of(lane)[::WORD])
        return tuple(word for word in words if word is not None)

    def operand_of(self, access: Access) -> str:
        """The operand that an access to global memory is to; empty where it is to none."""
        found = {element.operand for lane in access.lanes for element in self.elements(access, lane)}
        return found.pop() if len(found) == 1 else ""

    def word(self, address: int) -> int:
        """The number of the word of the block's own shared memory that lies at a shared address."""
        return (address - self.trace.shared_low) // WORD


def bank(address: int) -> int:
    """The shared-memory bank of an address."""
    return address // WORD % BANKS


def trace_kernel(
    kernel: Kernel,
    arch: str = "sm_90",
    config: Mapping[str, int] | None = None,
    problem: Any = None,
    request: TraceRequest | None = None,
) -> KernelTrace:
    """Compile the kernel, run it once on the emulator, and keep what `request` asks for: all of the first block.

    Without a problem, a small one that the kernel takes. Raises `CompileError`, `UsageError`, `MemoryError`.
    """
    if kernel.device != "cuda":
        raise UsageError(f"{kernel.id} is a kernel for {kernel.device}; traced are those for a GPU")
    op, chosen = find_op(kernel.op), kernel.configure(config)
    problem = problem if problem is not None else small_problem(kernel, op, chosen)
    require_memory(check_bytes(op, problem), f"size {problem.label}")
    device = EmulatedDevice(arch, check_races=False)
    contents = op.fill(problem, np.random.default_rng(0))
    flat = {name: np.ascontiguousarray(values).reshape(-1) for name, values in contents.items()}
    bound = bind(kernel, device, op, problem, flat, config=chosen)
    if not bound.launches:
        raise UsageError(f"{kernel.id} launches nothing for {problem.label}")
    operands = op.operands(problem)
    matrices = {operand.name: Matrix(operand, bound.buffers[operand.name].address) for operand in operands}
    asked = request or TraceRequest()
    asked = replace(asked, written=asked.written or _written(matrices))
    loaded = cast("EmulatedLoaded", bound.loaded)
    traces = [(launch, device.trace(loaded, launch, asked)) for launch in bound.launches]
    launch, trace = max(traces, key=lambda pair: math.prod(pair[0].grid))
    artifact = loaded.artifact
    return KernelTrace(
        kernel=kernel, config=chosen, arch=arch, problem=problem, artifact=artifact,
        function=parse(artifact.texts["sass"])[artifact.entry], launch=launch, matrices=matrices,
        resident=device.resident_blocks(loaded, launch), trace=trace,
    )  # fmt: skip


def small_problem(kernel: Kernel, op: Op, config: Mapping[str, int], sizes: str = "") -> Any:
    """The problem of that size, or of a small one, as like it as the kernel takes. `UsageError` where there is none."""
    problems = op.parse_sizes(sizes or SIZES[op.name])
    like = fitted(kernel, op, config, problems)
    if not like:
        raise UsageError(f"{kernel.id}: {kernel.refusal(config, op.scalars(problems[0]))}")
    return like[0]


def _written(matrices: Mapping[str, Matrix]) -> tuple[int, int] | None:
    """Where the results lie, if they are of one operand."""
    results = [matrix for matrix in matrices.values() if matrix.operand.role != "in"]
    return (results[0].address, results[0].end) if len(results) == 1 else None


def tile_of_block(traced: KernelTrace) -> tuple[int, int] | None:
    """Rows and columns of the result that the first block writes; `None` where it writes none, or holes are left."""
    stored = {
        (element.row, element.col)
        for access in traced.trace.accesses
        if access.store and access.space == "global"
        for lane in access.lanes
        for element in traced.elements(access, lane)
    }
    rows, cols = ({place[axis] for place in stored} for axis in (0, 1))
    return (len(rows), len(cols)) if stored and len(rows) * len(cols) == len(stored) else None


def trace_order(like: KernelTrace, most: int = 32) -> KernelTrace | None:
    """The same kernel over a grid that a GPU needs about two waves for, of which only what each block writes is kept.

    At most `most` x `most` tiles of C. `None` where blocks write no tiles of a matrix, or no such problem is taken.
    """
    tile = tile_of_block(like)
    if tile is None or like.kernel.op != "gemm":
        return None
    side = min(most, math.isqrt(2 * like.resident - 1) + 1)
    op = find_op(like.kernel.op)
    wide = replace(like.problem, m=side * tile[0], n=side * tile[1], k=SHALLOW, lda=0, ldb=0, ldc=0)
    for problem in fitted(like.kernel, op, like.config, [wide]):
        request = TraceRequest(blocks=(), most_steps=0, most_accesses=0)
        return trace_kernel(like.kernel, like.arch, like.config, problem, request)
    return None
