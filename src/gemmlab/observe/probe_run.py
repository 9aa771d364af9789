"""Bind a CPU kernel to a device that adds a probe to the kernel's code.

A probe is code that runs at the kernel's loads and stores, such as a cache simulation, or around its packing functions.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.devices.probed_cpu import ProbedCpu
from gemmlab.kernels.bound import BoundKernel, bind
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.footprint import operand_bytes, require_memory
from gemmlab.ops.op import Op, Problem


def bind_probed(
    kernel: Kernel, op: Op, problem: Problem, device: ProbedCpu, config: Mapping[str, int] | None,
    contents: Mapping[str, npt.NDArray[np.float32]] | None = None,
) -> BoundKernel:  # fmt: skip
    """Bind a kernel for one thread to operands in memory of `device`, filled from `contents` or at random.

    Raises the errors of `bind`, `MemoryError` for a size too large (before anything is allocated), and `UsageError` for
    a kernel of another device or operation.
    """
    if (kernel.op, kernel.device) != (op.name, "cpu"):
        raise UsageError(f"{kernel.id} is a kernel for {kernel.op} on {kernel.device}, not for {op.name} on cpu")
    # The contents, and their copies in the device's memory.
    require_memory(2 * operand_bytes(op, problem), f"size {problem.label}")
    contents = contents or op.fill(problem, np.random.default_rng(0))
    arrays = {}
    for operand in op.operands(problem):
        flat = device.allocate(4 * operand.rows * operand.ld).array.view(np.float32)
        flat.reshape(operand.rows, operand.ld)[:, : operand.cols] = contents[operand.name]
        arrays[operand.name] = flat
    return bind(kernel, device, op, problem, arrays, config=config)
