"""Occupancy as we compute it is what CUDA's own calculator says, of every rung and of blocks that it never has."""

from __future__ import annotations

import math

import pytest

from gemmlab.analysis.occupancy import explain_occupancy
from gemmlab.core.gpu import limits
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_code import CudaLoaded, allow_smem
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import all_kernels
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.catalog import find_op
from gemmlab.timing.families import family_of

THREADS = (1, 32, 33, 64, 96, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1024)
SMEM = (0, 1, 1024, 3000, 10_000, 16_384, 33_000, 49_152, 60_000, 100_000, 115_000, 232_448)
"""Bytes of dynamic shared memory a block."""


def cudas_blocks(gpu: CudaDevice, loaded: CudaLoaded, threads: int, smem_bytes: int) -> int:
    allow_smem(gpu._driver, loaded, smem_bytes)
    return int(gpu._driver("cuOccupancyMaxActiveBlocksPerMultiprocessor", loaded.function, threads, smem_bytes))


@pytest.mark.parametrize(
    "kernel", [kernel for kernel in all_kernels() if kernel.device == "cuda"], ids=lambda kernel: kernel.id
)
def test_occupancy_is_cudas(kernel: Kernel, gpu: CudaDevice) -> None:
    op = find_op(kernel.op)
    sizes = op.parse_sizes(family_of("emulated", op.name).bench_sizes)
    problem = next(one for one in sizes if not kernel.refusal(kernel.configure(), op.scalars(one)))
    operands = {operand.name: gpu.allocate(4 * operand.rows * operand.ld) for operand in op.operands(problem)}
    bound = place(kernel, gpu).bind(op, problem, operands)
    loaded = bound.loaded
    assert isinstance(loaded, CudaLoaded)
    facts, chip = loaded.artifact.resources, limits(loaded.artifact.target)
    static = facts["static_smem_bytes"]
    most = int(gpu.facts["smem_per_block"]) - static
    asked = [(math.prod(launch.threads), launch.smem_bytes) for launch in bound.launches]
    asked += [
        (threads, smem) for threads in THREADS for smem in SMEM
        if threads <= loaded.threads_per_block and smem <= most
    ]  # fmt: skip
    assert asked
    for threads, smem in asked:
        ours = explain_occupancy(chip, facts["registers"], static + smem, threads, facts["barriers"])
        assert ours.found.blocks == cudas_blocks(gpu, loaded, threads, smem), (threads, smem, ours.steps)
