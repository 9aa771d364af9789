"""Run kernels on the emulator and record every step and address of some blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from gemmlab.core.errors import UsageError
from gemmlab.core.trace import TraceRequest
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.devices.emulated_code import EmulatedLoaded
from gemmlab.emulator.memory_map import Allocation
from gemmlab.kernels.bound import PlacedKernel, place
from gemmlab.kernels.fitting import fitted
from gemmlab.kernels.kernel import Kernel
from gemmlab.observe.matrix_trace import KernelTrace, Matrix, tile_of_block
from gemmlab.ops.catalog import find_op
from gemmlab.ops.footprint import check_bytes, require_memory
from gemmlab.ops.op import Contents, Op

SIZES: Mapping[str, tuple[str, ...]] = {
    "gemm": ("256x256x64", "64x64x16"), "reduce": ("2^14", "2^10"), "sums": ("16x1024x1", "4x256x1"),
}  # fmt: skip
"""Operation -> default sizes of traces: one with a few tiles in each direction and few steps along k; a smaller one,
for blocks that execute too much at the first.
"""
DEEP: Mapping[str, tuple[str, ...]] = {"gemm": ("256x256x512", "128x128x256")}
"""Operation -> sizes of traces that show many steps along k."""
WAVES = 2
"""Number of waves of blocks in a trace of the order of blocks."""
SHALLOW = 8
"""K for a trace of the order of blocks, which does not depend on it."""


def trace_kernel(
    kernel: Kernel,
    arch: str = "sm_90",
    config: Mapping[str, int] | None = None,
    problem: Any = None,
    request: TraceRequest | None = None,
) -> KernelTrace:
    """Compile the kernel, run it once on the emulator, and record the parts named by `request`, by default the first
    block.

    If one execution makes several launches, the trace is of the one with the most blocks. The default problem is a
    small one that the kernel accepts. Raises `CompileError`, `UsageError`, `MemoryError`.
    """
    if kernel.device != "cuda":
        raise UsageError(f"{kernel.id} is a kernel for {kernel.device}; only kernels for a GPU are traced")
    placed = place(kernel, EmulatedDevice(arch, check_races=False), config)
    op = find_op(kernel.op)
    problem = problem if problem is not None else small_problem(kernel, op, placed.config)
    return _trace(placed, op, problem, request or TraceRequest(), op.fill(problem, np.random.default_rng(0)))


def _trace(placed: PlacedKernel, op: Op, problem: Any, request: TraceRequest, contents: Contents) -> KernelTrace:
    require_memory(check_bytes(op, problem), f"size {problem.label}")
    device = cast("EmulatedDevice", placed.device)
    operands = {operand.name: operand for operand in op.operands(problem)}
    buffers = {name: device.upload(np.ascontiguousarray(contents[name]).reshape(-1)) for name in operands}
    try:
        bound = placed.bind(op, problem, buffers)
        if not bound.launches:
            raise UsageError(f"{placed.kernel.id} launches nothing for {problem.label}")
        loaded = cast("EmulatedLoaded", bound.loaded)
        matrices = {name: Matrix(operand, buffers[name].address) for name, operand in operands.items()}
        whole = replace(request, written=request.written or _written(matrices))
        traces = [(launch, device.trace(loaded, launch, whole)) for launch in bound.launches]
        device.free(cast("Allocation", bound.workspace))
    finally:
        for buffer in buffers.values():
            device.free(buffer)
    launch, trace = max(traces, key=lambda pair: math.prod(pair[0].grid))
    resident = device.resident_blocks(loaded, launch)
    return KernelTrace(placed, problem, loaded.artifact, launch, matrices, resident, trace)


def small_problem(kernel: Kernel, op: Op, config: Mapping[str, int], sizes: str = "") -> Any:
    """Return a problem that the kernel accepts: the first of `sizes`, by default a small size, changed if it must be.

    Raises `UsageError` if the kernel accepts none (`kernels.fitting.fitted`).
    """
    problems = op.parse_sizes(sizes or _sizes(op)[0])
    like = fitted(kernel, op, config, problems)
    if not like:
        raise UsageError(f"{kernel.id}: {kernel.refusal(config, op.scalars(problems[0]))}")
    return like[0]


def _sizes(op: Op) -> tuple[str, ...]:
    return SIZES.get(op.name) or (op.usual_sizes["trace"],)


def trace_whole(
    kernel: Kernel, arch: str = "sm_90", config: Mapping[str, int] | None = None, problem: Any = None, *,
    deep: bool = False,
) -> KernelTrace:  # fmt: skip
    """Return a complete trace of the first block. The default problem has the first of `SIZES` with a complete one.

    With `deep`, a problem with many steps along k is tried before (`DEEP`).

    Raises the errors of `trace_kernel`, and `UsageError` if the block executes more steps or accesses than the trace's
    buffers hold.
    """
    op, chosen = find_op(kernel.op), kernel.configure(config)
    usual = (*(DEEP.get(op.name, ()) if deep else ()), *_sizes(op))
    small = (small_problem(kernel, op, chosen, sizes) for sizes in usual)
    for each in small if problem is None else (problem,):
        kernel_trace = trace_kernel(kernel, arch, chosen, each)
        if not kernel_trace.trace.lost:
            return kernel_trace
    lost = f"{kernel_trace.trace.lost} steps and accesses too many to be stored"
    raise UsageError(f"{kernel.id}: at {kernel_trace.problem.label} its first block does {lost}; name a smaller size")


def trace_order(like: KernelTrace, most: int = 32) -> KernelTrace | None:
    """Trace the kernel of `like` on a grid of about two waves on its GPU, and record only the range that each block
    writes.

    The grid has at most `most` x `most` tiles of C. `None` for an operation other than `gemm`, if blocks do not write
    tiles, and if the kernel takes no such size.
    """
    tile = tile_of_block(like)
    if tile is None or like.kernel.op != "gemm":
        return None
    side = min(most, math.isqrt(WAVES * like.resident - 1) + 1)
    op = find_op(like.kernel.op)
    wide = replace(like.problem, m=side * tile[0], n=side * tile[1], k=SHALLOW, lda=0, ldb=0, ldc=0)
    for problem in fitted(like.kernel, op, like.config, [wide]):
        zeros = {one.name: np.zeros((one.rows, one.ld), one.element.storage) for one in op.operands(problem)}
        request = TraceRequest(blocks=(), most_steps=0, most_accesses=0)
        return _trace(like.placed, op, problem, request, zeros)
    return None


def _written(matrices: Mapping[str, Matrix]) -> tuple[int, int] | None:
    """Return the address range of the output; `None` unless exactly one operand is written."""
    results = [matrix for matrix in matrices.values() if matrix.operand.role != "in"]
    return (results[0].address, results[0].end) if len(results) == 1 else None
