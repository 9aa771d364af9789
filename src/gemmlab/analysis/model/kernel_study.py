"""The study of a kernel, from which its time is predicted: the script of one block at two depths.

The depth of a block is the number of terms that it adds up per result (`Load.depth`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from gemmlab.analysis.model.script import Script, script_of
from gemmlab.core.errors import UsageError
from gemmlab.core.expr import parse
from gemmlab.core.gpu import GpuLimits, limits
from gemmlab.core.program import Artifact, Launch
from gemmlab.core.trace import TraceRequest
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.devices.emulated_code import EmulatedLoaded
from gemmlab.kernels.bound import PlacedKernel, place
from gemmlab.kernels.fitting import as_taken, fitted
from gemmlab.kernels.kernel import ALL_STEPS, NO_MEMORY, Kernel
from gemmlab.kernels.names import problem_names, without_memory
from gemmlab.ops.catalog import find_op
from gemmlab.ops.op import Op

SIZES: Mapping[str, str] = {"gemm": "256x256x64,256x256x128", "reduce": "2^14,2^16", "sums": "64x1024x64,64x2048x64"}
"""Operation -> two sizes to run on the emulator. The products (m x n x k) fill tiles of up to 256 x 256. Their k is 64
and 128, so the second one has twice the steps along k if a step is at most 64 deep. Sums are outer x length x inner.
"""
_LEAST_DEPTH, _SCRIPTS, _MOST_DOUBLED = 64.0, 2, 9
"""For kernels whose blocks share k: least depth of a block, number of products to run, and number of values of k that
are tried (64, 128, 256, ...).
"""
_MOST_STEPS, _MOST_ACCESSES = 1 << 21, 1 << 19


@dataclass(frozen=True, slots=True)
class Load:
    """One launch whose time is predicted."""

    blocks: int
    depth: float
    """Number of terms (products of a dot product, or elements of a sum) that a block adds up per result; for kernels
    that state `Kernel.steps`, its steps along k.
    """


@dataclass(frozen=True, slots=True)
class Study:
    """A kernel in one configuration, compiled for one architecture."""

    arch: str
    registers: int
    """Registers per thread."""
    smem_bytes: int
    """Bytes of shared memory that a block asks for, static and dynamic."""
    threads: int
    """Threads per block."""
    digest: str
    """Digest of the machine code."""
    scripts: Mapping[float, Script] = field(repr=False)
    """Script of a block by depth: two, or only one if the depth does not depend on the problem."""


def study(
    kernel: Kernel, arch: str, config: Mapping[str, int] | None = None, of_gpu: GpuLimits | None = None,
    code: Artifact | None = None,
) -> Study:  # fmt: skip
    """Run a kernel on the emulator and return its study.

    `of_gpu` are the limits of the GPU, which may be newer than `arch`; by default those of `arch`. `code` is machine
    code of this kernel to run instead of what the compiler makes of it today. Raises
    `CompileError`, and `UsageError` for a kernel that cannot be studied: its operation is not in `SIZES`, its launches
    are phases of different work, or it takes none of the sizes.
    """
    if kernel.phased:
        raise UsageError(f"{kernel.id} is launched several times for different things; the model knows one launch")
    if kernel.op not in SIZES:
        raise UsageError(f"the model predicts {', '.join(SIZES)} in float32; {kernel.id} computes {kernel.op}")
    op, chosen = find_op(kernel.op), kernel.configure(config)
    problems = fitted(kernel, op, chosen, op.parse_sizes(SIZES[kernel.op]))
    if kernel.steps != ALL_STEPS:
        problems = _deep_enough(kernel, chosen, op)
    elif len(problems) == 1 and hasattr(problems[0], "k"):
        # Whole tiles may be so deep that both products are rounded to one.
        one = problems[0]
        problems += fitted(kernel, op, chosen, op.parse_sizes(f"{one.m}x{one.n}x{2 * one.k}"))
    if not problems:
        raise UsageError(f"{kernel.id} takes none of the sizes {SIZES[kernel.op]}")
    device = EmulatedDevice(arch, check_races=False)
    placed = place(kernel, device, chosen)
    if code is not None:
        instances = [kernel.instantiate(chosen, op.scalars(problem)) for problem in problems]
        placed.loaded.update({tuple(sorted(instance.items())): device.load(code) for instance in instances})
    found = dict(_trace_of_loads(placed, device, op, problem, of_gpu or limits(arch)) for problem in problems)
    launch, artifact, _ = next(iter(found.values()))
    resources = artifact.resources
    return Study(
        arch, resources["registers"], resources["static_smem_bytes"] + launch.smem_bytes, math.prod(launch.threads),
        artifact.digest, {depth: script for depth, (_, _, script) in sorted(found.items())},
    )  # fmt: skip


def loads_of(kernel: Kernel, config: Mapping[str, int] | None, problem: Any) -> list[Load]:
    """Return the launches of one execution, without allocating its operands; empty if nothing is launched.

    Each launch after the first adds up one float from each block of the launch before. Raises `UsageError` for a
    problem that the kernel does not take, or a kernel that has no launch grid.
    """
    op, chosen = find_op(kernel.op), kernel.configure(config)
    scalars = op.scalars(problem)
    if why := kernel.refusal(chosen, scalars):
        raise UsageError(f"{kernel.id} does not take {problem.label}: {why}")
    if kernel.make_launches is None:
        raise UsageError(f"{kernel.id} has no launch grid")
    bound: dict[str, Any] = {**scalars, "threads": np.int64(1), **NO_MEMORY}
    for operand in op.operands(problem):
        bound |= without_memory(operand.name)
    launches = kernel.make_launches(kernel.instantiate(chosen, scalars), bound)
    blocks = [math.prod(launch.grid) for launch in launches]
    first = [Load(count, _depth(kernel, chosen, op, problem, count)) for count in blocks[:1]]
    return first + [Load(after, before / after) for before, after in pairwise(blocks)]


def _trace_of_loads(
    placed: PlacedKernel, device: EmulatedDevice, op: Op, problem: Any, of_gpu: GpuLimits
) -> tuple[float, tuple[Launch, Any, Script]]:
    contents = op.fill(problem, np.random.default_rng(0))
    buffers = {name: device.upload(np.ascontiguousarray(values).reshape(-1)) for name, values in contents.items()}
    bound = placed.bind(op, problem, buffers)
    if not bound.launches:
        raise UsageError(f"{placed.kernel.id} launches nothing for {problem.label}")
    launch, loaded = bound.launches[0], bound.loaded
    assert isinstance(loaded, EmulatedLoaded)  # noqa: S101 - narrows the type
    trace = device.trace(loaded, launch, TraceRequest(most_steps=_MOST_STEPS, most_accesses=_MOST_ACCESSES))
    if trace.lost:
        raise UsageError(f"{placed.kernel.id}: the trace of a block of {problem.label} is too long")
    script = script_of(trace, loaded.image.code.instructions, of_gpu)
    depth = _depth(placed.kernel, placed.config, op, problem, math.prod(launch.grid))
    return depth, (launch, loaded.artifact, script)


def _deep_enough(kernel: Kernel, config: Mapping[str, int], op: Op) -> list[Any]:
    """Return two products for a kernel whose blocks share k, with depths of about 64 and 128 as in `SIZES`.

    Fewer are returned if k gets too large before.
    """
    found, wanted = list[Any](), _LEAST_DEPTH
    for doubled in range(_MOST_DOUBLED):
        (product,) = op.parse_sizes(f"256x256x{64 << doubled}")
        problem = as_taken(kernel, op, product)
        (load, *_) = loads_of(kernel, config, problem)
        if load.depth >= wanted and len(found) < _SCRIPTS:
            found.append(problem)
            wanted = 2 * load.depth
    return found


def _depth(kernel: Kernel, config: Mapping[str, int], op: Op, problem: Any, blocks: int) -> float:
    """Return the depth of a block: the steps along k that the kernel's file states.

    If it states none, return the terms that a block adds up per result: all of them, or a share if there are more
    blocks than results.
    """
    if kernel.steps != ALL_STEPS:
        names = {**problem_names(op.scalars(problem)), **config, "blocks": blocks}
        return parse(kernel.steps)(names)
    results = sum(operand.rows * operand.cols for operand in op.operands(problem) if operand.role != "in")
    return op.dot_length(problem) * min(1.0, results / blocks)
