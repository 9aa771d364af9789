"""Join a kernel to a device for one problem: build, load, upload, and hold what a call needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemmlab.core.program import Launch
from gemmlab.devices.device import Buffer, Device, Loaded
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.op import Op, Problem


@dataclass(frozen=True, slots=True)
class BoundKernel:
    """A kernel with its arguments on a device, ready to run again and again."""

    device: Device
    loaded: Loaded
    launches: tuple[Launch, ...]
    buffers: Mapping[str, Buffer]

    def run(self) -> None:
        """Execute once."""
        for launch in self.launches:
            self.device.launch(self.loaded, launch)

    def time(self, repeats: int) -> list[float]:
        """`repeats` executions, each timed apart, in microseconds."""
        totals = [0.0] * repeats
        for launch in self.launches:
            for index, time_us in enumerate(self.device.time(self.loaded, launch, repeats)):
                totals[index] += time_us
        return totals

    def download(self, name: str, out: npt.NDArray[np.float32]) -> None:
        """Copy operand `name` back into a C-contiguous array (a no-op where memory is shared)."""
        self.device.download(self.buffers[name], out)


def bind(
    kernel: Kernel,
    device: Device,
    op: Op,
    problem: Problem,
    arrays: Mapping[str, npt.NDArray[np.float32]],
    *,
    config: Mapping[str, int] | None = None,
    threads: int = 1,
) -> BoundKernel:
    """Prepare `kernel` for `problem`.

    `arrays` maps each operand's name to a contiguous one-dimensional float32 array that starts at the
    operand's first element and spans all its rows; a CPU kernel works on that memory itself.
    Raises `CompileError`, `UsageError` (configuration), `MemoryError`.
    """
    chosen = kernel.configure(config)
    loaded = device.load(device.build(kernel.program(chosen, device.target(chosen))))
    buffers = {operand.name: device.upload(arrays[operand.name]) for operand in op.operands(problem)}
    bound = {
        **op.scalars(problem),
        **buffers,
        "threads": np.int64(threads),
        "workspace": device.allocate(max(1, kernel.workspace_bytes(problem, chosen))),
    }
    return BoundKernel(device, loaded, tuple(kernel.launches(bound, threads)), buffers)
