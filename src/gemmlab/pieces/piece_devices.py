"""Devices that compute products in pieces: how each is opened, and what it demands of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gemmlab.core.argument_checks import thread_count
from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.devices.device_name import DeviceName
from gemmlab.devices.select import DEFAULT_ARCH, open_device
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice_values import Choice
from gemmlab.dispatch.override import named_kernel
from gemmlab.dispatch.piece_plan import PiecePlan
from gemmlab.dispatch.waves import Gpu, gpu_model
from gemmlab.ops.footprint import available_bytes
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.pieces.carrier import Carrier
from gemmlab.pieces.cpu_limits import Steps, cpu_choice, cpu_framed, cpu_limits, multiply_by
from gemmlab.pieces.cut import Limits
from gemmlab.pieces.gpu_limits import framed, limits_for, whole_choice
from gemmlab.pieces.pinned_ring import BUFFER_BYTES, BUFFERS

LINK_GBS = 55.0
"""Rate between pinned memory and a GPU in each direction, 10^9 bytes a second: measured on the host of an H200."""
LINE_NS = 216.0
"""Least time of a row of a strided copy from or to pinned memory, in nanoseconds. Measured beside `LINK_GBS`: rows of
5,632 bytes, 110,592 bytes apart, were copied at 26 GB/s while products ran.
"""
_EMULATED_BYTES = 1 << 28
Factors = tuple[float, float]
"""(alpha, beta): the factors of the product and of the matrix that is added to it."""


class PieceDevice(Protocol):
    """A device that computes products in pieces: its model, usable memory, choice of a kernel, and carrier."""

    @property
    def model(self) -> str:
        """The name of the processor or GPU model, on which a result's bits may depend."""

    def room(self) -> int:
        """Return the bytes that a product may use if the caller names no bound.

        Raises `UsageError` for a GPU that this machine lacks.
        """

    def prepare(self, call: Call, frame: PiecePlan, factors: Factors, steps: Steps) -> tuple[Choice, PiecePlan, Limits]:
        """Return the kernel's choice, the plan with the kernel's requirements on pieces, and the limits for `cut`.

        Raises `UsageError` for a call that this device cannot compute in pieces.
        """

    def carrier(self, plan: PiecePlan, choice: Choice, call: Call, factors: Factors) -> Carrier:
        """Return a carrier that has allocated the plan's memory.

        Raises `MemoryError` if there is too little, `DeviceError` for a GPU that this machine lacks.
        """


class CpuPieces:
    """This machine's processor."""

    @property
    def model(self) -> str:
        from gemmlab.ir.target import host_target

        return host_target(None).name

    def room(self) -> int:
        return available_bytes() // 4

    def prepare(
        self, call: Call, frame: PiecePlan, _factors: Factors, steps: Steps
    ) -> tuple[Choice, PiecePlan, Limits]:  # fmt: skip
        choice = cpu_choice(call, frame)
        return choice, cpu_framed(frame, call, choice, steps), cpu_limits(frame)

    def carrier(self, plan: PiecePlan, choice: Choice, call: Call, factors: Factors) -> Carrier:
        from gemmlab.pieces.cpu_carrier import CpuCarrier

        multiply, threads = multiply_by(call, choice), thread_count("gemm", call.threads)

        def product(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32], c: npt.NDArray[np.float32]) -> None:
            multiply(a, b, c, *factors, threads)

        return CpuCarrier(plan, product)


class GpuPieces:
    """A GPU of a model, for plans only: this machine need not have it."""

    def __init__(self, where: Gpu, link_gbs: float | None = LINK_GBS) -> None:
        self._where, self._link_gbs = where, link_gbs

    @property
    def model(self) -> str:
        return self._where.name

    def room(self) -> int:
        raise UsageError(f"gemm: memory_bytes must be given for {self.model}, which is not here")

    def prepare(
        self, call: Call, frame: PiecePlan, factors: Factors, _steps: Steps
    ) -> tuple[Choice, PiecePlan, Limits]:  # fmt: skip
        if call.threads is not None:
            raise UsageError("gemm: threads are for a product on the CPU; this one is computed on a GPU")
        trans_a, trans_b = frame.turned
        problem = GemmProblem(frame.m, frame.n, frame.k, *factors, trans_a=trans_a, trans_b=trans_b)
        choice, note = whole_choice(call, problem, self._where)
        found = framed(replace(frame, note=note, link_gbs=self._link_gbs, line_ns=LINE_NS), choice)
        return choice, found, limits_for(found, choice, self._where)

    def carrier(self, _plan: PiecePlan, _choice: Choice, _call: Call, _factors: Factors) -> Carrier:
        raise DeviceError(f"there is no {self.model} here")


class EmulatedPieces(GpuPieces):
    """An emulated GPU, which computes pieces, by default with a memory of `_EMULATED_BYTES`."""

    def __init__(self, arch: str) -> None:
        from gemmlab.devices.emulated import MODELS, EmulatedDevice

        device = open_device(f"emulated:{arch}")
        assert isinstance(device, EmulatedDevice)  # noqa: S101 - by its name
        self._device = device
        super().__init__(gpu_model(MODELS[arch]), None)

    def room(self) -> int:
        return _EMULATED_BYTES

    def carrier(self, plan: PiecePlan, choice: Choice, _call: Call, factors: Factors) -> Carrier:
        from gemmlab.pieces.emulated_carrier import EmulatedCarrier

        return EmulatedCarrier(self._device, plan, named_kernel(choice.kernel, "cuda"), choice.config, factors)


class CudaPieces(GpuPieces):
    """A GPU of this machine. Its context must be current (`activate`) while it is used."""

    def __init__(self, ordinal: int) -> None:
        from gemmlab.dispatch.cuda_gemm import gemm_on

        self._gemm = gemm_on(ordinal)
        super().__init__(self._gemm.gpu)

    def room(self) -> int:
        free, _total = self._gemm.device.memory.room()
        return free // 10 * 9

    def prepare(
        self, call: Call, frame: PiecePlan, factors: Factors, steps: Steps
    ) -> tuple[Choice, PiecePlan, Limits]:  # fmt: skip
        return super().prepare(call, replace(frame, staging_bytes=2 * BUFFERS * BUFFER_BYTES), factors, steps)

    def carrier(self, plan: PiecePlan, choice: Choice, call: Call, factors: Factors) -> Carrier:
        from gemmlab.pieces.cuda_carrier import CudaCarrier

        return CudaCarrier(self._gemm, plan, choice, call, factors)

    def activate(self) -> None:
        """Make the GPU's context current in this thread."""
        self._gemm.device.activate()


@contextmanager
def piece_device(name: DeviceName) -> Iterator[PieceDevice]:
    """Open a device; on a GPU its context is current within the block.

    Raises `DeviceError` if there is no such device.
    """
    if name.family == "cpu":
        yield CpuPieces()
    elif name.family == "emulated":
        yield EmulatedPieces(name.which or DEFAULT_ARCH)
    else:
        from gemmlab.devices.cuda_driver import preserved_context

        with preserved_context():
            found = CudaPieces(int(name.which or 0))
            found.activate()
            yield found
