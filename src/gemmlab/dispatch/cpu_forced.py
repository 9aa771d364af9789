"""A product by any CPU kernel in any legal configuration, as a caller may force it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gemmlab.codegen import runtime as shared
from gemmlab.devices.cpu import CpuDevice
from gemmlab.dispatch.override import named_kernel
from gemmlab.dispatch.storage import Stored, stored
from gemmlab.kernels.bound import PlacedKernel, place
from gemmlab.ops.gemm import GemmOp

Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Address:
    """A buffer, as launches take it, in memory that another object owns."""

    address: int


@dataclass(frozen=True, slots=True)
class ForcedProduct:
    """One kernel in one configuration, whose code for a layout is built when a product first needs it."""

    placed: PlacedKernel

    def run(
        self, a: Float32Array, b: Float32Array, c: Float32Array, alpha: float, beta: float, threads: int | None
    ) -> None:
        """Compute `c = alpha * a @ b + beta * c` for matrices. If the kernel cannot use all in place, all are copied.

        `threads=None` stands for the default number of threads.
        """
        if c.size == 0:
            return
        found = stored(a, b, c, alpha, beta)
        if found is not None and found.problem.layout in self.placed.kernel.layouts:
            self._launch(found, threads)
            return
        plain = np.array(c, order="C") if beta != 0.0 else np.empty(c.shape, np.float32)
        left, right = np.array(a, order="C"), np.array(b, order="C")
        copied = stored(left, right, plain, alpha, beta)
        assert copied is not None  # noqa: S101 - all three are row-major now
        self._launch(copied, threads)
        np.copyto(c, plain)

    def _launch(self, what: Stored, threads: int | None) -> None:
        kernel, device, problem = self.placed.kernel, self.placed.device, what.problem
        scalars = GemmOp().scalars(problem)
        instance = kernel.instantiate(self.placed.config, scalars)
        loaded = self.placed.code(instance)
        count = shared.runtime().default_threads if threads is None else min(threads, shared.MOST_THREADS)
        count = count if kernel.threaded else 1
        workspace = device.allocate(max(1, kernel.workspace_bytes(problem, instance)))
        addresses = {"a": _Address(what.a), "b": _Address(what.b), "c": _Address(what.c)}
        bound = {**scalars, **addresses, "threads": np.int64(count), "workspace": workspace}
        for launch in kernel.launches(instance, bound, count):
            device.launch(loaded, launch)


def forced_product(kernel: str, config: Mapping[str, int]) -> ForcedProduct:
    """Return the product by the CPU kernel of this id in this configuration."""
    return _product(kernel, tuple(sorted(config.items())))


@lru_cache(maxsize=64)
def _product(kernel: str, config: tuple[tuple[str, int], ...]) -> ForcedProduct:
    return ForcedProduct(place(named_kernel(kernel, "cpu"), CpuDevice(), dict(config)))
