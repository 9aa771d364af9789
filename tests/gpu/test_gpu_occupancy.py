"""Occupancy as we compute it is what CUDA's own calculator says, for every kernel and configuration."""

from __future__ import annotations

import math

import pytest

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.gpu import limits
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_code import CudaLoaded, allow_smem
from gemmlab.explain.occupancy import explain_occupancy
from gemmlab.kernels.catalog import all_kernels
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure.families import family_of
from gemmlab.measure.run import place
from gemmlab.ops.catalog import find_op


@pytest.mark.parametrize(
    "kernel", [kernel for kernel in all_kernels() if kernel.device == "cuda"], ids=lambda kernel: kernel.id
)
def test_occupancy_is_cudas(kernel: Kernel, gpu: CudaDevice) -> None:
    op = find_op(kernel.op)
    (problem,) = op.parse_sizes(family_of("emulated", op.name).bench_sizes)
    compared = 0
    for config in kernel.configurations():
        try:
            operands = {operand.name: gpu.allocate(4 * operand.rows * operand.ld) for operand in op.operands(problem)}
            bound = place(kernel, gpu, config).bind(op, problem, operands)
        except (DeviceError, UsageError):
            continue
        loaded = bound.loaded
        assert isinstance(loaded, CudaLoaded)
        for launch in bound.launches:
            threads = math.prod(launch.threads)
            allow_smem(gpu._driver, loaded, launch.smem_bytes)
            blocks = int(
                gpu._driver("cuOccupancyMaxActiveBlocksPerMultiprocessor", loaded.function, threads, launch.smem_bytes)
            )
            facts = loaded.artifact.resources
            ours = explain_occupancy(
                limits(loaded.artifact.target), facts["registers"],
                facts["static_smem_bytes"] + launch.smem_bytes, threads,
            )  # fmt: skip
            assert ours.found.blocks == blocks, (config, ours.steps)
            compared += 1
    assert compared
